//! The format `oracle.conf`, as [`load::oracle_conf`](crate::load::oracle_conf) reads it.

use super::{Known, omitted};
use crate::{
    builder::Topology,
    path::{LinkKey, LinkProperties},
    value::RouterId,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
    fs,
    io::{self, Write},
    net::Ipv4Addr,
    path::Path,
};

/// Network cards of a router that are not used, as in figure 10.
const CARDS: u32 = 15;
/// The folder of the routers' files, beside the main file.
const FOLDER: &str = "routers";
/// Where made-up addresses of network cards begin and how many there are (RFC 6598). They only tie the
/// ends of links together.
const ADDRESSES: (Ipv4Addr, u32) = (Ipv4Addr::new(100, 64, 0, 0), 1 << 22);

/// Files of the format `oracle.conf`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OracleConf {
    /// The main file.
    pub main: String,
    /// The file of each router that has one.
    pub routers: BTreeMap<RouterId, String>,
    /// What the format cannot express.
    pub notes: Vec<String>,
}

impl OracleConf {
    /// Writes all into a folder: `oracle.conf`, and the routers' files in `routers`.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let below = folder.join(FOLDER);
        fs::create_dir_all(&below)?;
        for (id, text) in &self.routers {
            fs::File::create(below.join(id.to_string()))?.write_all(text.as_bytes())?;
        }
        fs::File::create(folder.join("oracle.conf"))?.write_all(self.main.as_bytes())
    }
}

/// A network card to be.
struct Card {
    local: Ipv4Addr,
    peer: Ipv4Addr,
    /// The properties of its own direction; there may be only the other one.
    link: Option<LinkProperties>,
}

/// A network as far as the format can express it.
pub fn oracle_conf(topology: Topology<'_>) -> OracleConf {
    let mut files = OracleConf::default();
    let known = Known::new(topology, &mut files.notes);
    let names = topology.routers().filter(|(_, name)| name.is_some()).count();
    if names > 0 {
        files.notes.push(format!("the format has no names of routers: {names} are omitted"));
    }
    let lossy = known.links.iter().filter(|(_, link)| link.loss > 0.0).count();
    if lossy > 0 {
        files.notes.push(format!("the format has no loss: that of {lossy} links is omitted"));
    }
    let numbers = card_numbers(&known, &mut files.notes);
    let cards = cards(&known, &numbers, &mut files.notes);
    for (id, cards) in &cards {
        let text = files.routers.entry(*id).or_default();
        for (number, card) in cards {
            let _ = writeln!(text, "nic {number} {} {} UP", card.local, card.peer);
        }
        text.push('\n');
        for (number, card) in cards {
            if let Some(link) = card.link {
                let LinkProperties { bandwidth, latency, congestion, weight, .. } = link;
                let _ = writeln!(text, "link {number} {bandwidth} {latency} {congestion} {weight}");
            }
        }
    }
    // A router without links has a file too, or one of an earlier dump would count.
    for id in &known.routers {
        files.routers.entry(*id).or_default();
    }
    let mut routed = BTreeSet::new();
    for (at, to, via) in &known.next_hops {
        if let (Some(number), Some(text)) = (numbers.get(via), files.routers.get_mut(at)) {
            if routed.insert(*at) {
                text.push('\n');
            }
            let _ = writeln!(text, "route {number} {to}");
        }
    }
    let main = &mut files.main;
    let _ = writeln!(main, "configdir {FOLDER}/\nrouters {}\n", known.routers.len());
    // The last card is that of the networks, as in figure 10.
    let last = |id: &RouterId| {
        let highest = cards.get(id).and_then(|cards| cards.keys().next_back());
        highest.map_or(0, |number| number.saturating_add(1)).max(CARDS - 1)
    };
    for id in &known.routers {
        let _ = writeln!(main, "router {id} {}", last(id).saturating_add(1));
    }
    main.push('\n');
    let mut waiting = 0;
    for (prefix, router) in topology.internal() {
        if known.routers.contains(&router) {
            let _ = writeln!(main, "snetwork {prefix} {router} {}", last(&router));
        } else {
            waiting += 1;
        }
    }
    omitted(&mut files.notes, waiting, "internal prefixes");
    main.push('\n');
    let mut waiting = 0;
    for (prefix, exit, path) in topology.routes() {
        if known.routers.contains(&exit) {
            let (number, distance) = (path.as_number, path.as_distance);
            let _ = writeln!(main, "enetwork {prefix} {exit} {} {number} {distance}", last(&exit));
        } else {
            waiting += 1;
        }
    }
    omitted(&mut files.notes, waiting, "external routes");
    files
}

/// A network card for each link: its id, where a router has no two links of one id.
fn card_numbers(known: &Known, notes: &mut Vec<String>) -> HashMap<LinkKey, u32> {
    let mut numbers = HashMap::new();
    let mut taken: HashMap<RouterId, BTreeSet<u32>> = HashMap::new();
    let mut clashes = Vec::new();
    for (key, _) in &known.links {
        if taken.entry(key.from).or_default().insert(key.id) {
            numbers.insert(*key, key.id);
        } else {
            clashes.push(*key);
        }
    }
    if !clashes.is_empty() {
        notes.push(format!(
            "a link's id is its network card here, and {} links share theirs with another of the \
             same router: they get other ids",
            clashes.len()
        ));
    }
    for key in clashes {
        numbers.insert(key, free(taken.entry(key.from).or_default()));
    }
    numbers
}

/// Takes the lowest free number.
fn free(taken: &mut BTreeSet<u32>) -> u32 {
    let mut number = 0;
    for used in taken.iter() {
        if *used != number {
            break;
        }
        number += 1;
    }
    taken.insert(number);
    number
}

/// The cards of all routers: each link is tied to one in the other direction, or to a card that has no
/// link of its own.
fn cards(
    known: &Known,
    numbers: &HashMap<LinkKey, u32>,
    notes: &mut Vec<String>,
) -> BTreeMap<RouterId, BTreeMap<u32, Card>> {
    let mut pairs: BTreeMap<(RouterId, RouterId), [Vec<_>; 2]> = BTreeMap::new();
    let mut taken: HashMap<RouterId, BTreeSet<u32>> = HashMap::new();
    for (key, link) in &known.links {
        taken.entry(key.from).or_default().insert(numbers[key]);
        let forward = key.from < key.to;
        let ends = if forward { (key.from, key.to) } else { (key.to, key.from) };
        pairs.entry(ends).or_default()[usize::from(!forward)].push((numbers[key], *link));
    }
    let mut cards: BTreeMap<RouterId, BTreeMap<u32, Card>> = BTreeMap::new();
    let (first, count) = ADDRESSES;
    let mut used = 0;
    let mut left = 0;
    for ((a, b), [forward, reverse]) in pairs {
        for index in 0..forward.len().max(reverse.len()) {
            if used + 2 > count {
                left += 1;
                continue;
            }
            let local = Ipv4Addr::from_bits(first.to_bits() + used);
            let peer = Ipv4Addr::from_bits(first.to_bits() + used + 1);
            used += 2;
            for (id, local, peer, links) in [(a, local, peer, &forward), (b, peer, local, &reverse)]
            {
                let number = match links.get(index) {
                    Some((number, _)) => *number,
                    None => free(taken.entry(id).or_default()),
                };
                let link = links.get(index).map(|(_, link)| *link);
                cards.entry(id).or_default().insert(number, Card { local, peer, link });
            }
        }
    }
    omitted(notes, left, "links beyond the two million that can be grouped");
    cards
}
