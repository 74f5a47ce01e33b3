//! The routes that one router has reported, and the one view of them that is used.
//!
//! A router may report the same route several times: as received from a peer, as its policy left it, and
//! as it was selected. The view of a family is Loc-RIB if the router sends that (RFC 9069), else of each peer
//! the post-policy Adj-RIB-In, else the pre-policy one (RFC 7854 section 3). While a table is still on
//! its way the lower one fills its gaps, prefix by prefix, until its End-of-RIB. Of what remains, the
//! shortest AS path counts for each exit.
//!
//! The routes outlive their session. [`Rib::begin`] marks all of them as stale: they count for prefixes
//! that the new session has not reported yet, and are removed when it has reported everything, so that a
//! router that reconnects causes no gap.

use super::standing::{Entries, Entry, Filled, Path, Peer, Seen, Stage, Standing};
use crate::message::{Family, attributes::PathLength, learned::Nlri};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::{
    collections::{HashMap, hash_map},
    hash::Hash,
    net::IpAddr,
    time::{Duration, Instant},
};

/// How long a session has for its End-of-RIB markers before its tables count as complete.
const SETTLE: Duration = Duration::from_secs(120);

/// A change of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteChange {
    /// The prefix.
    pub prefix: IpNet,
    /// The router at which traffic leaves: `None` is the router that reports, an address the next hop of a
    /// route from inside the AS.
    pub exit: Option<IpAddr>,
    /// The path beyond it; `None` if there is none any more.
    pub path: Option<Path>,
}

/// A peer of the router, as an index; valid until the peer is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerIndex(u16);

/// How much a router has reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Paths of the running session.
    pub routes: usize,
    /// Paths left from sessions before.
    pub stale: usize,
    /// Prefixes of both families.
    pub prefixes: usize,
}

/// The routes that one router has reported.
#[derive(Clone, Debug)]
pub struct Rib {
    standing: Standing,
    v4: HashMap<Ipv4Net, Entries>,
    v6: HashMap<Ipv6Net, Entries>,
    exits: Exits,
    limit: usize,
    routes: usize,
    stale: usize,
    changes: Vec<RouteChange>,
    /// When the stale routes go at the latest, and tables without an end count as complete.
    settle_at: Option<Instant>,
    before: Seen,
    after: Seen,
}

/// Exits other than the router itself, numbered from 1.
#[derive(Clone, Debug, Default)]
struct Exits {
    addresses: Vec<IpAddr>,
    numbers: HashMap<IpAddr, u16>,
}

impl Exits {
    fn number(&mut self, exit: Option<IpAddr>) -> Option<u16> {
        let Some(address) = exit else { return Some(0) };
        if let Some(number) = self.numbers.get(&address) {
            return Some(*number);
        }
        let number = u16::try_from(self.addresses.len() + 1).ok()?;
        self.addresses.push(address);
        self.numbers.insert(address, number);
        Some(number)
    }

