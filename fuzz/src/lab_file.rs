//! Any bytes as a network file, and sound files with some bytes changed under a right checksum: an error
//! or a network, of which everything can be asked.
//!
//! An input that begins with byte 1 is a list of changes, each of three bytes: where (two bytes, taken
//! round), and what is there then. The next byte says of which file.

use lab::generate::Generate;
use lab::{
    Builder, LinkId, LinkSettings, Network, NodeId, Relation, RouteMode, RoutePolicy, Router,
};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

/// Sound files: one with something in every array, and a generated one.
static FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let generated = Generate { nodes: 40, ..Generate::default() }.make(&mut |_| ());
    [declared().to_bytes(), generated.expect("a network").to_bytes()]
});

fn declared() -> Network {
    let mut builder = Builder::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| builder.node(name).expect("a node"));
    let d = builder.unnamed(1).expect("a node");
    let settings: LinkSettings = "delay=3ms loss=1%".parse().expect("settings");
    let ends = [(a, b, Relation::None), (b, c, Relation::Provider), (c, d, Relation::Peer)];
    let drafts = ends.map(|(from, to, relation)| {
        builder.link(from, to, &settings, 1, relation).expect("a link")[0]
    });
    let kind = lab::network::Kind { settings, weight: 2, relation: Relation::Customer };
    let kind = builder.kind(&kind).expect("a kind");
    builder.one_way(d, a, kind).expect("a link");
    for (number, draft) in (1_u16..).zip(drafts) {
        for text in [format!("192.0.2.{number}"), format!("2001:db8::{number}")] {
            builder.address(draft, text.parse().expect("an address")).expect("a link");
        }
    }
    for (node, address) in [(b, "192.0.2.9"), (c, "2001:db8::9")] {
        builder.node_address(node, address.parse().expect("an address")).expect("a node");
    }
    for prefix in ["10.0.0.0/8", "10.1.0.0/16", "2001:db8:1::/48"] {
        let prefix = prefix.parse().expect("a prefix");
        builder.prefix(d, prefix).expect("a node");
        builder.entry(a, prefix, drafts[0]).expect("a link of a");
    }
    builder.finish().expect("a network")
}

/// Makes length and checksum right.
fn seal(bytes: &mut [u8]) {
    if bytes.len() >= 24 {
        let length = (bytes.len() as u64).to_le_bytes();
        bytes[16..24].copy_from_slice(&length);
        let checksum = crc32fast::hash(&bytes[16..]).to_le_bytes();
        bytes[12..16].copy_from_slice(&checksum);
    }
}

/// Asks for everything.
fn ask(network: &Network) {
    let nodes = || (0..network.nodes()).step_by(1 + network.nodes() as usize / 16).map(NodeId);
    let modes = [RouteMode::Shortest, RouteMode::ValleyFree, RouteMode::EntriesOnly];
    let mut routers = modes.map(|mode| Router::new(RoutePolicy { mode, ecmp: true }, 10_000));
    let mut path: Vec<LinkId> = Vec::new();
    for node in nodes() {
        let name = network.name(node);
        network.find(&name);
        let own = network.address4(node).map(IpAddr::V4);
        let own = own.or(network.address6(node).map(IpAddr::V6));
        let own = own.unwrap_or(Ipv4Addr::new(10, 1, 2, 3).into());
        network.owner(own);
        for link in network.links_of(node).take(16) {
            assert_eq!(network.from(link), node);
            let back = network.reverse(link);
            assert!(back.is_none_or(|back| network.to(back) == node));
            let _ = (network.interface4(link), network.interface6(link), network.kind(link));
        }
        for from in nodes() {
            for router in &mut routers {
                let _ = router.path(network, from, node, own, 1, &mut path);
                assert!(path.first().is_none_or(|&link| network.from(link) == from));
            }
        }
    }
    network.prefixes().count();
    let again = Network::from_bytes(network.to_bytes()).expect("what was read is written");
    assert_eq!((again.nodes(), again.links()), (network.nodes(), network.links()));
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut bytes = match data {
        [1, which, changes @ ..] => {
            let mut bytes = FILES[usize::from(which % 2)].clone();
            for change in changes.chunks_exact(3) {
                let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
                bytes[place] = change[2];
            }
            bytes
        }
        _ => {
            if let Err(error) = Network::from_bytes(data.to_vec()) {
                assert!(!error.to_string().is_empty());
            }
            data.to_vec()
        }
    };
    seal(&mut bytes);
    if let Ok(network) = Network::from_bytes(bytes) {
        ask(&network);
    }
}
