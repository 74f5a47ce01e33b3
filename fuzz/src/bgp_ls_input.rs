//! Any UPDATEs from a BGP-LS speaker.
//!
//! Each is a length of two bytes and as many bytes. If its first byte is 1, what follows is put into an
//! MP_REACH_NLRI of BGP-LS, if it is 2 into an MP_UNREACH_NLRI, if 3 into a BGP-LS Attribute beside a link
//! between two routers; else it is the body of an UPDATE as it stands. A length of 0 is a new session.

use bgp::{
    link_state::{Graph, GraphChange},
    message::link_state::check,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// The NLRI of a link from 10.8.0.1 to 10.8.0.2 in OSPF.
const LINK: [u8; 45] = [
    0, 2, 0, 41, 3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 12, 2, 3, 0, 8, 10, 8, 0, 1, 0, 0, 0, 0, 1, 1,
    0, 12, 2, 3, 0, 8, 10, 8, 0, 2, 0, 0, 0, 0,
];

fn attribute(code: u8, head: &[u8], rest: &[u8]) -> Vec<u8> {
    let length = (head.len() + rest.len()) as u16;
    [&[0x90, code][..], &length.to_be_bytes(), head, rest].concat()
}

fn update(attributes: &[u8]) -> Vec<u8> {
    [&[0, 0][..], &(attributes.len() as u16).to_be_bytes(), attributes].concat()
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut now = Instant::now();
    let mut graph = Graph::new(64);
    graph.begin(now);
    let (mut routers, mut links, mut prefixes) =
        (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let mut rest = data;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let body;
        (body, rest) = behind.split_at(length);
        let reach = [0x40, 0x04, 71, 4, 192, 0, 2, 1, 0];
        let body = match body.split_first() {
            None => {
                now += Duration::from_secs(30);
                graph.begin(now);
                continue;
            }
            Some((1, inner)) => update(&attribute(14, &reach, inner)),
            Some((2, inner)) => update(&attribute(15, &reach[..3], inner)),
            Some((3, inner)) => {
                update(&[attribute(14, &reach, &LINK), attribute(29, &[], inner)].concat())
            }
            Some(_) => body.to_vec(),
        };
        assert_eq!(check(&body).is_ok(), graph.update(&body).is_ok());
        assert!(graph.len() <= 64);
        now += Duration::from_secs(1);
        graph.settle(now);
        for change in graph.take_changes() {
            match change {
                GraphChange::Router { id, name } => {
                    assert_ne!(routers.insert(id, name.clone()), Some(name));
                }
                GraphChange::RemoveRouter(id) => assert!(routers.remove(&id).is_some()),
                GraphChange::Link(id, properties) => {
                    assert!(id.from != id.to);
                    let amounts = [properties.bandwidth, properties.delay, properties.utilized];
                    assert!(amounts.into_iter().flatten().all(|it| it.is_finite() && it >= 0.0));
                    assert!(properties.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)));
                    assert_ne!(links.insert(id, properties), Some(properties));
                }
                GraphChange::RemoveLink(id) => assert!(links.remove(&id).is_some()),
                GraphChange::Prefix(prefix, at) => assert!(prefixes.insert((prefix, at))),
                GraphChange::RemovePrefix(prefix, at) => assert!(prefixes.remove(&(prefix, at))),
            }
        }
    }
}
