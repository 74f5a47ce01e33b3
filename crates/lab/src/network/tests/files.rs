//! Networks as files: what was saved, or an error.

use super::*;
use crate::{RoutePolicy, Router};
use proptest::prelude::*;
use splitmix::Random;

/// A network with something in every array.
fn network() -> Network {
    let mut builder =
        Builder::with_plan(Plan { node4: Some(Ipv4Addr::new(10, 0, 0, 0)), ..Plan::default() });
    let [a, b, c] = ["a", "bé", "c"].map(|name| builder.node(name).expect("a node"));
    let d = builder.unnamed(2).expect("nodes");
    let [ab, ba] = builder.link(a, b, &settings(30), 3, Relation::None).expect("a link");
    let [bc, _] = builder.link(b, c, &settings(10), 1, Relation::Provider).expect("a link");
    builder.link(c, d, &settings(10), 1, Relation::Customer).expect("a link");
    let settings = "loss=1%,delay=3ms rate=5Mbit".replace(',', " ").parse().expect("settings");
    let kind = Kind { settings, weight: 70_000, relation: Relation::Peer };
    let kind = builder.kind(&kind).expect("a kind");
    builder.one_way(d, a, kind).expect("a link");
    builder.address(ab, ip("192.0.2.1")).expect("a link");
    builder.address(ba, ip("2001:db8::2")).expect("a link");
    builder.node_address(c, ip("192.0.2.3")).expect("a node");
    builder.node_address(c, ip("2001:db8::3")).expect("a node");
    for (node, prefix) in [(a, "10.0.0.0/8"), (b, "10.1.0.0/16"), (c, "2001:db8::/32")] {
        builder.prefix(node, net(prefix)).expect("a node");
    }
    builder.entry(b, net("10.0.0.0/8"), bc).expect("a link of b");
    builder.entry(b, net("2001:db8::/32"), ba).expect("a link of b");
    builder.finish().expect("a network")
}

/// All that can be asked, as text.
fn asked(network: &Network) -> String {
    let mut text = format!("{} {}\n", network.nodes(), network.links());
    let mut router = Router::new(RoutePolicy::default(), 10_000);
    let nodes = || (0..network.nodes().min(20)).map(NodeId);
    for node in nodes() {
        let links: Vec<_> = network.links_of(node).take(20).collect();
        let name = network.name(node);
        let own = (network.address4(node), network.address6(node));
        text += &format!("{name} {:?} {own:?} {links:?}\n", network.find(&name));
        for link in links {
            let ends = (network.from(link), network.to(link), network.reverse(link));
            let faces = (network.interface4(link), network.interface6(link));
            let between = network.link_between(ends.0, ends.1);
            text += &format!("{ends:?} {faces:?} {between:?} {:?}\n", network.kind(link));
        }
        for other in nodes() {
            let mut path = Vec::new();
            let address = network.address4(other).unwrap_or(Ipv4Addr::LOCALHOST).into();
            let found = router.path(network, node, other, address, 1, &mut path);
            text += &format!("{found:?} {path:?} {:?}\n", network.owner(address));
        }
        for address in ["10.1.2.3", "2001:db8::3"].map(ip) {
            let entry = network.entry(node, address, |_| true);
            text += &format!("{:?} {entry:?}\n", network.owner(address));
        }
    }
    text += &format!("{:?}", network.prefixes().collect::<Vec<_>>());
    text
}

#[test]
fn a_saved_network_is_the_same_when_it_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("internet.nigh");
    let before = network();
    before.save(&path).expect("it can be written");
    let after = Network::open(&path).expect("it can be opened");
    assert_eq!(asked(&before), asked(&after));
    assert_eq!(before.to_bytes(), std::fs::read(&path).expect("the file"));
    assert_eq!(network().to_bytes(), after.to_bytes(), "the same network makes the same bytes");
    // Over a file that is in use, and there is nothing else in the folder.
    Builder::new().finish().expect("an empty network").save(&path).expect("it can be written");
    assert_eq!(asked(&before), asked(&after));
    assert_eq!(Network::open(&path).expect("it can be opened").nodes(), 0);
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);
}

