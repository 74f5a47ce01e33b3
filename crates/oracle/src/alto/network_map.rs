//! Network maps: PIDs and the prefixes in them (RFC 7285, 5 and 11.2.1).
//!
//! A PID is a set of prefix groups of the topology: one group, or all groups behind one router, site
//! or AS. Since a group is reached by longest-prefix match, so is a PID (11.2.2): the map lists every
//! prefix once, and the two prefixes that cover everything are in it, in the PID of unrouted
//! addresses unless the operator has a route for them. A prefix inside a shorter one of the same PID
//! would change no match and is omitted, which makes maps of real tables several times smaller.
//!
//! ```text
//! table     10.0.0.0/8 → group 3     10.1.0.0/16 → group 7     10.1.2.0/24 → group 7
//! PIDs      group 3 → "k2x9…"        group 7 → "a81q…"         nothing → "zz04…"
//! map       "zz04…": 0.0.0.0/0 ::/0   "k2x9…": 10.0.0.0/8   "a81q…": 10.1.0.0/16
//! ```
//!
//! A PID's name is a keyed hash of what makes it (exits, router, site or AS): it stays while that does,
//! over snapshots and, with a configured key, over restarts, and discloses nothing without the key.

use super::{
    address::AddressType,
    config::{Grain, MapConfig},
};
use ipnet::IpNet;
use serde_json::{Value, json};
use siphasher::{sip::SipHasher24, sip128};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::Write as _,
    hash::Hasher,
    net::IpAddr,
    sync::{Arc, OnceLock},
};
use topo::{Group, GroupId, RouterId, RouterIndex, View};

/// Characters of a PID's name: 40 bits, five in each.
const NAME_LENGTH: u32 = 8;
/// Digits of names: no letters that look like digits.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// What makes a PID: all groups with the same key are in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    /// Nothing routes there.
    Nowhere,
    /// What a group is.
    Group { internal: bool, mark: u16, exits: Vec<(RouterId, u16, u32)> },
    /// A router, or the site that begins with it.
    Router(RouterId),
    /// The network itself.
    Inside,
    /// An AS; 0 stands for those that are not distinguished.
    As(u32),
}

/// One PID.
#[derive(Debug)]
pub(super) struct Pid {
    /// Its name.
    pub(super) name: String,
    /// Its groups, each with the number of its prefixes: how much it weighs in a mean.
    pub(super) groups: Vec<(GroupId, u32)>,
    /// The routers that traffic from its prefixes comes in at, with the same weights.
    pub(super) sources: Vec<(RouterIndex, u32)>,
}

/// A network map of one snapshot.
#[derive(Debug)]
pub struct NetworkMap {
    config: MapConfig,
    view: Arc<View>,
    tag: String,
    /// In order of name.
    pids: Vec<Pid>,
    by_name: HashMap<String, u32>,
    /// From a group to its PID.
    of_group: Vec<u32>,
    /// In order of address, then length; with indexes in `pids`.
    prefixes: Vec<(IpNet, u32)>,
    /// Indexes in `prefixes` of each PID's, and where each PID's begin.
    order: Vec<u32>,
    starts: Vec<u32>,
    bytes: OnceLock<Arc<[u8]>>,
}

impl NetworkMap {
    /// The map of a snapshot.
    pub(super) fn new(config: &MapConfig, view: &Arc<View>, name_key: &[u8; 16]) -> Self {
        let keys = Keys::new(config, view);
        let mut weights = vec![0_u32; view.groups.len()];
        for (_, group) in view.table.iter() {
            if let Some(weight) = weights.get_mut(group as usize) {
                *weight += 1;
            }
        }
        // A key for each group that has prefixes. What nothing routes to has no prefix of its own.
        let mut members: BTreeMap<Key, Vec<(GroupId, u32)>> = BTreeMap::new();
        members.insert(Key::Nowhere, vec![(GroupId::UNKNOWN, 0)]);
        for ((id, group), weight) in view.groups.iter().zip(&weights) {
            if *weight > 0 {
                members.entry(keys.of(group)).or_default().push((id, *weight));
            }
        }
        let mut pids: Vec<Pid> = name(members.keys(), name_key)
            .into_iter()
            .zip(members.values())
            .map(|(name, groups)| Pid {
                name,
                groups: groups.clone(),
                sources: sources(view, groups),
            })
            .collect();
        pids.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let mut map = Self {
            config: config.clone(),
            view: Arc::clone(view),
            tag: String::new(),
            by_name: (0..).zip(&pids).map(|(index, pid)| (pid.name.clone(), index)).collect(),
            of_group: Vec::new(),
            pids,
            prefixes: Vec::new(),
            order: Vec::new(),
            starts: Vec::new(),
            bytes: OnceLock::new(),
        };
        map.of_group = map.places_of_groups();
        map.prefixes = map.shortest_prefixes();
        map.drop_empty();
        map.sort_by_pid();
        map.tag = map.content_tag();
        map
    }

