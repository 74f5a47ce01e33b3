//! Routers, links and aliases.

use super::*;
use crate::Relation;

#[test]
fn nodes_and_links_are_those_of_the_files() {
    let (network, report) = import(&["itdk.nodes", "itdk.links", "itdk.nodes.as"]);
    assert_eq!((network.nodes(), network.links(), report.bad_count()), (4, 6, 0));
    assert_eq!(network.find("198.51.100.2"), network.find("N1"));
    let [n1, n2, n3, n4] = ["N1", "N2", "N3", "N4"].map(|name| network.find(name).unwrap());
    let link = network.link_between(n1, n2).unwrap();
    assert_eq!(network.interface4(link), Some("198.51.100.2".parse().unwrap()));
    let back = network.reverse(link).unwrap();
    assert_eq!(network.interface4(back), Some("198.51.100.1".parse().unwrap()));
    // The interface of N3 is known, so it is joined to the others of its link, and they are not.
    assert!(network.link_between(n3, n2).is_some() && network.link_between(n3, n4).is_some());
    assert!(network.link_between(n2, n4).is_none());
    // Nothing gives delays.
    assert_eq!(network.settings(link).delay, Nanos(1_000_000));
    assert!(report.assumptions.iter().any(|text| text.starts_with("3 links have no known delay")));
}

#[test]
fn aliases_make_one_router_of_interfaces() {
    let text = "traceroute to 203.0.113.9 (203.0.113.9)
1 198.51.100.1 1 ms
2 203.0.113.9 2 ms
traceroute to 203.0.113.8 (203.0.113.8)
1 198.51.100.5 1 ms
2 203.0.113.8 2 ms
";
    let import = |aliases: bool| {
        let mut importer = Importer::new();
        if aliases {
            let nodes = Some(Format::Nodes);
            importer.file(&sample("aliases.txt"), nodes, &mut |_| ()).unwrap();
        }
        importer.read(text.as_bytes(), Path::new("pc"), None, &mut |_| ()).unwrap();
        importer.finish(&ImportOptions::default()).unwrap()
    };
    let (apart, report) = import(false);
    assert_eq!(apart.nodes(), 5);
    assert!(report.assumptions.iter().any(|text| text.starts_with("Each address is a router")));
    let (one, report) = import(true);
    assert_eq!(one.nodes(), 4);
    assert!(!report.assumptions.iter().any(|text| text.starts_with("Each address is a router")));
    // Each trace came in by its own interface, so there are two links to the router.
    assert_eq!(answers(&one, "pc", "203.0.113.9")[0], Some("198.51.100.1".parse().unwrap()));
    assert_eq!(answers(&one, "pc", "203.0.113.8")[0], Some("198.51.100.5".parse().unwrap()));
}

#[test]
fn ases_of_routers_give_links_their_relations() {
    let files = ["itdk.nodes", "itdk.links", "itdk.nodes.as", "serial-1.as-rel.txt"];
    let (network, _) = import(&files);
    let [n1, n2, n3] = ["N1", "N2", "N3"].map(|name| network.find(name).unwrap());
    let relation = |a, b| network.relation(network.link_between(a, b).unwrap());
    assert_eq!([relation(n1, n2), relation(n2, n1)], [Relation::Peer; 2]);
    assert_eq!(relation(n2, n3), Relation::None);
}

#[test]
fn bad_lines_are_reported_and_the_others_taken() {
    let text = "node N1: 192.0.2.1\nnode N2: 192.0.2.1 192.0.2.2\nnode N1: 192.0.2.5\nnode N4: x\n";
    let expected = [
        (2, "another router has this address"),
        (3, "the router is defined a second time"),
        (4, "a router's line has a word that is not an address"),
    ];
    assert_eq!(bad(Format::Nodes, text), expected);

    let text = "link L1: N1:192.0.2.1 N2\nlink L2: N1:192.0.2.1\nlink L3 N1 N2\nlink L4: N2:192.0.2.1 N1:y\nlink L5: N2:192.0.2.1 N3\n";
    let expected = [
        (2, "a link joins two routers at least"),
        (3, "this is not a link of routers"),
        (4, "this is not a link of routers"),
        (5, "another router has this address"),
    ];
    assert_eq!(bad(Format::Links, text), expected);
}

#[test]
fn a_link_of_very_many_routers_is_a_star() {
    let members: String = (0..100).map(|n| format!(" N{n}:10.0.0.{n}")).collect();
    let (network, report) = import_text(Format::Links, &format!("link L1: {members}\n"));
    assert_eq!((network.nodes(), network.links()), (100, 198));
    assert!(report.skipped.iter().any(|count| count.what.contains("very many")));
}
