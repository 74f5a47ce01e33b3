//! Networks are what their builders were given, and files what was saved.

mod files;
mod random;

use super::*;
use crate::Nanos;

fn settings(delay: u64) -> LinkSettings {
    LinkSettings { delay: Nanos(delay * 1_000_000), ..LinkSettings::default() }
}

fn net(text: &str) -> IpNet {
    text.parse().expect("a prefix")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn a_small_network_is_as_it_was_built() {
    let mut builder = Builder::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| builder.node(name).expect("a node"));
    assert_eq!(builder.node("b"), Ok(b));
    let far = builder.link(a, c, &settings(30), 3, Relation::None).expect("a link");
    let near = builder.link(b, a, &settings(10), 1, Relation::Provider).expect("a link");
    builder.address(near[0], ip("192.0.2.1")).expect("a link");
    builder.node_address(a, ip("2001:db8::1")).expect("a node");
    builder.prefix(a, net("10.0.0.0/8")).expect("a node");
    builder.prefix(c, net("10.1.0.0/16")).expect("a node");
    builder.entry(a, net("10.1.0.0/16"), near[1]).expect("a link of a");
    let (network, links) =
        builder.finish_with(&[far[0], far[1], near[0], near[1]]).expect("a network");

    assert_eq!((network.nodes(), network.links()), (3, 4));
    let [forward, reverse, up, down] = links[..] else { panic!("four links") };
    assert_eq!((network.from(forward), network.to(forward)), (a, c));
    assert_eq!((network.from(down), network.to(down)), (a, b));
    assert_eq!(network.reverse(forward), Some(reverse));
    assert_eq!(network.reverse(reverse), Some(forward));
    assert_eq!(network.reverse(up), Some(down));
    assert_eq!(network.relation(up), Relation::Provider);
    assert_eq!(network.relation(down), Relation::Customer);
    assert_eq!(network.settings(up), &settings(10));
    assert_eq!((network.weight(forward), network.weight(down)), (3, 1));
    assert_eq!(network.links_of(a).collect::<Vec<_>>(), [forward, down]);
    assert_eq!(network.link_between(b, a), Some(up));
    assert_eq!(network.link_between(b, c), None);
    assert_eq!(network.interface4(up), "192.0.2.1".parse().ok());
    assert_eq!((network.interface4(down), network.interface6(up)), (None, None));
    assert_eq!(network.address6(a), "2001:db8::1".parse().ok());
    let owner = |text: &str| network.owner(ip(text));
    assert_eq!(owner("192.0.2.1"), Some(Owner::Node(b)));
    assert_eq!(owner("10.1.2.3"), Some(Owner::Prefix(c, net("10.1.0.0/16"))));
    assert_eq!(owner("10.2.2.3"), Some(Owner::Prefix(a, net("10.0.0.0/8"))));
    assert_eq!((owner("11.0.0.0"), owner("::")), (None, None));
    assert_eq!(network.entry(a, ip("10.1.255.1"), |_| true), Some(down));
    assert_eq!(network.entry(a, ip("10.1.255.1"), |link| link != down), None);
    assert_eq!(network.entry(a, ip("10.2.0.0"), |_| true), None);
    assert_eq!((network.name(c), network.find("c")), ("c".into(), Some(c)));
    assert_eq!((network.find("192.0.2.1"), network.find("d")), (Some(b), None));
}