    /// Whether the map of a snapshot would have more than `most` PIDs, found without making it: what cannot be given
    /// out as a whole need not be made for that.
    pub(super) fn exceeds(most: usize, config: &MapConfig, view: &View) -> bool {
        if view.groups.len() <= most {
            return false;
        }
        let keys = Keys::new(config, view);
        let (mut groups, mut found) = (HashSet::new(), HashSet::new());
        view.table.iter().any(|(_, group)| {
            if groups.insert(group) {
                let key = keys.of(view.groups.get(GroupId(group)));
                if key != Key::Nowhere {
                    found.insert(key);
                }
            }
            found.len() > most
        })
    }

    /// Whether this map still holds for another snapshot.
    pub(super) fn holds_for(&self, config: &MapConfig, view: &View) -> bool {
        self.config == *config
            && Arc::ptr_eq(&self.view.table, &view.table)
            && Arc::ptr_eq(&self.view.groups, &view.groups)
            && same_routers(&self.view, view)
    }

    /// The identity of the resource.
    pub fn id(&self) -> &str {
        &self.config.id
    }

    /// Changes whenever the content does (6.3).
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The version tag (10.3).
    pub fn vtag(&self) -> Value {
        json!({ "resource-id": self.id(), "tag": self.tag })
    }

    /// The PID that an address is in, found by longest-prefix match (11.2.2).
    pub fn pid_of(&self, address: IpAddr) -> &str {
        self.name_of_group(self.view.group(address))
    }

    /// The PID of the longest prefix that covers all of this one.
    pub fn pid_of_prefix(&self, prefix: IpNet) -> &str {
        self.name_of_group(self.view.group_of_prefix(prefix))
    }

