//! Files that load, files that do not, and their notices.

use std::{collections::BTreeMap, fs, path::Path};
use topo::{
    Builder, Change, ExternalPath, Feed, IpNet, LinkKey, Options, RouterId, dump, generate,
    load::{self, LoadError, Notices},
};

const ORACLE_CONF: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/oracle_conf");

fn router(text: &str) -> RouterId {
    text.parse().unwrap()
}

fn prefix(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// A builder of all changes.
fn built(changes: Vec<Change>) -> Builder {
    let mut builder = Builder::new(Options::default());
    for change in changes {
        builder.apply(Feed::CONFIGURATION, change).unwrap();
    }
    builder
}

fn conf(main: &str, routers: &[(&str, &str)]) -> Result<(Vec<Change>, Notices), LoadError> {
    let routers: BTreeMap<RouterId, &str> =
        routers.iter().map(|(id, text)| (router(id), *text)).collect();
    let mut changes = Vec::new();
    let notices = load::oracle_conf::parse(
        main.as_bytes(),
        Path::new("oracle.conf"),
        &mut |_, id| {
            (id.to_string().into(), Ok(routers.get(&id).map(|text| text.as_bytes().to_vec())))
        },
        &mut |change| changes.push(change),
    )?;
    Ok((changes, notices))
}

fn toml(text: &str) -> Result<(Vec<Change>, Notices), LoadError> {
    let mut changes = Vec::new();
    let name = Path::new("network.toml");
    let notices =
        load::toml::parse(text.as_bytes(), name, &mut |change| changes.push(change), &mut |_| ())?;
    Ok((changes, notices))
}

/// The notices, a line each.
fn lines(notices: &Notices) -> Vec<String> {
    notices.first.iter().map(ToString::to_string).collect()
}

fn refused(result: Result<(Vec<Change>, Notices), LoadError>) -> Vec<String> {
    match result {
        Err(LoadError::Bad(notices)) => lines(&notices),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn the_figures_of_the_report_load_as_they_are() {
    let mut changes = Vec::new();
    let main = Path::new(ORACLE_CONF).join("oracle.conf");
    let notices = load::oracle_conf::load(
        &main,
        Some(&Path::new(ORACLE_CONF).join("routers")),
        &mut |change| changes.push(change),
        &mut |_| (),
    )
    .unwrap();
    let builder = built(changes);
    let topology = builder.topology();
    assert_eq!(topology.routers().count(), 6);
    assert_eq!(
        topology.internal().collect::<Vec<_>>(),
        [
            (prefix("127.0.0.1/32"), router("10.0.0.4")),
            (prefix("192.168.0.0/16"), router("10.0.0.4")),
            (prefix("195.37.16.224/28"), router("10.0.0.1")),
            (prefix("195.37.16.240/28"), router("10.0.0.2")),
        ]
    );
    assert_eq!(
        topology.routes().collect::<Vec<_>>(),
        [
            (
                prefix("0.0.0.0/2"),
                router("10.8.0.1"),
                ExternalPath { as_number: 1, as_distance: 5 }
            ),
            (
                prefix("0.0.0.0/4"),
                router("10.8.0.2"),
                ExternalPath { as_number: 2778, as_distance: 6 }
            ),
        ]
    );
    // The figure has one router's file only: its cards lead nowhere, and nothing is an error.
    assert_eq!(topology.links().count(), 0);
    assert_eq!(notices.errors, 0);
    let text = lines(&notices).join("\n");
    assert!(text.contains("10.0.0.1 is not connected (5 of 6 have no file)"), "{text}");
    assert!(text.contains("10.0.0.4:1: nic 0: no router has 10.0.1.3"), "{text}");
    assert!(text.contains("route 4 10.8.0.1: there is no such `nic` line"), "{text}");
}

/// The routers around that of figure 11.
const NEIGHBOURS: [(&str, &str); 3] = [
    ("10.0.0.1", "nic 0 10.0.1.3 10.0.1.4 UP\nlink 0 35 20 0 3\n"),
    ("10.0.0.2", "nic 7 10.0.1.5 10.0.1.6 UP\nlink 7 35 10 0 1\n"),
    ("10.0.0.3", "nic 0 10.0.1.11 10.0.1.12 DOWN\nlink 0 4 10 0 1\n"),
];

#[test]
fn cards_with_each_others_addresses_are_joined_and_routes_override() {
    let main = fs::read_to_string(Path::new(ORACLE_CONF).join("oracle.conf")).unwrap();
    let figure = fs::read_to_string(Path::new(ORACLE_CONF).join("routers/10.0.0.4")).unwrap();
    let mut routers = NEIGHBOURS.to_vec();
    routers.push(("10.0.0.4", &figure));
    let (changes, _) = conf(&main, &routers).unwrap();
    let builder = built(changes);
    let links: Vec<_> = builder.topology().links().collect();
    let shown: Vec<_> = links
        .iter()
        .map(|(key, link)| format!("{key}: {} {} {}", link.bandwidth, link.latency, link.weight))
        .collect();
    // Each direction has its own properties, and the card that is down has none.
    assert_eq!(
        shown,
        [
            "10.0.0.1 to 10.0.0.4 (0): 35 20 3",
            "10.0.0.2 to 10.0.0.4 (7): 35 10 1",
            "10.0.0.4 to 10.0.0.1 (0): 35 100 1",
            "10.0.0.4 to 10.0.0.2 (1): 35 10 1",
        ]
    );
    let via = |to: &str, id| LinkKey { from: router("10.0.0.4"), to: router(to), id };
    assert_eq!(
        builder.topology().next_hops().collect::<Vec<_>>(),
        [
            (router("10.0.0.4"), router("10.0.0.1"), via("10.0.0.1", 0)),
            (router("10.0.0.4"), router("10.0.0.2"), via("10.0.0.2", 1)),
        ]
    );
}

#[test]
fn a_mistake_in_oracle_conf_is_refused_with_its_line() {
    let main = "router 10.0.0.1 15\nrouter 10.0.0.1\nsnetwork 192.0.2.0/33 10.0.0.1 14\n\
                enetwork 192.0.2.0/24 10.0.0.1 14 1 70000\n# a comment\nnetwork\nthreads two\n";
    assert_eq!(
        refused(conf(main, &[("10.0.0.1", "nic 0 192.0.2.1 192.0.2.2 ON\nlink 0 1 1 0 -1\n")])),
        [
            "oracle.conf:2: router: needs 2 words: ADDRESS NICS",
            "oracle.conf:3: snetwork: `192.0.2.0/33` is not a prefix such as 192.0.2.0/24",
            "oracle.conf:4: enetwork: DISTANCE `70000` is not a number in its range",
            "oracle.conf:6: network: is not a keyword; the keywords are configdir, routers, threads, \
             router, snetwork, enetwork",
            "oracle.conf:7: threads: NUMBER `two` is not a number in its range",
            "10.0.0.1:1: nic: state `ON` is neither UP nor DOWN",
            "10.0.0.1:2: link: WEIGHT `-1` is not a number in its range",
        ]
    );
    let endless = format!("router {}", "1".repeat(10_000));
    assert_eq!(refused(conf(&endless, &[])), ["oracle.conf:1: the line is longer than 4096 bytes"]);
    let nan = [("10.0.0.1", "nic 0 192.0.2.1 192.0.2.2 UP\nlink 0 NaN 1 0 1\n")];
    assert_eq!(
        refused(conf("router 10.0.0.1 15", &nan)),
        ["10.0.0.1:2: link: bandwidth NaN is out of range: it must be 0 or more"]
    );
}

#[test]
fn what_is_odd_in_oracle_conf_is_a_warning() {
    let main =
        "routers 1\nrouter 10.0.0.1 1\nrouter 10.0.0.2 9\nsnetwork 192.0.2.1/24 10.0.0.9 8\n";
    let routers = [
        ("10.0.0.1", "nic 1 192.0.2.1 192.0.2.2 UP\nlink 1 1 1 0 1\nlink 2 1 1 0 1\n"),
        ("10.0.0.2", "nic 0 192.0.2.2 192.0.2.1 UP\nroute 0 10.0.0.1\nroute 0 10.0.0.7\n"),
    ];
    let (changes, notices) = conf(main, &routers).unwrap();
    assert_eq!(
        lines(&notices),
        [
            "oracle.conf:4: snetwork: 192.0.2.1/24 has host bits set; write 192.0.2.0/24",
            "oracle.conf:4: router 10.0.0.9: is not declared: its networks wait for it; add \
             `router 10.0.0.9 15`",
            "oracle.conf:1: routers: 1 are allowed, but there are 2",
            "10.0.0.1:1: nic 1: the main file gives the router 1 cards, from 0 on",
            "10.0.0.1:3: link 2: there is no `nic 2`: the line has no effect",
            "10.0.0.2:1: nic 0: has no `link` line: there is no link to 10.0.0.1",
            "10.0.0.2:2: route 0 10.0.0.1: the card is not connected: weights decide",
            "10.0.0.2:3: route 0 10.0.0.7: the main file does not have this router",
        ]
    );
    assert_eq!(built(changes).topology().links().count(), 1);
}

#[test]
fn toml_says_all_that_the_network_has() {
    let (changes, notices) = toml(
        r#"
        [[router]]
        id = "10.0.0.1"
        name = "core1"
        [[router]]
        id = "2001:db8::2"
        [[link]]
        from = "10.0.0.1"
        to = "2001:db8::2"
        id = 3
        bandwidth = "10Gbit"
        latency = "2.5ms"
        weight = 10
        loss = "1%"
        both = true
        [[internal]]
        prefix = "192.0.2.0/24"
        router = "10.0.0.1"
        [[external]]
        prefixes = ["0.0.0.0/0", "2001:db8:1::/48"]
        exit = "2001:db8::2"
        as_distance = 3
        as_number = 64500
        [[next_hop]]
        at = "10.0.0.1"
        to = "2001:db8::2"
        via = "2001:db8::2"
        id = 3
        "#,
    )
    .unwrap();
    assert!(notices.is_empty(), "{notices}");
    let builder = built(changes);
    let topology = builder.topology();
    assert_eq!(topology.routers().next(), Some((router("10.0.0.1"), Some("core1"))));
    assert_eq!(topology.links().count(), 2);
    assert!(topology.links().all(|(_, link)| link.loss == 0.01 && link.weight == 10));
    assert!(topology.links().all(|(_, link)| (link.bandwidth, link.latency) == (10_000.0, 2.5)));
    assert_eq!(topology.internal().count(), 1);
    assert_eq!(topology.routes().count(), 2);
    assert_eq!(topology.next_hops().count(), 1);
}

#[test]
fn mistakes_in_toml_are_all_refused_with_line_and_key() {
    let text = r#"
[[router]]
id = "10.0.0.1"
[[router]]
id = "10.0.0.1"
nam = "x"
[[router]]
id = "10.0.0"
[[link]]
from = "10.0.0.1"
to = "10.0.0.2"
bandwidth = 1
latency = 1
weight = 1
[[internal]]
router = "10.0.0.1"
[[external]]
exit = "10.0.0.1"
prefixes = ["192.0.2.0/24", "x"]
as_distance = 1
[extra]
"#;
    let notices = refused(toml(text));
    let starts = [
        "network.toml:21: extra: is not a known section",
        "network.toml:6: router[1].nam: unknown field `nam`",
        "network.toml:8: router[2].id: ",
        "network.toml:11: link[0].to: there is no [[router]] with the id 10.0.0.2",
        "network.toml:16: internal[0].prefix: is missing",
        "network.toml:19: external[0].prefixes: ",
    ];
    assert_eq!(notices.len(), starts.len(), "{notices:#?}");
    for (line, start) in notices.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
    let notices = refused(toml("[[router]\nid = 1"));
    assert!(notices[0].starts_with("network.toml:1: "), "{notices:?}");
}

/// Everything that counts, to be compared.
fn all(builder: &Builder) -> impl PartialEq + std::fmt::Debug + use<> {
    let topology = builder.topology();
    (
        topology.routers().map(|(id, name)| (id, name.map(str::to_owned))).collect::<Vec<_>>(),
        topology.links().collect::<Vec<_>>(),
        topology.internal().collect::<Vec<_>>(),
        topology.routes().collect::<Vec<_>>(),
        topology.next_hops().collect::<Vec<_>>(),
    )
}

/// The network without what the format `oracle.conf` cannot express.
fn without_names(changes: &[Change]) -> Vec<Change> {
    changes
        .iter()
        .map(|change| match change {
            Change::Router { id, .. } => Change::Router { id: *id, name: None },
            other => other.clone(),
        })
        .collect()
}

fn networks() -> Vec<Vec<Change>> {
    let prefixes = ["198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32"].map(prefix);
    let mut networks: Vec<Vec<Change>> = vec![
        generate::hubs().changes,
        generate::ten().changes,
        generate::mesh(3, 130, 4, prefixes).changes,
        Vec::new(),
    ];
    // Parallel links, a link in one direction only, explicit next hops, odd numbers.
    let (a, b, c) = (router("10.0.0.1"), router("10.0.0.2"), router("2001:db8::3"));
    let link = |from, to, id| Change::Link {
        key: LinkKey { from, to, id },
        properties: topo::LinkProperties {
            bandwidth: 0.1 + 0.2,
            latency: 1e-9,
            weight: u32::MAX,
            congestion: 1e17,
            loss: 0.0,
        },
    };
    let hop = Change::NextHop { at: a, to: c, via: LinkKey { from: a, to: b, id: 9 } };
    let mut odd: Vec<_> = [a, b, c].map(|id| Change::Router { id, name: None }).into();
    odd.extend([link(a, b, 2), link(a, b, 9), link(b, a, 0), link(b, c, 4_000_000_000), hop]);
    networks.push(odd);
    networks
}

#[test]
fn written_files_of_oracle_conf_load_back_to_the_same() {
    // One folder: what an earlier dump left in it does not count.
    let folder = tempfile::tempdir().unwrap();
    for changes in networks() {
        let before = built(without_names(&changes));
        let files = dump::oracle_conf(before.topology());
        assert_eq!(files.notes, [""; 0]);
        files.write(folder.path()).unwrap();
        let mut changes = Vec::new();
        let path = folder.path().join("oracle.conf");
        let notices =
            load::oracle_conf::load(&path, None, &mut |change| changes.push(change), &mut |_| ())
                .unwrap();
        assert_eq!(notices.errors, 0, "{notices}");
        assert!(all(&before) == all(&built(changes)));
    }
}

#[test]
fn toml_that_is_written_loads_back_to_the_same() {
    for mut changes in networks() {
        changes.push(Change::Router {
            id: router("192.0.2.1"),
            name: Some("quotes \" \\ ' \u{7} and\nlines".into()),
        });
        let before = built(changes);
        let mut text = Vec::new();
        assert_eq!(dump::toml(before.topology(), &mut text).unwrap(), [""; 0]);
        let (changes, notices) = toml(std::str::from_utf8(&text).unwrap()).unwrap();
        assert!(notices.is_empty(), "{notices}");
        assert!(all(&before) == all(&built(changes)));
    }
}

#[test]
fn a_writer_says_what_its_format_cannot_express() {
    let (a, b) = (router("10.0.0.1"), router("10.0.0.2"));
    let mut changes = vec![
        Change::Router { id: a, name: Some("core".into()) },
        Change::Router { id: b, name: None },
        Change::Internal { prefix: prefix("192.0.2.0/24"), router: router("10.0.0.3") },
    ];
    let properties = topo::LinkProperties {
        bandwidth: 1.0,
        latency: 1.0,
        weight: 1,
        congestion: 0.0,
        loss: 0.5,
    };
    for to in [b, router("10.0.0.3")] {
        changes.push(Change::Link { key: LinkKey { from: a, to, id: 0 }, properties });
    }
    let builder = built(changes);
    assert_eq!(
        dump::oracle_conf(builder.topology()).notes,
        [
            "1 links wait for routers or links and are omitted",
            "the format has no names of routers: 1 are omitted",
            "the format has no loss: that of 1 links is omitted",
            "1 internal prefixes wait for routers or links and are omitted",
        ]
    );
    let notes = dump::toml(builder.topology(), &mut Vec::new()).unwrap();
    assert_eq!(
        notes,
        [
            "1 links wait for routers or links and are omitted",
            "1 internal prefixes wait for routers or links and are omitted",
        ]
    );
}
