//! Requests as they come in lines, and names as people give them.

use super::{FindError, Request, find::Finder, parse};
use crate::{LinkSettings, Network, NodeId, Relation, network::Builder, scene::HostTable};

/// Nodes `a`, `b-1`, `c` and `b`, with links a-b-1 (two), a-c and c>b.
fn network() -> Network {
    let mut builder = Builder::new();
    let nodes = ["a", "b-1", "c", "b"].map(|name| builder.node(name).expect("a node"));
    let [a, b1, c, b] = nodes;
    let settings = LinkSettings::default();
    for (from, to) in [(a, b1), (a, b1), (a, c)] {
        builder.link(from, to, &settings, 1, Relation::None).expect("a link");
    }
    let kind = crate::network::Kind { settings, weight: 1, relation: Relation::None };
    let kind = builder.kind(&kind).expect("a kind");
    builder.one_way(c, b, kind).expect("a link");
    builder.node_address(a, "10.0.0.1".parse().expect("an address")).expect("an address");
    builder.finish().expect("a network")
}

fn hosts() -> Vec<HostTable> {
    serde_json::from_str(
        r#"[{ "name": "pc", "attach": "a", "address": "20.0.0.10/24" },
            { "name": "c", "attach": "b", "address": ["2001:db8::5/64"] }]"#,
    )
    .expect("hosts")
}