#[test]
fn damaged_files_are_refused() {
    let bytes = network().to_bytes();
    let error = |bytes: &[u8]| Network::from_bytes(bytes.to_vec()).err();
    assert_eq!(error(b""), Some(FormatError::Magic));
    assert_eq!(error(b"<graphml>"), Some(FormatError::Magic));
    for length in 8..bytes.len() {
        assert!(error(&bytes[..length]).is_some(), "{length} bytes");
    }
    let (have, should) = (bytes.len() as u64 - 1, bytes.len() as u64);
    let cut = FormatError::Length { have, should };
    assert_eq!(error(&bytes[..bytes.len() - 1]), Some(cut));
    for offset in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[offset] ^= 1 << (offset % 8);
        assert!(error(&bytes).is_some(), "byte {offset}");
    }
    let mut later = bytes.clone();
    later[8] = 2;
    assert_eq!(error(&later), Some(FormatError::Version(2)));
    let text = error(&later).map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(text, "the file has version 2, this program reads version 1 only: use a newer one");
}

#[test]
fn missing_files_are_reported_with_their_name() {
    let error = Network::open(std::path::Path::new("/none/internet.nigh")).err();
    let text = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(text.starts_with("cannot open /none/internet.nigh: "), "{text}");
}

/// Makes the checksum right.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&bytes[16..]).to_le_bytes();
    bytes[12..16].copy_from_slice(&checksum);
    bytes
}

/// Names are shown in terminals as they are.
#[test]
fn names_with_control_characters_are_refused() {
    let mut builder = Builder::new();
    for name in ["a\x1b[2J", "a\nb", "a\u{9b}1m", "\x7f"] {
        assert_eq!(builder.node(name), Err(BuildError::Control(name.to_owned())));
    }
    builder.node("some-name").expect("a node");
    let bytes = builder.finish().expect("a network").to_bytes();
    let offset = bytes.windows(9).position(|name| name == b"some-name").expect("the name") + 4;
    let with = |byte| {
        let mut bytes = bytes.clone();
        bytes[offset] = byte;
        Network::from_bytes(signed(bytes)).err().map(|error| error.to_string())
    };
    assert_eq!(with(b'.'), None);
    assert!(with(0x1b).is_some_and(|text| text.contains("a name has control characters")));
}

#[test]
fn wrong_numbers_under_a_right_checksum_do_no_harm() {
    let bytes = network().to_bytes();
    let mut random = Random::new(5);
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..4_000 {
        let mut bytes = bytes.clone();
        for _ in 0..1 + random.below(3) {
            let offset = 24 + random.below(bytes.len() as u64 - 24) as usize;
            let some = [0, 1, 2, 255, random.bits() as u8];
            bytes[offset] = some[random.below(5) as usize];
        }
        match Network::from_bytes(signed(bytes)) {
            Ok(network) => {
                asked(&network);
                taken += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 200 && taken > 200, "{refused} refused, {taken} taken");
}

proptest! {
    /// Whatever settings a link has, the file has them.
    #[test]
    fn kinds_come_back_as_they_were(
        delay in any::<u64>(), rate in proptest::option::of(1_u64..=1_000_000_000_000_000), mtu in 68_u32..65_536,
        weight in 1_u32.., relation in 0..4_usize, shares in any::<[u32; 3]>(), up in any::<bool>(),
    ) {
        let share = |number: u32| crate::settings::Share(number);
        let mut settings = LinkSettings { delay: Nanos(delay), rate, mtu, up, ..settings(0) };
        settings.duplicate = share(shares[0]);
        settings.corrupt = share(shares[1]);
        if shares[2] > 0 {
            settings.loss = crate::settings::Loss::Independent(share(shares[2]));
        }
        let kind = Kind { settings, weight, relation: Relation::ALL[relation] };
        let line = kind.to_line();
        prop_assert_eq!(Kind::from_line(line.trim_end()), Some(kind), "{}", line);
    }
}