#[test]
fn addresses_and_names_that_nobody_gave_are_counted_out() {
    let mut builder = Builder::with_plan(Plan {
        node4: Some(Ipv4Addr::new(10, 0, 0, 0)),
        link4: Some(Ipv4Addr::new(10, 1, 0, 0)),
        node6: Some("2001:db8::".parse().expect("an address")),
        link6: Some("2001:db8:1::".parse().expect("an address")),
    });
    let first = builder.unnamed(3).expect("nodes");
    let (a, b, c) = (first, NodeId(1), NodeId(2));
    let ends = [(a, b), (b, c)]
        .map(|(a, b)| builder.link(a, b, &settings(1), 1, Relation::None).expect("a link"));
    builder.node_address(b, ip("192.0.2.7")).expect("a node");
    builder.address(ends[0][0], ip("192.0.2.8")).expect("a link");
    builder.prefix(c, net("10.0.0.0/8")).expect("a node");
    let (network, links) = builder.finish_with(&[ends[1][1]]).expect("a network");
    let last = links[0];
    let v4 = |text: &str| text.parse::<Ipv4Addr>().ok();
    assert_eq!((network.address4(a), network.address4(b)), (v4("10.0.0.0"), v4("192.0.2.7")));
    assert_eq!(network.address6(b), "2001:db8::1".parse().ok());
    assert_eq!(network.interface4(last), v4(&format!("10.1.0.{}", last.0)));
    assert_eq!(network.interface6(last), format!("2001:db8:1::{}", last.0).parse().ok());
    assert_eq!(network.owner(ip("10.0.0.2")), Some(Owner::Node(c)));
    assert_eq!(network.owner(ip("192.0.2.7")), Some(Owner::Node(b)));
    assert_eq!(network.owner(ip("192.0.2.8")), Some(Owner::Node(a)));
    assert_eq!(network.owner(ip(&format!("10.1.0.{}", last.0))), Some(Owner::Node(c)));
    assert_eq!(network.owner(ip("2001:db8:1::")), Some(Owner::Node(a)));
    // Those that were given others do not have the ones that were counted out.
    let behind = Some(Owner::Prefix(c, net("10.0.0.0/8")));
    assert_eq!(network.owner(ip("10.0.0.1")), behind);
    assert_eq!(network.owner(ip("10.1.0.0")), behind);
    assert_eq!(network.owner(ip("10.0.0.3")), behind);
    assert_eq!((network.name(c), network.find("n2")), ("n2".into(), Some(c)));
    assert_eq!((network.find("n3"), network.find("n02"), network.find("2")), (None, None, None));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let mut builder = Builder::new();
    let [a, b] = ["a", "n3"].map(|name| builder.node(name).expect("a node"));
    let none = NodeId(9);
    let link = |builder: &mut Builder, a, b, weight| {
        builder.link(a, b, &settings(1), weight, Relation::Peer)
    };
    assert_eq!(link(&mut builder, a, none, 1), Err(BuildError::NoNode(9, 2)));
    assert_eq!(link(&mut builder, a, a, 1), Err(BuildError::Itself(0)));
    assert_eq!(link(&mut builder, a, b, 0), Err(BuildError::NoWeight));
    let huge = LinkSettings { mtu: 1 << 20, ..settings(1) };
    let error = builder.link(a, b, &huge, 1, Relation::None);
    assert!(matches!(error, Err(BuildError::Unspeakable(_))), "{error:?}");
    let [forward, _] = link(&mut builder, a, b, 1).expect("a link");
    let prefix = net("10.0.0.0/8");
    assert_eq!(builder.entry(b, prefix, forward), Err(BuildError::Elsewhere(prefix, 1, 0)));
    let kinds = [Relation::Customer, Relation::Peer].map(|relation| {
        builder.kind(&Kind { settings: settings(1), weight: 1, relation }).expect("a kind")
    });
    let wrong = BuildError::Relations(Relation::Customer, Relation::Peer);
    assert_eq!(builder.join(a, b, kinds[0], kinds[1]), Err(wrong));
    let alone = builder.one_way(a, b, kinds[0]).expect("a link");
    let mut other = Builder::new();
    other.unnamed(2).expect("nodes");
    assert_eq!(other.address(alone, ip("192.0.2.1")), Err(BuildError::NoLink));

    builder.unnamed(2).expect("nodes");
    builder.prefix(a, prefix).expect("a node");
    builder.prefix(a, prefix).expect("a node");
    builder.entry(a, prefix, forward).expect("an entry");
    let taken = BuildError::NameTaken(1, "n3".to_owned(), 3);
    assert_eq!(builder.finish().err(), Some(taken));

    let twice = |fill: &dyn Fn(&mut Builder, Draft) -> Result<(), BuildError>| {
        let mut builder = Builder::new();
        let [a, b] = ["a", "b"].map(|name| builder.node(name).expect("a node"));
        let [forward, _] = link(&mut builder, a, b, 1).expect("a link");
        fill(&mut builder, forward).expect("it is added one by one");
        builder.finish().err()
    };
    let error = twice(&|builder, forward| {
        builder.entry(a, prefix, forward)?;
        builder.entry(a, net("10.9.9.9/8"), forward)
    });
    assert_eq!(error, Some(BuildError::TwoEntries(0, prefix)));
    let error = twice(&|builder, _| {
        builder.prefix(b, prefix)?;
        builder.prefix(a, prefix)
    });
    assert_eq!(error, Some(BuildError::TwoOwners(prefix, 0, 1)));
    let error = twice(&|builder, forward| {
        builder.address(forward, ip("10.0.0.1"))?;
        builder.node_address(a, ip("10.0.0.1"))?;
        builder.prefix(a, net("10.0.0.1/32"))
    });
    assert_eq!(error, None, "they are all of one node");
}
