//! Topologies of other programs.

use super::*;
use crate::settings::{Loss, Share};

#[test]
fn the_oracles_topologies_are_networks() {
    let (network, report) = import(&["oracle.toml"]);
    assert_eq!((network.nodes(), network.links(), report.bad_count()), (3, 5, 0));
    let [berlin, munich, hamburg] =
        ["berlin", "munich", "hamburg"].map(|name| network.find(name).unwrap());
    let link = network.link_between(berlin, munich).unwrap();
    let settings = network.settings(link);
    assert_eq!((settings.delay, settings.rate), (Nanos(4_500_000), Some(1_000_000_000)));
    assert_eq!(settings.loss, Loss::Independent("1%".parse::<Share>().unwrap()));
    assert_eq!(network.weight(link), 10);
    // One direction only.
    assert!(network.link_between(munich, hamburg).is_none());
    // An explicit next hop counts before weights.
    let expected = [("hamburg", 2_000), ("munich", 6_000)];
    assert_eq!(hops(&network, "berlin", "192.0.2.1"), named(&expected));
    assert_eq!(hops(&network, "berlin", "10.0.0.2"), named(&expected));
    assert_eq!(hops(&network, "munich", "203.0.113.1").last().unwrap().0, "hamburg");

    let (network, report) = import(&["oracle-conf/main.conf"]);
    assert_eq!((network.nodes(), network.links(), report.bad_count()), (2, 2, 0));
    let link = path(&network, "10.0.0.1", "192.0.2.1")[0];
    let back = network.reverse(link).unwrap();
    let rates = [link, back].map(|link| network.settings(link).rate);
    assert_eq!(rates, [Some(100_000_000), Some(50_000_000)]);
}

#[test]
fn what_the_oracle_refuses_is_reported_by_line() {
    let mut importer = Importer::new();
    let text = "[[router]]\nid = \"10.0.0.1\"\n[[link]]\nfrom = 1\n";
    let error = importer.read(text.as_bytes(), Path::new("x.toml"), None, &mut |_| ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the topology is invalid and was ignored (x.toml:"), "{text}");
}

#[test]
fn places_on_earth_are_delays() {
    let (network, report) = import(&["zoo.graphml"]);
    assert_eq!((network.nodes(), network.links(), report.bad_count()), (3, 4, 0));
    let [berlin, munich] = ["Berlin", "Munich"].map(|name| network.find(name).unwrap());
    let settings = network.settings(network.link_between(berlin, munich).unwrap());
    // 504 km.
    assert_eq!((settings.delay, settings.rate), (Nanos(2_520_000), Some(10_000_000_000)));
    let other = network.find("Berlin zoo").unwrap();
    let settings = network.settings(network.link_between(munich, other).unwrap());
    assert_eq!((settings.delay, settings.rate), (Nanos(1_000_000), None));
    // Nodes without addresses get some by their number.
    let address = network.address4(other).unwrap();
    assert_eq!(network.find(&address.to_string()), Some(other));
}

#[test]
fn bad_elements_are_reported_by_line() {
    let text = "<graphml>\n<graph edgedefault=\"directed\">\n<node id=\"a\"/>\n<node id=\"a\"/>\n<node/>\n<node id=\"b\"/>\n<edge source=\"a\" target=\"c\"/>\n<edge source=\"a\" target=\"b\"/>\n</graph></graphml>";
    let expected = [
        (4, "a node is defined a second time"),
        (5, "a node has no id"),
        (7, "an edge joins nodes that are not there"),
    ];
    assert_eq!(bad(Format::GraphMl, text), expected);
    let (network, _) = import_text(Format::GraphMl, text);
    assert_eq!((network.nodes(), network.links()), (2, 1));
}

#[test]
fn text_that_is_no_xml_or_grows_without_end_is_refused() {
    let bomb = "<!DOCTYPE graphml [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;\">]><graphml>&b;</graphml>";
    for text in ["<graphml>\n<graph>", bomb] {
        let mut importer = Importer::new();
        let result = importer.read(text.as_bytes(), Path::new("x"), None, &mut |_| ());
        let text = result.unwrap_err().to_string();
        assert!(text.contains("the text is no XML (x:"), "{text}");
    }
}