#[test]
fn requests_are_lines_of_json_and_nothing_else_is_taken() {
    let link = |link: &str, set: &str| Request::Link {
        link: link.to_owned(),
        set: set.parse().expect("settings"),
    };
    for (line, right) in [
        (r#"{"do":"status"}"#, Some(Request::Status {})),
        (
            r#"{"do":"path","from":"pc","to":"10.0.0.1"}"#,
            Some(Request::Path { from: "pc".to_owned(), to: "10.0.0.1".to_owned() }),
        ),
        (r#"{"do":"link","link":"a-c"}"#, Some(link("a-c", ""))),
        (
            r#"{"do":"link","link":"a-c","set":{"delay":"50ms","loss":"1%","mtu":1400}}"#,
            Some(link("a-c", "delay=50ms loss=1% mtu=1400")),
        ),
        (
            r#"{"do":"node","node":"a","up":false}"#,
            Some(Request::Node { node: "a".to_owned(), up: Some(false) }),
        ),
        (r#"{"do":"events"}"#, Some(Request::Events {})),
        ("", None),
        ("null", None),
        (r#"{"do":"stop"}"#, None),
        (r#"{"do":"status","now":true}"#, None),
        (r#"{"do":"path","from":"pc"}"#, None),
        (r#"{"do":"link","link":"a-c","set":{"delai":"50ms"}}"#, None),
        (r#"{"do":"link","link":"a-c","set":{"loss":"101%"}}"#, None),
        (r#"{"do":"node","node":"a","up":"no"}"#, None),
        (r#"{"do":"links","limit":-1}"#, None),
        (r#"{"do":"status"}{"do":"status"}"#, None),
    ] {
        let parsed = parse(line.as_bytes());
        assert_eq!(parsed.as_ref().ok(), right.as_ref(), "{line}: {parsed:?}");
        if let Ok(request) = parsed {
            let again = serde_json::to_vec(&request).expect("a line");
            assert_eq!(parse(&again).ok(), Some(request), "{line}");
        }
    }
}

#[test]
fn links_are_named_by_their_ends_with_hyphens_in_names_and_with_parallel_ones() {
    let (network, hosts) = (network(), hosts());
    let finder = Finder::new(&network, &hosts);
    for (text, from, to, index, both_ways) in [
        ("a-c", "a", "c", 0, true),
        ("c-a", "c", "a", 0, true),
        ("a>c", "a", "c", 0, false),
        ("a-b-1", "a", "b-1", 0, true),
        ("b-1-a", "b-1", "a", 0, true),
        ("a>b-1#2", "a", "b-1", 1, false),
        ("10.0.0.1-c", "a", "c", 0, true),
        ("c>b", "c", "b", 0, false),
    ] {
        let meant = finder.link(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(meant.both_ways, both_ways, "{text}");
        assert_eq!(network.name(network.from(meant.link)), from, "{text}");
        let parallel: Vec<_> = network
            .links_of(network.from(meant.link))
            .filter(|link| network.name(network.to(*link)) == to)
            .collect();
        assert_eq!(parallel.get(index), Some(&meant.link), "{text}");
    }
    for (text, sentence) in [
        ("a", "a link is two nodes, `A-B` for both directions or `A>B` for one: a is not"),
        ("a-x", "there is no node x"),
        ("a>", "there is no node "),
        ("c-b", "the link from c to b has no reverse direction: write `c>b`"),
        ("a-b", "there is no link from a to b; a has links to b-1, b-1, c"),
        ("a-c#2", "there are 1 links from a to c: `#1` is the first"),
        ("a-c#0", "there are 1 links from a to c: `#1` is the first"),
        ("a-c#x", "there is no node c#x: did you mean c?"),
    ] {
        let error = finder.link(text).expect_err(text);
        assert_eq!(error.to_string(), sentence, "{text}");
    }
}

#[test]
fn a_name_that_can_mean_several_links_is_refused_and_one_with_a_number_in_it_is_found() {
    let mut builder = Builder::new();
    let names = ["a", "b", "a-b", "c", "b-c", "10.0.0.1", "10.0.0.1#17", "10.0.0.1#1"];
    let nodes = names.map(|name| builder.node(name).expect("a node"));
    let [a, b, ab, c, bc, home, far, odd] = nodes;
    let settings = LinkSettings::default();
    for (from, to) in [(a, bc), (ab, c), (a, home), (a, far), (b, odd), (b, home)] {
        builder.link(from, to, &settings, 1, Relation::None).expect("a link");
    }
    builder.node_address(home, "10.0.0.1".parse().expect("an address")).expect("an address");
    let network = builder.finish().expect("a network");
    let finder = Finder::new(&network, &[]);
    let meant = |text: &str| finder.link(text).map(|meant| network.to(meant.link));
    assert_eq!(meant("a>b-c"), Ok(bc));
    assert_eq!(meant("a-b>c"), Ok(c));
    assert_eq!(meant("a-10.0.0.1"), Ok(home));
    assert_eq!(meant("a-10.0.0.1#1"), Ok(home));
    assert_eq!(meant("a-10.0.0.1#17"), Ok(far));
    assert_eq!(meant("a-10.0.0.1#17#1"), Ok(far));
    for (text, readings) in
        [("a-b-c", "a>b-c or a-b>c"), ("b-10.0.0.1#1", "b>10.0.0.1 or b>10.0.0.1#1")]
    {
        let right = format!("{text} can mean {readings}: write `>`, or addresses of the nodes");
        assert_eq!(meant(text).map_err(|error| error.to_string()), Err(right.clone()));
        // Events say the same.
        assert_eq!(crate::stage::find_link(&network, text), Err(right));
    }
    // Of several readings of a name only one is a link: `a-b` is a node, but no neighbour of `10.0.0.1`.
    assert_eq!(meant("b-10.0.0.1"), Ok(home));
}

#[test]
fn ends_of_paths_are_hosts_nodes_and_addresses() {
    let (network, hosts) = (network(), hosts());
    let finder = Finder::new(&network, &hosts);
    let [a, b] = ["a", "b"].map(|name| network.find(name).expect("a node"));
    for (name, node, address, host) in [
        ("pc", a, Some("20.0.0.10"), Some("pc")),
        ("a", a, Some("10.0.0.1"), None),
        // The host comes before the node of the same name.
        ("c", b, Some("2001:db8::5"), Some("c")),
        ("b", b, None, None),
        ("20.0.0.10", a, Some("20.0.0.10"), Some("pc")),
        ("20.0.0.77", a, Some("20.0.0.77"), None),
        ("10.0.0.1", a, Some("10.0.0.1"), None),
    ] {
        let end = finder.end(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = (end.node, end.address, end.host.as_deref());
        assert_eq!(found, (node, address.map(|a| a.parse().expect("an address")), host), "{name}");
    }
    assert_eq!(
        finder.end("9.9.9.9"),
        Err(FindError::NoOwner("9.9.9.9".parse().expect("an address")))
    );
}

#[test]
fn names_that_are_nearly_right_are_shown() {
    let mut builder = Builder::new();
    for name in ["frankfurt", "frankfort", "paris", "london"] {
        builder.node(name).expect("a node");
    }
    let network = builder.finish().expect("a network");
    let finder = Finder::new(&network, &[]);
    for (name, sentence) in [
        ("frankfurd", "there is no node frankfurd: did you mean frankfurt or frankfort?"),
        ("pariss", "there is no node pariss: did you mean paris?"),
        ("tokyo", "there is no node tokyo"),
        ("a", "there is no node a"),
        ("pairs", "there is no node pairs: did you mean paris?"),
    ] {
        assert_eq!(finder.node(name).expect_err(name).to_string(), sentence);
    }
    assert_eq!(finder.node("london"), Ok(NodeId(3)));
}
