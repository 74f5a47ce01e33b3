//! Sections and the problems found in them.

use super::*;

const MESH: &str = r#"
[[station]]
name = "prague"
addresses = ["192.0.2.1", "2001:db8::1"]
[[station]]
name = "brno"
addresses = ["192.0.2.2"]
control = "192.0.2.2:9000"
may = ["delay"]
[[station]]
name = "plzen"
addresses = ["192.0.2.3"]
[security]
shared_key = "/etc/nigh/mesh.key"
"#;

fn config(text: &str) -> Config {
    let probe = toml::from_str(&format!("{text}\n{MESH}")).expect("it parses");
    Config { node: "prague".into(), state: "/var/lib/nigh".into(), probe }
}

/// The problems of a section that begins with `text`.
fn found(text: &str) -> Vec<String> {
    config(text).problems().iter().map(ToString::to_string).collect()
}

fn test(more: &str) -> String {
    format!("[[test]]\nname = \"t\"\ninterval = \"5m\"\n{more}\n")
}

#[test]
fn a_good_section_has_no_problems() {
    let text = r#"
        allow = ["198.51.100.0/24"]
        gather = "20ms"
        limit = { duration = "30s" }
        archive.postgresql = { connection = "host=db.example.net user=prague", authority = "/etc/db.pem" }
        archive.parquet = { folder = "/srv/measurements" }
        clock = { limit = "10ms", servers = ["203.0.113.5"] }
        [[test]]
        name = "delay"
        what = "owd"
        mesh = ["prague", "brno", "plzen"]
        interval = "1m"
        rate = 10
        [[test]]
        name = "reflector"
        what = "owd"
        from = ["prague"]
        to = ["198.51.100.7", "198.51.100.7:8620"]
        interval = "1m"
        duration = "10s"
        [[test]]
        name = "bulk"
        what = "throughput"
        mesh = ["prague", "brno"]
        interval = "6h"
        duration = "20s"
        spread = "1h"
        [[test]]
        name = "page"
        what = "http"
        from = ["prague"]
        to = ["https://example.com/x"]
        interval = "5m"
        [[test]]
        name = "name"
        what = "dns"
        from = ["prague"]
        to = ["www.example.com@198.51.100.53"]
        interval = "5m"
        [[test]]
        name = "time"
        what = "clock"
        from = ["prague"]
        to = ["203.0.113.5"]
        interval = "5m"
        [[link]]
        name = "core"
        between = ["prague"]
        and = ["brno", "plzen"]
    "#;
    let config = config(text);
    assert_eq!(config.problems(), []);
    let own = config.own().expect("its own entry");
    assert_eq!(own.control(), Some("192.0.2.1:8620".parse().expect("an address")));
    assert_eq!(own.address(Some(Family::V6)), Some("2001:db8::1".parse().expect("an address")));
    assert_eq!(config.probe.tests[0].pairs().len(), 6);
    assert_eq!(
        config.probe.tests[1].pairs(),
        [("prague", "198.51.100.7"), ("prague", "198.51.100.7:8620")]
    );
    assert!(config.probe.tests[0].continuous() && !config.probe.tests[1].continuous());
    let warned: Vec<_> = config.warnings().into_iter().map(|warning| warning.key).collect();
    assert_eq!(warned, ["probe.security.shared_key"]);
    let archive = &config.probe.archive;
    assert!(archive.postgresql.is_some() && archive.parquet.is_some());
}

