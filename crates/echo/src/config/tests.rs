//! Each rule of the sections: a file that breaks it and the key that is named.

use super::*;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    echo: EchoConfig,
    anycast: Option<AnycastConfig>,
}

fn parse(text: &str) -> Result<Config, toml::de::Error> {
    let file: File = toml::from_str(text)?;
    Ok(Config {
        node: "test".into(),
        state: "/var/lib/nigh".into(),
        echo: file.echo,
        anycast: file.anycast,
    })
}

const GOOD: &str = r#"
[echo]
interfaces = ["eth0"]
addresses = ["50.50.50.50", "2001:db8:50::50"]
mode = "auto"
return = "mac"
fragments = "pass"
verify = true
assign = true
allow = ["192.0.2.0/24"]
deny = ["198.51.100.0/24", "2001:db8:bad::/48"]
[echo.limit]
rate = 100
burst = 200
prefix4 = 24
prefix6 = 56
node_rate = 0
node_burst = 0
[anycast]
prefixes = ["50.0.0.0/8", "2001:db8:50::/48"]
quiet = "1s"
drain_timeout = "30s"
[anycast.health]
interval = "100ms"
rise = 2
fall = 2
hold = "1s"
probe = "loop"
max_drop_ratio = 0.5
commands = [["/usr/bin/true"]]
[[anycast.upstream]]
name = "isp-a"
type = "bgp"
peer = "172.16.0.29"
peer_as = 4
local_as = 12
local_address = "172.16.0.30"
router_id = "172.16.0.30"
next_hop6 = "2001:db8:1::30"
password = "secret"
ttl_security = false
communities = ["12:100"]
large_communities = ["12:1:1"]
prepend = 0
med = 10
hold_time = "9s"
[[anycast.upstream]]
name = "bird"
type = "bird"
socket = "/run/bird/bird.ctl"
protocol = "nigh"
export = "isp_a"
"#;

#[test]
fn the_whole_of_it_is_read() {
    let config = parse(GOOD).unwrap();
    assert_eq!(config.problems(), []);
    assert_eq!(config.warnings(), []);
    assert_eq!(config.echo.limit, Limit::default());
    let anycast = config.anycast.unwrap();
    assert_eq!(anycast.upstreams.len(), 2);
    assert_eq!(anycast.upstreams[0].name(), "isp-a");
    assert!(!format!("{anycast:?}").contains("secret"), "a password must not be printed");
}

#[test]
fn a_missing_key_has_its_default() {
    let config = parse("[echo]\ninterfaces = [\"e\"]\naddresses = [\"192.0.2.1\"]").unwrap();
    assert_eq!(config.problems(), []);
    let echo = &config.echo;
    assert_eq!((echo.mode, echo.return_path), (Mode::Auto, ReturnPath::Mac));
    assert!(echo.verify && echo.assign && config.anycast.is_none());
    let short: AnycastConfig = toml::from_str("prefixes = [\"192.0.2.0/24\"]").unwrap();
    assert_eq!(short.health, HealthConfig::default());
    assert_eq!((short.quiet, short.drain_timeout), (second(), half_minute()));
}

#[test]
fn unknown_keys_and_wrong_types_do_not_parse() {
    for (from, to) in [
        ("mode = \"auto\"", "mood = \"auto\""),
        ("mode = \"auto\"", "mode = \"fast\""),
        ("rate = 100", "rate = -1"),
        ("rate = 100", "rates = 100"),
        ("quiet = \"1s\"", "quiet = 1"),
        ("peer_as = 4", "peer_as = 4\npear = 1"),
        ("export = \"isp_a\"", "export = \"isp_a\"\npeer_as = 1"),
        ("type = \"bird\"", "type = \"quagga\""),
        ("probe = \"loop\"", "probe = \"ping\""),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        assert!(parse(&text).is_err(), "{to} was accepted");
    }
}