    fn address(&self, number: u16) -> Option<IpAddr> {
        self.addresses.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// A route was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session has reported as many routes as its limit allows")]
pub struct Full;

impl Rib {
    /// No routes yet; a session may report `limit` paths.
    pub fn new(limit: usize) -> Self {
        Self {
            standing: Standing::default(),
            v4: HashMap::new(),
            v6: HashMap::new(),
            exits: Exits::default(),
            limit,
            routes: 0,
            stale: 0,
            changes: Vec::new(),
            settle_at: None,
            before: Seen::new(),
            after: Seen::new(),
        }
    }

    /// How much there is.
    pub fn size(&self) -> Size {
        let prefixes = self.v4.len() + self.v6.len();
        Size { routes: self.routes, stale: self.stale, prefixes }
    }

    /// What has changed since the last call, in order.
    pub fn take_changes(&mut self) -> Vec<RouteChange> {
        std::mem::take(&mut self.changes)
    }

    /// How many changes wait to be taken.
    pub fn changes(&self) -> usize {
        self.changes.len()
    }

    /// A new session begins: what there is becomes stale.
    ///
    /// If the session before did not reach the end of its tables, its routes are removed: the stale
    /// routes from before it are complete.
    pub fn begin(&mut self, now: Instant) {
        if self.stale > 0 {
            self.close_where(|_, peer| !peer.stale);
        }
        for peer in &mut self.standing.peers {
            peer.stale = peer.used;
        }
        self.standing.refresh();
        self.stale += std::mem::take(&mut self.routes);
        self.settle_at = Some(now + SETTLE);
    }

    /// A peer has come up; `None` if there are too many.
    pub fn open(&mut self) -> Option<PeerIndex> {
        let peers = &mut self.standing.peers;
        let index = match peers.iter().position(|peer| !peer.used) {
            Some(index) => index,
            None => {
                peers.push(Peer::default());
                peers.len() - 1
            }
        };
        let number = u16::try_from(index).ok()?;
        self.standing.peers[index] = Peer { used: true, ..Peer::default() };
        Some(PeerIndex(number))
    }

    /// A peer is gone: its routes are removed.
    pub fn close(&mut self, peer: PeerIndex) {
        self.close_where(|index, _| index == usize::from(peer.0));
    }

    fn close_where(&mut self, whose: impl Fn(usize, &Peer) -> bool) {
        let mut standing = self.standing.clone();
        let mut families = [false; 2];
        for (index, peer) in standing.peers.iter_mut().enumerate() {
            if peer.used && whose(index, peer) {
                peer.used = false;
                // Loc-RIB that is gone lets other tables count again.
                let loc = peer.filled.map(|filled| filled[Stage::Loc as usize] == Filled::Complete);
                for family in 0..2 {
                    families[family] |= loc[family] || peer.routes[family] > 0;
                }
            }
        }
        self.change(standing, families);
    }

    /// Takes a route.
    ///
    /// # Errors
    /// The session has reported as many as its limit allows; the peer's previous route is removed.
    pub fn announce(
        &mut self,
        peer: PeerIndex,
        stage: Stage,
        nlri: Nlri,
        exit: Option<IpAddr>,
        path: PathLength,
    ) -> Result<(), Full> {
        let path = Path { distance: path.distance, origin: path.origin };
        let Some(exit) = self.exits.number(exit) else {
            self.withdraw(peer, stage, nlri);
            return Err(Full);
        };
        let entry = Entry { peer: peer.0, stage, exit, path_id: nlri.path_id, path };
        self.replace(entry, nlri.prefix, true)
    }

    /// Withdraws a route.
    pub fn withdraw(&mut self, peer: PeerIndex, stage: Stage, nlri: Nlri) {
        let path = Path { distance: 0, origin: 0 };
        let entry = Entry { peer: peer.0, stage, exit: 0, path_id: nlri.path_id, path };
        // Taking something away needs no room.
        let _ = self.replace(entry, nlri.prefix, false);
    }

    fn replace(&mut self, entry: Entry, prefix: IpNet, there: bool) -> Result<(), Full> {
        let family = family_of(&prefix) as usize;
        let Some(peer) = self.standing.peers.get_mut(usize::from(entry.peer)) else {
            return Ok(());
        };
        let filled = &mut peer.filled[family][entry.stage as usize];
        if *filled == Filled::Absent {
            *filled = Filled::Filling;
        }
        let room = self.routes < self.limit;
        let work = Work {
            standing: &self.standing,
            family,
            before: &mut self.before,
            after: &mut self.after,
        };
        let delta = match prefix {
            IpNet::V4(net) => work.replace(&mut self.v4, net, entry, there, room),
            IpNet::V6(net) => work.replace(&mut self.v6, net, entry, there, room),
        };
        let Some(delta) = delta else { return Err(Full) };
        self.routes = self.routes.saturating_add_signed(delta);
        if let Some(peer) = self.standing.peers.get_mut(usize::from(entry.peer)) {
            peer.routes[family] = peer.routes[family].saturating_add_signed(delta as i32);
        }
        emit(prefix, &self.before, &self.after, &self.exits, &mut self.changes);
        Ok(())
    }

    /// A table of a peer is complete.
    pub fn end_of_rib(&mut self, peer: PeerIndex, stage: Stage, family: Family) {
        let mut standing = self.standing.clone();
        let Some(filled) = standing
            .peers
            .get_mut(usize::from(peer.0))
            .map(|peer| &mut peer.filled[family as usize][stage as usize])
        else {
            return;
        };
        if *filled == Filled::Complete {
            return;
        }
        *filled = Filled::Complete;
        if stage == Stage::Pre {
            // Nothing gives way to it.
            self.standing = standing;
        } else {
            let mut families = [false, false];
            families[family as usize] = true;
            self.change(standing, families);
        }
    }

    /// Given the families that each of these peers carries, removes the stale routes when all tables are
    /// complete, or overdue.
    pub fn settle(&mut self, peers: impl Iterator<Item = (PeerIndex, [bool; 2])>, now: Instant) {
        let Some(at) = self.settle_at else { return };
        let late = at <= now;
        if !late {
            let mut any = false;
            for (peer, carries) in peers {
                let Some(peer) = self.standing.peer(peer.0) else { continue };
                any = true;
                for (tables, carries) in peer.filled.iter().zip(carries) {
                    let begun = tables.contains(&Filled::Filling);
                    if begun || carries && !tables.contains(&Filled::Complete) {
                        return;
                    }
                }
            }
            if !any {
                return;
            }
        }
        self.settle_at = None;
        let mut standing = self.standing.clone();
        for peer in &mut standing.peers {
            if peer.stale {
                peer.used = false;
            }
            for filled in peer.filled.as_flattened_mut() {
                if *filled == Filled::Filling {
                    *filled = Filled::Complete;
                }
            }
        }
        self.change(standing, [true, true]);
    }

    /// When [`Rib::settle`] wants to be called at the latest.
    pub fn settle_at(&self) -> Option<Instant> {
        self.settle_at
    }

    /// Changes what decides, checks every prefix of the families and removes the routes of closed peers.
    fn change(&mut self, mut standing: Standing, families: [bool; 2]) {
        standing.refresh();
        let old = std::mem::replace(&mut self.standing, standing);
        let (mut before, mut after) = (Seen::new(), Seen::new());
        let mut removed = vec![[0_u32; 2]; self.standing.peers.len()];
        for family in [Family::Ipv4, Family::Ipv6] {
            if !families[family as usize] {
                continue;
            }
            let mut judge = Judge {
                old: &old,
                new: &self.standing,
                family: family as usize,
                before: &mut before,
                after: &mut after,
                exits: &self.exits,
                changes: &mut self.changes,
                removed: &mut removed,
            };
            match family {
                Family::Ipv4 => judge.all(&mut self.v4),
                Family::Ipv6 => judge.all(&mut self.v6),
            }
        }
        for (peer, removed) in self.standing.peers.iter_mut().zip(removed) {
            let count = (removed[0] + removed[1]) as usize;
            let total = if peer.stale { &mut self.stale } else { &mut self.routes };
            *total = total.saturating_sub(count);
            if !peer.used {
                *peer = Peer::default();
            }
        }
        // Memory of a full table is freed.
        self.v4.shrink_to(self.v4.len() * 2);
        self.v6.shrink_to(self.v6.len() * 2);
    }
}

/// What one change of one prefix needs of the rest.
struct Work<'a> {
    standing: &'a Standing,
    family: usize,
    before: &'a mut Seen,
    after: &'a mut Seen,
}

impl Work<'_> {
    /// Puts an entry in or takes it out; the number of entries that came or went, `None` if there is no
    /// room for another.
    fn replace<N: Copy + Eq + Hash>(
        self,
        table: &mut HashMap<N, Entries>,
        net: N,
        entry: Entry,
        there: bool,
        room: bool,
    ) -> Option<isize> {
        let same = |other: &Entry| {
            (other.peer, other.stage, other.path_id) == (entry.peer, entry.stage, entry.path_id)
        };
        self.before.clear();
        self.after.clear();
        match table.entry(net) {
            hash_map::Entry::Vacant(vacant) => {
                if !there {
                    return Some(0);
                }
                if !room {
                    return None;
                }
                self.standing.see(self.family, &[entry], self.after);
                vacant.insert(Entries::One(entry));
                Some(1)
            }
            hash_map::Entry::Occupied(mut occupied) => {
                let entries = occupied.get_mut();
                self.standing.see(self.family, entries.as_slice(), self.before);
                let found = entries.as_mut_slice().iter_mut().find(|other| same(other));
                let delta = match (found, there) {
                    (Some(found), true) => {
                        *found = entry;
                        0
                    }
                    (None, true) if !room => {
                        self.before.clear();
                        return None;
                    }
                    (None, true) => {
                        entries.push(entry);
                        1
                    }
                    (Some(_), false) => {
                        if !entries.retain(|other| !same(other)) {
                            occupied.remove();
                            return Some(-1);
                        }
                        -1
                    }
                    (None, false) => 0,
                };
                self.standing.see(self.family, entries.as_slice(), self.after);
                Some(delta)
            }
        }
    }
}

