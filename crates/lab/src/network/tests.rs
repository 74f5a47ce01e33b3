//! Networks are what was told to their builders.

use super::*;
use crate::Nanos;

fn settings(delay: u64) -> LinkSettings {
    LinkSettings { delay: Nanos(delay * 1_000_000), ..LinkSettings::default() }
}

#[test]
fn a_small_network_is_as_it_was_told() {
    let mut builder = Builder::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| builder.node(name).expect("a node"));
    assert_eq!(builder.node("b"), Ok(b));
    let far = builder.link(a, c, &settings(30), 3, Relation::None).expect("a link");
    let near = builder.link(b, a, &settings(10), 1, Relation::Provider).expect("a link");
    let address: IpAddr = "192.0.2.1".parse().expect("an address");
    builder.address(near[0], address).expect("a link");
    builder.node_address(a, "2001:db8::1".parse().expect("an address")).expect("a node");
    let net: IpNet = "10.0.0.0/8".parse().expect("a prefix");
    let narrow: IpNet = "10.1.0.0/16".parse().expect("a prefix");
    builder.prefix(a, net).expect("a node");
    builder.prefix(c, narrow).expect("a node");
    let drafts = [far[0], far[1], near[0], near[1]];
    let (network, links) = builder.finish_with(&drafts).expect("a network");

    assert_eq!((network.nodes(), network.links()), (3, 4));
    let [forth, back, up, down] = links[..] else { panic!("four links") };
    assert_eq!((network.from(forth), network.to(forth)), (a, c));
    assert_eq!((network.from(down), network.to(down)), (a, b));
    assert_eq!(network.reverse(forth), Some(back));
    assert_eq!(network.reverse(back), Some(forth));
    assert_eq!(network.reverse(up), Some(down));
    assert_eq!(network.relation(up), Relation::Provider);
    assert_eq!(network.relation(down), Relation::Customer);
    assert_eq!(network.settings(up), &settings(10));
    assert_eq!((network.weight(forth), network.weight(down)), (3, 1));
    assert_eq!(network.links_of(a).collect::<Vec<_>>(), [forth, down]);
    assert_eq!(network.link_between(b, a), Some(up));
    assert_eq!(network.link_between(b, c), None);
    assert_eq!(network.interface4(up), "192.0.2.1".parse().ok());
    assert_eq!((network.interface4(down), network.interface6(up)), (None, None));
    assert_eq!(network.address6(a), "2001:db8::1".parse().ok());
    assert_eq!(network.owner(address), Some(Owner::Node(b)));
    let owner = |text: &str| network.owner(text.parse().expect("an address"));
    assert_eq!(owner("10.1.2.3"), Some(Owner::Prefix(c, narrow)));
    assert_eq!(owner("10.2.2.3"), Some(Owner::Prefix(a, net)));
    assert_eq!(owner("11.0.0.0"), None);
    assert_eq!((network.name(c), network.find("c")), ("c".into(), Some(c)));
    assert_eq!((network.find("192.0.2.1"), network.find("d")), (Some(b), None));
}