    /// The names of all PIDs, ascending.
    pub fn pids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.pids.iter().map(|pid| pid.name.as_str())
    }

    /// All prefixes with the names of their PIDs, in order of address, then length.
    pub fn prefixes(&self) -> impl Iterator<Item = (IpNet, &str)> {
        self.prefixes.iter().map(|(prefix, pid)| (*prefix, self.name(*pid)))
    }

    /// The prefixes within this one, itself included, with the names of their PIDs, in the same order.
    pub(super) fn prefixes_in(&self, net: IpNet) -> impl Iterator<Item = (IpNet, &str)> {
        let first = self.prefixes.partition_point(|(prefix, _)| *prefix < net);
        let within = self.prefixes.get(first..).unwrap_or_default().iter();
        within
            .take_while(move |(prefix, _)| net.contains(prefix))
            .map(|(prefix, pid)| (*prefix, self.name(*pid)))
    }

    /// The index of the PID of this name.
    pub(super) fn index_of(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// The PID with an index.
    pub(super) fn pid(&self, index: u32) -> Option<&Pid> {
        self.pids.get(index as usize)
    }

    /// The PIDs of these indexes, all address types or some, as JSON (11.2.1.6).
    pub(super) fn write(&self, indexes: &[u32], types: &[AddressType]) -> Vec<u8> {
        let mut out = format!("{{\"meta\":{{\"vtag\":{}}},\"network-map\":{{", self.vtag());
        for (i, index) in indexes.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            let _ = write!(out, "\"{}\":{{", self.name(*index));
            let mut first_type = true;
            for kind in types {
                let mut first = true;
                for prefix in self.prefixes_of(*index).filter(|net| AddressType::of(net) == *kind) {
                    if first {
                        let comma = if first_type { "" } else { "," };
                        let _ = write!(out, "{comma}\"{kind}\":[\"{prefix}\"");
                    } else {
                        let _ = write!(out, ",\"{prefix}\"");
                    }
                    (first, first_type) = (false, false);
                }
                if !first {
                    out.push(']');
                }
            }
            out.push('}');
        }
        out.push_str("}}");
        out.into_bytes()
    }

    /// The whole map as JSON, made once.
    pub(super) fn bytes(&self) -> &Arc<[u8]> {
        self.bytes.get_or_init(|| {
            let all: Vec<u32> = (0..self.pids.len() as u32).collect();
            self.write(&all, &AddressType::ALL).into()
        })
    }

    fn prefixes_of(&self, index: u32) -> impl Iterator<Item = &IpNet> {
        let bound = |index: u32| self.starts.get(index as usize).map_or(0, |start| *start as usize);
        let indexes = self.order.get(bound(index)..bound(index + 1)).unwrap_or_default();
        indexes.iter().filter_map(|index| self.prefixes.get(*index as usize)).map(|(net, _)| net)
    }

    fn name(&self, index: u32) -> &str {
        self.pid(index).map_or("", |pid| &pid.name)
    }

    fn name_of_group(&self, group: GroupId) -> &str {
        self.of_group.get(group.index()).map_or("", |index| self.name(*index))
    }

    fn places_of_groups(&self) -> Vec<u32> {
        let mut of_group = vec![0; self.view.groups.len()];
        for (index, pid) in (0..).zip(&self.pids) {
            for (group, _) in &pid.groups {
                if let Some(of_group) = of_group.get_mut(group.index()) {
                    *of_group = index;
                }
            }
        }
        of_group
    }

    /// Every prefix whose PID is another than that of the next shorter prefix around it.
    fn shortest_prefixes(&self) -> Vec<(IpNet, u32)> {
        let pid_of = |group: u32| self.of_group.get(group as usize).copied().unwrap_or_default();
        let mut prefixes = Vec::new();
        // The prefixes around the next one, from short to long. In the table's order a prefix comes
        // before all that it covers.
        let mut around: Vec<(IpNet, u32)> = Vec::new();
        let mut begun: HashSet<AddressType> = HashSet::new();
        let mut begin = |kind: AddressType, prefixes: &mut Vec<_>, next: Option<IpNet>| {
            if begun.insert(kind) && next != Some(kind.everything()) {
                let everything = (kind.everything(), pid_of(GroupId::UNKNOWN.0));
                prefixes.push(everything);
                return Some(everything);
            }
            None
        };
        for (prefix, group) in self.view.table.iter() {
            around.extend(begin(AddressType::of(&prefix), &mut prefixes, Some(prefix)));
            while around.last().is_some_and(|(outer, _)| !outer.contains(&prefix)) {
                around.pop();
            }
            let pid = pid_of(group);
            if around.last().is_none_or(|(_, outer)| *outer != pid) {
                around.push((prefix, pid));
                prefixes.push((prefix, pid));
            }
        }
        for kind in AddressType::ALL {
            begin(kind, &mut prefixes, None);
        }
        prefixes.sort_unstable();
        prefixes
    }

    /// Removes the PID of what nothing routes to when the operator has routes to everything.
    fn drop_empty(&mut self) {
        let nowhere = self.of_group.first().copied().unwrap_or_default();
        if self.prefixes.iter().any(|(_, pid)| *pid == nowhere) {
            return;
        }
        let removed = self.pids.remove(nowhere as usize);
        self.by_name.remove(&removed.name);
        let indexes = self.by_name.values_mut().chain(&mut self.of_group);
        for index in indexes.chain(self.prefixes.iter_mut().map(|(_, pid)| pid)) {
            if *index > nowhere {
                *index -= 1;
            }
        }
    }

    fn sort_by_pid(&mut self) {
        self.order = (0..self.prefixes.len() as u32).collect();
        let prefixes = &self.prefixes;
        let pid = |index: &u32| prefixes.get(*index as usize).map(|(_, pid)| *pid);
        self.order.sort_by_key(pid);
        let order = &self.order;
        self.starts = (0..=self.pids.len() as u32)
            .map(|pid_index| order.partition_point(|index| pid(index) < Some(pid_index)) as u32)
            .collect();
    }

    /// A hash of the content: 128 bits, so that two contents never share one in practice (6.3).
    fn content_tag(&self) -> String {
        let mut hasher = sip128::SipHasher24::new();
        for (prefix, pid) in &self.prefixes {
            match prefix.network() {
                IpAddr::V4(address) => hasher.write(&address.octets()),
                IpAddr::V6(address) => hasher.write(&address.octets()),
            }
            hasher.write_u8(prefix.prefix_len());
            hasher.write(self.name(*pid).as_bytes());
        }
        let hash = sip128::Hasher128::finish128(&hasher);
        format!("{:016x}{:016x}", hash.h1, hash.h2)
    }
}

