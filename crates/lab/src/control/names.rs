//! The names that a shell offers for arguments of `nigh lab`; none where no lab answers.

use super::{Links, MOST_ROWS, Nodes, Request, Sort, choose::choose};
use crate::clean;
use ::control::{Connection, Peer};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

/// The labs that run, by their scenes' names.
pub fn labs() -> Vec<String> {
    let name = |scene: std::path::PathBuf| Some(scene.file_stem()?.to_string_lossy().into_owned());
    let running = clean::running().unwrap_or_default();
    running.into_iter().filter_map(|(_, entry)| name(entry.scene)).collect()
}

/// The hosts of a lab, or of all that run.
pub fn hosts(lab: Option<&str>) -> Vec<String> {
    let mut running = clean::running().unwrap_or_default();
    running.retain(|(owner, entry)| lab.is_none_or(|lab| entry.is_called(*owner, lab)));
    let hosts = running.into_iter().flat_map(|(_, entry)| entry.hosts);
    hosts.map(|host| host.name).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The first nodes of a lab.
pub fn nodes(lab: Option<&str>) -> Vec<String> {
    let request = Request::Nodes { first: 0, limit: MOST_ROWS };
    let nodes = ask::<Nodes>(lab, &request).map(|nodes| nodes.nodes);
    nodes.into_iter().flatten().map(|node| node.name).collect()
}

/// The first links of a lab, as `A-B`, in the direction that has the lower number.
pub fn links(lab: Option<&str>) -> Vec<String> {
    let request = Request::Links { sort: Sort::Number, limit: MOST_ROWS, all: true };
    let mut seen = BTreeSet::new();
    let mut names = Vec::new();
    for link in ask::<Links>(lab, &request).map(|links| links.links).into_iter().flatten() {
        let (from, to) = (link.from, link.to);
        if !seen.contains(&(to.clone(), from.clone())) && seen.insert((from.clone(), to.clone())) {
            names.push(format!("{from}-{to}"));
        }
    }
    names
}

fn ask<T: DeserializeOwned>(lab: Option<&str>, request: &Request) -> Option<T> {
    Connection::open(Peer::lab(&choose(lab).ok()?)).ok()?.ask(request).ok()
}