#[test]
fn every_mistake_is_named_with_its_key() {
    let mesh = "what = \"owd\"\nmesh = [\"prague\", \"brno\"]";
    let table: &[(String, &str)] = &[
        ("name = \"Prague\"".into(), "probe.name: \"Prague\" is not a name"),
        ("name = \"ostrava\"".into(), "probe.station: this station is ostrava"),
        ("allow = [\"192.0.2.1/24\"]".into(), "probe.allow[0]: 192.0.2.1/24 has bits set"),
        ("limit = { tests = 0 }".into(), "probe.limit.tests: must be from 1 to 10000"),
        ("limit = { duration = \"11m\" }".into(), "probe.limit.duration: must be from 1s to 10m"),
        ("reflector = { port = 0 }".into(), "probe.reflector.port: the other stations"),
        ("reflector = { interfaces = [\"a b\"] }".into(), "probe.reflector.interfaces[0]: "),
        ("clock = { limit = \"0s\" }".into(), "probe.clock.limit: no clock has no error"),
        (
            "clock = { servers = [\"224.0.0.1\"] }".into(),
            "probe.clock.servers[0]: 224.0.0.1 is not",
        ),
        (test(&mesh.replace("brno", "ostrava")), "probe.test[0].mesh[1]: there is no [[probe.stat"),
        (test(&mesh.replace("brno", "prague")), "probe.test[0].mesh[1]: prague is named twice"),
        (test("what = \"owd\""), "probe.test[0].mesh: give either mesh, or from and to"),
        (test("what = \"owd\"\nfrom = [\"brno\"]"), "probe.test[0].from: give both from and to"),
        (
            test("what = \"ping\"\nfrom = [\"brno\"]\nto = [\"203.0.113.1\"]"),
            "probe.test[0].to[0]: 203.0.113.1 is not on the allow list",
        ),
        (
            test("what = \"throughput\"\nfrom = [\"brno\"]\nto = [\"203.0.113.1\"]"),
            "probe.test[0].to[0]: 203.0.113.1 is not a station",
        ),
        (
            test("what = \"http\"\nfrom = [\"brno\"]\nto = [\"ftp://x\"]"),
            "probe.test[0].to[0]: \"ftp://x\" is not a page",
        ),
        (
            test("what = \"dns\"\nfrom = [\"brno\"]\nto = [\"x\"]"),
            "probe.test[0].to[0]: \"x\" is not a DNS query",
        ),
        (test(&format!("{mesh}\nrate = 0")), "probe.test[0].rate: must be from 1 to 1000"),
        (test(&format!("{mesh}\nrate = 1001")), "probe.test[0].rate: must be from 1 to 1000"),
        (
            test(&format!("{mesh}\nduration = \"4m56s\"")),
            "probe.test[0].duration: must be at most 4m",
        ),
        (
            test(&format!("{mesh}\nduration = \"4m45s\"")),
            "probe.test[0].interval: a run takes up to",
        ),
        (test(&format!("{mesh}\nspread = \"5m\"")), "probe.test[0].spread: must be shorter"),
        (
            test(&format!("{mesh}\ntransport = \"udp\"")),
            "probe.test[0].transport: owd has no transport",
        ),
        (test(&format!("{mesh}\nfamily = \"ipv6\"")), "probe.test[0].family: brno has no address"),
        (
            test("what = \"throughput\"\nmesh = [\"prague\", \"brno\"]\ntransport = \"udp\""),
            "probe.test[0].bandwidth: give the rate that is sent, as 100Mbit",
        ),
        (
            test("what = \"throughput\"\nmesh = [\"prague\", \"brno\"]\nduration = \"61s\""),
            "probe.test[0].duration: is longer than probe.limit.duration",
        ),
        (
            test("what = \"throughput\"\nmesh = [\"prague\", \"brno\"]\nduration = \"60s\"")
                .replace("5m", "110s"),
            "probe.test[0].interval: takes more of an hour than probe.limit.throughput",
        ),
        (
            "[[link]]\nname = \"l\"\nbetween = [\"brno\"]\nand = [\"brno\"]".into(),
            "probe.link[0].and: a station is on one side only",
        ),
        (
            "[[station]]\nname = \"x\"\naddresses = [\"192.0.2.2\"]".into(),
            "probe.station[2].addresses[0]: 192.0.2.2 is there twice",
        ),
        (
            "[[station]]\nname = \"x\"\naddresses = [\"192.0.2.8\", \"192.0.2.9\"]".into(),
            "probe.station[0].addresses[1]: one address of each family",
        ),
    ];
    for (text, expected) in table {
        let found = found(text);
        let first = found.first().map_or("", String::as_str);
        assert!(first.starts_with(expected), "for {text}: {found:?}");
    }
}

#[test]
fn packets_may_not_gather_for_long() {
    let problems = config("gather = \"101ms\"").problems();
    assert_eq!(problems[0].to_string(), "probe.gather: more than 100 ms");
}

#[test]
fn stations_must_know_each_other() {
    let mut config = config("");
    config.probe.security = None;
    assert!(config.problems()[0].to_string().starts_with("probe.security: stations must know"));
    config.probe.security = Some(SecurityConfig {
        authority: Some("/a".into()),
        certificate: None,
        key: None,
        shared_key: None,
    });
    assert!(config.problems()[0].to_string().starts_with("probe.security.certificate: "));
}

#[test]
fn unknown_keys_are_refused() {
    for text in ["nmae = \"x\"", "[limit]\nsize = 1", "[[test]]\nname = \"x\"\nwhen = 1"] {
        assert!(toml::from_str::<ProbeConfig>(text).is_err(), "{text}");
    }
}

#[test]
fn a_measured_link_is_between_two_routers_and_measured_by_one_test() {
    let link = |more: &str| {
        let owd = test("what = \"owd\"\nmesh = [\"prague\", \"brno\"]");
        let begin = "[[measured]]\nfrom = \"10.0.0.1\"\n";
        found(&format!(
            "{owd}{begin}to = \"10.0.0.2\"\nboth = true\nstation = \"brno\"\n{begin}{more}"
        ))
    };
    assert_eq!(link("to = \"10.0.0.3\"\nstation = \"brno\""), [""; 0]);
    for (more, expected) in [
        ("to = \"10.0.0.3\"\nstation = \"tabor\"", "probe.measured[1].station: there is no"),
        ("to = \"10.0.0.3\"\nstation = \"plzen\"", "probe.measured[1].station: no [[probe.test]]"),
        ("to = \"10.0.0.1\"\nstation = \"brno\"", "probe.measured[1].to: a link joins two"),
        ("to = \"10.0.0.2\"\nstation = \"brno\"", "probe.measured[1].to: another station"),
    ] {
        let found = link(more);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
    }
}