/// Whether routers have the same indexes in both snapshots.
fn same_routers(a: &View, b: &View) -> bool {
    Arc::ptr_eq(&a.graph, &b.graph)
        || a.graph.routers().iter().map(|router| router.id).eq(b
            .graph
            .routers()
            .iter()
            .map(|router| router.id))
}

/// The routers that traffic from these groups comes in at.
fn sources(view: &View, groups: &[(GroupId, u32)]) -> Vec<(RouterIndex, u32)> {
    let mut sources: BTreeMap<RouterIndex, u32> = BTreeMap::new();
    for (group, weight) in groups {
        if let Some(router) = view.source_of_group(*group) {
            *sources.entry(router).or_default() += weight;
        }
    }
    sources.into_iter().collect()
}

/// From a group to what makes its PID.
struct Keys<'a> {
    grain: Grain,
    view: &'a View,
    /// The first router of each router's site.
    site: HashMap<RouterId, RouterId>,
}

impl<'a> Keys<'a> {
    fn new(config: &MapConfig, view: &'a View) -> Self {
        let mut site = HashMap::new();
        for routers in &config.sites {
            if let Some(first) = routers.iter().min() {
                site.extend(routers.iter().map(|router| (*router, *first)));
            }
        }
        Self { grain: config.by, view, site }
    }

    fn of(&self, group: &Group) -> Key {
        let id = |router: RouterIndex| self.view.graph.router(router).id;
        let Some(source) = group.source() else { return Key::Nowhere };
        match self.grain {
            Grain::Group => Key::Group {
                internal: group.internal,
                mark: group.mark.0,
                exits: group
                    .exits
                    .iter()
                    .map(|exit| (id(exit.router), exit.path.as_distance, exit.path.as_number))
                    .collect(),
            },
            Grain::Router => Key::Router(id(source)),
            Grain::Site => {
                let router = id(source);
                Key::Router(self.site.get(&router).copied().unwrap_or(router))
            }
            Grain::As if group.internal => Key::Inside,
            Grain::As => Key::As(
                group
                    .exits
                    .iter()
                    .find(|exit| exit.router == source)
                    .map_or(0, |exit| exit.path.as_number),
            ),
        }
    }
}

/// A name for each key, of which there are no two alike, in order. Should two hash to one name, the
/// later is hashed again.
fn name<'k>(keys: impl Iterator<Item = &'k Key>, name_key: &[u8; 16]) -> Vec<String> {
    let mut taken = HashSet::new();
    keys.map(|key| {
        (0_u32..)
            .map(|attempt| {
                let mut hasher = SipHasher24::new_with_key(name_key);
                hasher.write(format!("{attempt} {key:?}").as_bytes());
                let hash = hasher.finish();
                (0..NAME_LENGTH)
                    .map(|digit| char::from(DIGITS[(hash >> (5 * digit)) as usize % DIGITS.len()]))
                    .collect::<String>()
            })
            .find(|name| taken.insert(name.clone()))
            .unwrap_or_default()
    })
    .collect()
}
