//! Which of the routes that a router has reported for a prefix count.

/// Which of a router's tables a route is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Adj-RIB-In before policy.
    Pre,
    /// Adj-RIB-In after policy.
    Post,
    /// Loc-RIB: the routes that the router has selected (RFC 9069).
    Loc,
}

/// The path of a route beyond its exit router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Length of the AS path.
    pub distance: u16,
    /// The origin AS, 0 if none is named.
    pub origin: u32,
}

/// The progress of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Filled {
    #[default]
    Absent,
    Filling,
    Complete,
}

/// One peer as far as the view needs it.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    pub(super) used: bool,
    /// Of a session that is over.
    pub(super) stale: bool,
    /// By family and stage.
    pub(super) filled: [[Filled; 3]; 2],
    pub(super) routes: [u32; 2],
}

/// One path of one peer to a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) peer: u16,
    pub(super) stage: Stage,
    /// Index into the exits, 0 is the router itself.
    pub(super) exit: u16,
    pub(super) path_id: u32,
    pub(super) path: Path,
}

/// All paths to a prefix; most prefixes have one.
#[derive(Clone, Debug)]
pub(super) enum Entries {
    One(Entry),
    Many(Vec<Entry>),
}

impl Entries {
    pub(super) fn as_slice(&self) -> &[Entry] {
        match self {
            Self::One(entry) => std::slice::from_ref(entry),
            Self::Many(entries) => entries,
        }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [Entry] {
        match self {
            Self::One(entry) => std::slice::from_mut(entry),
            Self::Many(entries) => entries,
        }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        match self {
            Self::One(first) => *self = Self::Many(vec![*first, entry]),
            Self::Many(entries) => entries.push(entry),
        }
    }

    /// Keeps what `keep` selects and returns whether anything is left.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) -> bool {
        match self {
            Self::One(entry) => keep(entry),
            Self::Many(entries) => {
                entries.retain(keep);
                if let [entry] = entries[..] {
                    *self = Self::One(entry);
                }
                !self.as_slice().is_empty()
            }
        }
    }
}

/// What decides which entries count.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub(super) peers: Vec<Peer>,
    /// By family, whether Loc-RIB is complete: in the running session, and in those before.
    pub(super) loc: [[bool; 2]; 2],
}

/// A view of one prefix: the best path of each exit, ordered by exit.
pub(super) type Seen = Vec<(u16, Path)>;

impl Standing {
    pub(super) fn peer(&self, index: u16) -> Option<&Peer> {
        self.peers.get(usize::from(index)).filter(|peer| peer.used)
    }

    /// Notes again whether Loc-RIB is complete; due after each change of the peers.
    pub(super) fn refresh(&mut self) {
        self.loc = [[false; 2]; 2];
        for peer in self.peers.iter().filter(|peer| peer.used) {
            for (loc, filled) in self.loc.iter_mut().zip(peer.filled) {
                loc[usize::from(peer.stale)] |= filled[Stage::Loc as usize] == Filled::Complete;
            }
        }
    }

    /// The view that these entries make.
    pub(super) fn see(&self, family: usize, entries: &[Entry], seen: &mut Seen) {
        seen.clear();
        let is = |entry: &Entry, stale: bool| {
            self.peer(entry.peer).is_some_and(|peer| peer.stale == stale)
        };
        let stale = !entries.iter().any(|entry| is(entry, false));
        let chosen = entries.iter().any(|entry| entry.stage == Stage::Loc && is(entry, stale));
        let only_loc = chosen || self.loc[family][usize::from(stale)];
        for entry in entries.iter().filter(|entry| is(entry, stale)) {
            let counts = match entry.stage {
                Stage::Loc => true,
                _ if only_loc => false,
                Stage::Post => true,
                Stage::Pre => {
                    let complete = self.peer(entry.peer).is_some_and(|peer| {
                        peer.filled[family][Stage::Post as usize] == Filled::Complete
                    });
                    let behind =
                        |other: &Entry| other.peer == entry.peer && other.stage == Stage::Post;
                    !complete && !entries.iter().any(behind)
                }
            };
            if counts {
                match seen.binary_search_by_key(&entry.exit, |(exit, _)| *exit) {
                    Ok(at) => seen[at].1 = seen[at].1.min(entry.path),
                    Err(at) => seen.insert(at, (entry.exit, entry.path)),
                }
            }
        }
    }
}
