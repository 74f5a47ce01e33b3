//! Files of routers, and which of their network cards are joined.

use super::{
    super::{About, Notices, Out},
    line::{self, Line, Lines, words},
};
use crate::{
    change::Change,
    path::{LinkKey, LinkProperties},
    value::RouterId,
};
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    path::PathBuf,
};

/// A network card.
struct Card {
    line: usize,
    local: IpAddr,
    peer: IpAddr,
    up: bool,
}

/// The file of one router.
pub(super) struct RouterFile {
    id: RouterId,
    path: PathBuf,
    cards: BTreeMap<u32, Card>,
    links: BTreeMap<u32, (usize, LinkProperties)>,
    routes: BTreeMap<RouterId, (usize, u32)>,
}

impl RouterFile {
    pub(super) fn parse(id: RouterId, path: PathBuf, text: &[u8], notices: &mut Notices) -> Self {
        let (cards, links, routes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut file = Self { id, path, cards, links, routes };
        let path = file.path.clone();
        let mut about = About { file: &path, notices };
        let mut lines = Lines::new(text);
        // Reading from memory cannot fail.
        while let Ok(Some(line)) = lines.next(&mut about) {
            if let Err(message) = file.line(&line) {
                about.error(line.number, line.keyword(), message);
            }
        }
        file
    }

    fn line(&mut self, line: &Line) -> Result<(), String> {
        match line.keyword() {
            "nic" => {
                let [number, local, peer, state] =
                    words(line, ["NIC", "LOCAL", "PEER", "UP|DOWN"])?;
                let address = |text: &str, name| {
                    text.parse().map_err(|_| format!("{name} `{text}` is not an address"))
                };
                let card = Card {
                    line: line.number,
                    local: address(local, "LOCAL")?,
                    peer: address(peer, "PEER")?,
                    up: match state {
                        "UP" => true,
                        "DOWN" => false,
                        _ => return Err(format!("state `{state}` is neither UP nor DOWN")),
                    },
                };
                let number = line::number(number, "NIC")?;
                if self.cards.insert(number, card).is_some() {
                    return Err(format!("nic {number} is defined twice"));
                }
            }
            "link" => {
                let [number, bandwidth, latency, congestion, weight] =
                    words(line, ["NIC", "BANDWIDTH", "LATENCY", "CONGESTION", "WEIGHT"])?;
                let number = line::number(number, "NIC")?;
                let properties = LinkProperties {
                    bandwidth: line::number(bandwidth, "BANDWIDTH")?,
                    latency: line::number(latency, "LATENCY")?,
                    weight: line::number(weight, "WEIGHT")?,
                    congestion: line::number(congestion, "CONGESTION")?,
                    loss: 0.0,
                };
                if let Err(refusal) = properties.check() {
                    return Err(refusal.to_string());
                }
                if self.links.insert(number, (line.number, properties)).is_some() {
                    return Err(format!("the link of nic {number} is defined twice"));
                }
            }
            "route" => {
                let [number, to] = words(line, ["NIC", "ROUTER"])?;
                let to = line::router(to, "ROUTER")?;
                let number = line::number(number, "NIC")?;
                if self.routes.insert(to, (line.number, number)).is_some() {
                    return Err(format!("the route to {to} is defined twice"));
                }
            }
            _ => return Err("is not a keyword; the keywords are nic, link, route".into()),
        }
        Ok(())
    }
}

/// Which card has a local address: the router and the card's number.
type Owners = HashMap<IpAddr, (usize, u32)>;

/// Joins network cards, and hands on links and routes.
pub(super) fn connect(
    files: &[RouterFile],
    routers: &BTreeMap<RouterId, u32>,
    notices: &mut Notices,
    out: &mut Out<'_>,
) {
    let mut owners = Owners::new();
    for (index, file) in files.iter().enumerate() {
        let mut about = About { file: &file.path, notices };
        for (number, card) in &file.cards {
            if let Some((other, _)) = owners.insert(card.local, (index, *number)) {
                let key = format!("nic {number}");
                let other = files[other].id;
                about.error(card.line, &key, format!("router {other} has {} too", card.local));
            }
            if routers.get(&file.id).is_some_and(|cards| number >= cards) {
                let cards = routers[&file.id];
                let message = format!("the main file gives the router {cards} cards, from 0 on");
                about.warn(card.line, &format!("nic {number}"), message);
            }
        }
    }
    for file in files {
        let mut about = About { file: &file.path, notices };
        // Cards that lead somewhere, and where.
        let mut ends = BTreeMap::new();
        for (number, card) in &file.cards {
            let key = format!("nic {number}");
            match far_end(files, &owners, file, card) {
                Ok(Some(to)) if file.links.contains_key(number) => {
                    ends.insert(*number, to);
                }
                Ok(Some(to)) => {
                    let message = format!("has no `link` line: there is no link to {to}");
                    about.warn(card.line, &key, message);
                }
                Ok(None) => {}
                Err(message) => about.warn(card.line, &key, message),
            }
        }
        for (number, (line, properties)) in &file.links {
            if let Some(to) = ends.get(number) {
                let key = LinkKey { from: file.id, to: *to, id: *number };
                out.change(Change::Link { key, properties: *properties });
            } else if !file.cards.contains_key(number) {
                let message = format!("there is no `nic {number}`: the line has no effect");
                about.warn(*line, &format!("link {number}"), message);
            }
        }
        for (to, (line, number)) in &file.routes {
            let key = format!("route {number} {to}");
            let fault = if *to == file.id {
                Some("a router needs no route to itself")
            } else if !routers.contains_key(to) {
                Some("the main file does not have this router")
            } else if !file.cards.contains_key(number) {
                Some("there is no such `nic` line: weights decide")
            } else if !ends.contains_key(number) {
                Some("the card is not connected: weights decide")
            } else {
                None
            };
            match (fault, ends.get(number)) {
                (None, Some(end)) => {
                    let via = LinkKey { from: file.id, to: *end, id: *number };
                    out.change(Change::NextHop { at: file.id, to: *to, via });
                }
                (fault, _) => about.warn(*line, &key, fault.unwrap_or_default()),
            }
        }
    }
}

/// The router at the other end of a card; `None` if one of both is down, an error if they do not fit.
fn far_end(
    files: &[RouterFile],
    owners: &Owners,
    file: &RouterFile,
    card: &Card,
) -> Result<Option<RouterId>, String> {
    if !card.up {
        return Ok(None);
    }
    let Some((index, number)) = owners.get(&card.peer) else {
        return Err(format!("no router has {}: the card is not connected", card.peer));
    };
    let other = &files[*index];
    let there = &other.cards[number];
    if other.id == file.id {
        Err(format!("{} is the router's own: the card is not connected", card.peer))
    } else if there.peer != card.local {
        Err(format!(
            "{} at {} has {} as its peer and not {}: the card is not connected",
            card.peer, other.id, there.peer, card.local
        ))
    } else {
        Ok(there.up.then_some(other.id))
    }
}