/// Compares all prefixes of a family before and after a change of what decides.
struct Judge<'a> {
    old: &'a Standing,
    new: &'a Standing,
    family: usize,
    before: &'a mut Seen,
    after: &'a mut Seen,
    exits: &'a Exits,
    changes: &'a mut Vec<RouteChange>,
    removed: &'a mut [[u32; 2]],
}

impl Judge<'_> {
    fn all<N: Copy + Into<IpNet>>(&mut self, table: &mut HashMap<N, Entries>) {
        let family = self.family;
        table.retain(|net, entries| {
            self.old.see(family, entries.as_slice(), self.before);
            let removed = &mut *self.removed;
            let left = entries.retain(|entry| {
                let stays = self.new.peer(entry.peer).is_some();
                if !stays && let Some(count) = removed.get_mut(usize::from(entry.peer)) {
                    count[family] += 1;
                }
                stays
            });
            if left {
                self.new.see(family, entries.as_slice(), self.after);
            } else {
                self.after.clear();
            }
            emit((*net).into(), self.before, self.after, self.exits, self.changes);
            left
        });
    }
}

/// Adds what differs between two views of a prefix.
fn emit(prefix: IpNet, before: &Seen, after: &Seen, exits: &Exits, changes: &mut Vec<RouteChange>) {
    for (exit, path) in after {
        if !before.contains(&(*exit, *path)) {
            changes.push(RouteChange { prefix, exit: exits.address(*exit), path: Some(*path) });
        }
    }
    for (exit, _) in before {
        if !after.iter().any(|(other, _)| other == exit) {
            changes.push(RouteChange { prefix, exit: exits.address(*exit), path: None });
        }
    }
}

fn family_of(prefix: &IpNet) -> Family {
    match prefix {
        IpNet::V4(_) => Family::Ipv4,
        IpNet::V6(_) => Family::Ipv6,
    }
}