/// What is replaced, by what, and the key of the one problem that must follow.
#[rustfmt::skip]
const BROKEN: &[(&str, &str, &str)] = &[
    ("interfaces = [\"eth0\"]", "interfaces = []", "echo.interfaces"),
    ("interfaces = [\"eth0\"]", "interfaces = [\"eth0\", \"eth1\", \"eth0\"]", "echo.interfaces[2]"),
    ("interfaces = [\"eth0\"]", "interfaces = [\"an-interface-too-long\"]", "echo.interfaces[0]"),
    ("interfaces = [\"eth0\"]", "interfaces = [\"a b\"]", "echo.interfaces[0]"),
    ("\"50.50.50.50\", ", "\"50.50.50.50\", \"50.50.50.50\", ", "echo.addresses[1]"),
    ("\"50.50.50.50\", ", "\"50.50.50.50\", \"224.0.0.1\", ", "echo.addresses[1]"),
    ("\"50.50.50.50\", ", "\"50.50.50.50\", \"255.255.255.255\", ", "echo.addresses[1]"),
    ("\"50.50.50.50\", ", "\"50.50.50.50\", \"127.0.0.1\", ", "echo.addresses[1]"),
    ("\"50.50.50.50\", ", "\"50.50.50.50\", \"0.1.2.3\", ", "echo.addresses[1]"),
    ("\"50.50.50.50\", ", "\"50.50.50.50\", \"fe80::1\", ", "echo.addresses[1]"),
    ("\"50.50.50.50\", ", "\"50.50.50.50\", \"::\", ", "echo.addresses[1]"),
    ("\"50.50.50.50\", ", "\"50.50.50.50\", \"::ffff:192.0.2.1\", ", "echo.addresses[1]"),
    ("192.0.2.0/24", "192.0.2.1/24", "echo.allow[0]"),
    ("\"2001:db8:bad::/48\"", "\"198.51.100.0/24\"", "echo.deny[1]"),
    ("burst = 200", "burst = 0", "echo.limit.burst"),
    ("rate = 100\nburst = 200", "rate = 100000\nburst = 999", "echo.limit.burst"),
    ("rate = 100\n", "rate = 2000000000\n", "echo.limit.rate"),
    ("rate = 100\nburst = 200", "rate = 1\nburst = 40000000", "echo.limit.burst"),
    ("prefix4 = 24", "prefix4 = 33", "echo.limit.prefix4"),
    ("prefix6 = 56", "prefix6 = 0", "echo.limit.prefix6"),
    ("node_rate = 0", "node_rate = 5", "echo.limit.node_burst"),
    ("50.0.0.0/8", "50.50.0.0/8", "anycast.prefixes[0]"),
    ("\"50.0.0.0/8\"", "\"50.0.0.0/8\", \"0.0.0.0/0\"", "anycast.prefixes[1]"),
    ("\"50.0.0.0/8\"", "\"50.0.0.0/8\", \"192.0.2.0/24\"", "anycast.prefixes[1]"),
    ("\"50.0.0.0/8\"", "\"50.0.0.0/8\", \"50.0.0.0/8\"", "anycast.prefixes[1]"),
    ("prefixes = [\"50.0.0.0/8\", \"2001:db8:50::/48\"]", "prefixes = []", "anycast.prefixes"),
    ("quiet = \"1s\"", "quiet = \"0s\"", "anycast.quiet"),
    ("drain_timeout = \"30s\"", "drain_timeout = \"1s\"", "anycast.drain_timeout"),
    ("drain_timeout = \"30s\"", "drain_timeout = \"601s\"", "anycast.drain_timeout"),
    ("interval = \"100ms\"", "interval = \"1ms\"", "anycast.health.interval"),
    ("rise = 2", "rise = 0", "anycast.health.rise"),
    ("fall = 2", "fall = 0", "anycast.health.fall"),
    ("hold = \"1s\"", "hold = \"2h\"", "anycast.health.hold"),
    ("max_drop_ratio = 0.5", "max_drop_ratio = 0.0", "anycast.health.max_drop_ratio"),
    ("max_drop_ratio = 0.5", "max_drop_ratio = nan", "anycast.health.max_drop_ratio"),
    ("[[\"/usr/bin/true\"]]", "[[]]", "anycast.health.commands[0]"),
    ("peer_as = 4", "peer_as = 0", "anycast.upstream[0].peer_as"),
    ("next_hop6 = \"2001:db8:1::30\"\n", "", "anycast.upstream[0].next_hop6"),
    ("name = \"bird\"", "name = \"isp-a\"", "anycast.upstream[1].name"),
    ("name = \"bird\"", "name = \"\"", "anycast.upstream[1].name"),
    ("socket = \"/run", "socket = \"run", "anycast.upstream[1].socket"),
];

#[test]
fn each_rule_names_its_key() {
    for (from, to, key) in BROKEN {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from} is not in the file");
        let problems = parse(&text).unwrap_or_else(|e| panic!("{to}: {e}")).problems();
        let keys: Vec<_> = problems.iter().map(|p| p.key.as_str()).collect();
        assert_eq!(keys, [*key], "for {to}: {problems:?}");
        let sentence = &problems[0].message;
        assert!(!sentence.is_empty() && !sentence.ends_with('.'), "{sentence}");
    }
}

#[test]
fn too_many_addresses_are_refused() {
    let mut config = parse(GOOD).unwrap();
    config.anycast = None;
    config.echo.addresses = (1..=60).map(|i| IpAddr::from([192, 0, 2, i])).collect();
    assert_eq!(config.problems(), []);
    config.echo.addresses.push("192.0.2.61".parse().unwrap());
    assert_eq!(config.problems()[0].key, "echo.addresses");
}

#[test]
fn what_is_seldom_meant_is_a_warning_only() {
    let text = GOOD.replacen("\"50.50.50.50\", ", "\"50.50.50.50\", \"192.0.2.1\", ", 1);
    let config = parse(&text).unwrap();
    assert_eq!(config.problems(), []);
    assert_eq!(config.warnings()[0].key, "echo.addresses[1]");
    let lonely = GOOD.split("[[anycast.upstream]]").next().unwrap();
    assert_eq!(parse(lonely).unwrap().warnings()[0].key, "anycast.upstream");
}

#[test]
fn no_text_makes_the_checks_panic() {
    proptest::proptest!(|(rate: u64, burst: u64, p4: u8, p6: u8, ratio: f64, hold: u64)| {
        let mut config = parse(GOOD).unwrap();
        config.echo.limit =
            Limit { rate, burst, prefix4: p4, prefix6: p6, node_rate: burst, node_burst: rate };
        let health = &mut config.anycast.as_mut().unwrap().health;
        (health.max_drop_ratio, health.hold) = (ratio, Duration::from_secs(hold));
        let _ = config.problems();
    });
}
