//! ASes.

use super::*;
use crate::{Owner, Relation};

#[test]
fn ases_alone_are_nodes() {
    let files = ["serial-1.as-rel.txt", "serial-2.as-rel.txt", "prefix2as.txt"];
    let (network, report) = import(&files);
    assert_eq!((network.nodes(), network.links(), report.bad_count()), (5, 12, 0));
    let node = |number: u32| network.find(&format!("as{number}")).unwrap();
    let relation = |a, b| network.relation(network.link_between(node(a), node(b)).unwrap());
    assert_eq!(relation(64_500, 64_502), Relation::Customer);
    assert_eq!(relation(64_504, 64_503), Relation::Provider);
    assert_eq!(relation(64_503, 64_502), Relation::Peer);

    let owner = |address: &str| network.owner(address.parse().unwrap());
    let prefix = |number, prefix: &str| Some(Owner::Prefix(node(number), prefix.parse().unwrap()));
    assert_eq!(owner("198.51.100.200"), prefix(64_501, "198.51.100.0/24"));
    // Several origins: the first.
    assert_eq!(owner("198.51.100.100"), prefix(64_502, "198.51.100.0/25"));
    assert_eq!(owner("203.0.113.5"), prefix(64_503, "203.0.113.0/24"));
    assert_eq!(owner("2001:db8::5"), prefix(64_504, "2001:db8::/32"));
    // Routers answer from their own prefixes, or from addresses by number.
    assert_eq!(network.address4(node(64_500)), Some("192.0.2.1".parse().unwrap()));
    assert_eq!(network.address6(node(64_504)), Some("2001:db8::1".parse().unwrap()));
    assert!(network.address4(node(64_504)).is_some_and(|address| address.is_private()));
    assert_eq!(report.prefixes, 5);
    assert_eq!(report.skipped[0].count, 2);
}

#[test]
fn traces_and_ases_make_one_network() {
    let (network, report) = import(&["berlin.txt", "prefix2as.txt", "serial-1.as-rel.txt"]);
    let far = path(&network, "berlin", "203.0.113.9");
    let relations: Vec<_> = far.iter().map(|&link| network.relation(link)).collect();
    // ASes from traceroute itself count before prefix2as.
    assert!(relations.iter().all(|&relation| relation == Relation::None));
    let home = network.owner("203.0.113.200".parse().unwrap()).unwrap();
    assert_eq!(network.name(home.node()), "203.0.113.1");
    assert!(report.skipped.iter().any(|count| count.what == "the AS of a prefix has no router"));

    let text = "traceroute to 203.0.113.9 (203.0.113.9)\n1 192.0.2.1 1 ms\n2 *\n3 198.51.100.1 2 ms\n4 203.0.113.9 3 ms\n";
    let mut importer = Importer::new();
    importer.read(text.as_bytes(), Path::new("pc"), None, &mut |_| ()).unwrap();
    let ases = "192.0.2.0 24 64500\n198.51.100.0 24 64502\n203.0.113.0 24 64504\n";
    importer.read(ases.as_bytes(), Path::new("p"), None, &mut |_| ()).unwrap();
    importer.file(&sample("serial-1.as-rel.txt"), None, &mut |_| ()).unwrap();
    let (network, _) = importer.finish(&ImportOptions::default()).unwrap();
    let far = path(&network, "pc", "203.0.113.9");
    let relations: Vec<_> = far.iter().map(|&link| network.relation(link)).collect();
    // The silent router is taken to be in the AS of the one before it.
    let expected = [Relation::None, Relation::None, Relation::Customer, Relation::Customer];
    assert_eq!(relations, expected);
}

#[test]
fn bad_lines_are_reported_and_the_others_taken() {
    let text = "1|2|-1\n2|1|0\n3|4|5\n5|5|0\nx|6|0\n1|2|0|bgp|more\n1|3\n7|8|0\n2|1|1\n";
    let expected = [
        (2, "the two ASes have another relation before"),
        (3, "a relation is -1 (provider and customer) or 0 (peers)"),
        (4, "an AS is related to itself"),
        (5, "this is not a relation of two ASes"),
        (6, "this is not a relation of two ASes"),
        (7, "a relation is -1 (provider and customer) or 0 (peers)"),
        (9, "a relation is -1 (provider and customer) or 0 (peers)"),
    ];
    assert_eq!(bad(Format::AsRelations, text), expected);

    let text = "192.0.2.0 24 1\n192.0.2.1 24 1\n192.0.2.0 33 1\nhere 24 1\n192.0.2.0 24 1_x\n192.0.2.0 24\n10.0.0.0 many 1\n";
    let expected = [
        (2, "the prefix has bits behind its length"),
        (3, "the length does not fit the family"),
        (4, "this is not an address"),
        (5, "an origin is no AS number"),
        (6, "this is not a prefix, length and AS"),
        (7, "this is not the length of a prefix"),
    ];
    assert_eq!(bad(Format::PrefixToAs, text), expected);
}
