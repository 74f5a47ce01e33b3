use super::*;

fn keys(text: &str) -> Vec<String> {
    let config: GateConfig = toml::from_str(text).unwrap();
    config.problems().into_iter().map(|problem| problem.key).collect()
}

#[test]
fn one_interface_is_a_configuration() {
    assert_eq!(keys("internal = [\"eth1\"]"), [""; 0]);
}

#[test]
fn every_wrong_value_is_named_with_its_key() {
    let text = r#"
internal = ["eth1", "eth1", "a b"]
packets = 33
max_flows = 5
refuse_for = "8d"
idle_tcp = "1s"
[[group]]
name = "a b"
hosts = []
[[group]]
name = "g"
hosts = ["10.0.0.1/8"]
[[time]]
name = "t"
days = ["mon", "mon"]
from = "08:00"
to = "08:00"
[[limit]]
name = "l"
[[limit]]
name = "l"
to_internal = "1 kbit/s"
[[rule]]
name = "r"
application = ["BitTorrent", "a/b/c", "x", "x"]
category = ["web", "web"]
group = ["h"]
time = ["u"]
action = "limit"
[[rule]]
name = "s"
action = "limit"
limit = "m"
[[rule]]
name = "u"
action = "allow"
deny = "drop"
limit = "l"
[[file]]
name = "f"
names = [""]
types = ["video/"]
hashes = ["zz"]
action = "deny"
"#;
    let wanted = [
        "gate.internal[1]",
        "gate.internal[2]",
        "gate.packets",
        "gate.max_flows",
        "gate.refuse_for",
        "gate.idle_tcp",
        "gate.group[0].name",
        "gate.limit[1].name",
        "gate.group[0].hosts",
        "gate.group[1].hosts[0]",
        "gate.time[0].days[1]",
        "gate.time[0].to",
        "gate.limit[0]",
        "gate.limit[1].to_internal",
        "gate.limit[1].each",
        "gate.rule[0].application[0]",
        "gate.rule[0].application[1]",
        "gate.rule[0].application[3]",
        "gate.rule[0].category[1]",
        "gate.rule[0].group[0]",
        "gate.rule[0].time[0]",
        "gate.rule[0].limit",
        "gate.rule[1].limit",
        "gate.rule[2].limit",
        "gate.rule[2].deny",
        "gate.file[0].names[0]",
        "gate.file[0].types[0]",
        "gate.file[0].hashes[0]",
    ];
    assert_eq!(keys(text), wanted);
}

#[test]
fn an_address_alone_is_a_host() {
    let group = |hosts: &str| {
        let text = format!("internal = [\"a\"]\n[[group]]\nname = \"g\"\nhosts = [{hosts}]");
        toml::from_str::<GateConfig>(&text).map(|config| config.groups[0].hosts.clone())
    };
    let hosts = group("\"10.0.0.5\", \"2001:db8::5\", \"10.1.0.0/16\"").unwrap();
    let texts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["10.0.0.5/32", "2001:db8::5/128", "10.1.0.0/16"]);
    let error = group("\"10.0.0.5/33\"").unwrap_err();
    assert_eq!(error.message(), "invalid IP address syntax");
}

#[test]
fn no_interface_is_no_gate() {
    assert_eq!(keys(""), ["gate.internal"]);
}

#[test]
fn what_is_seldom_meant_is_a_warning() {
    let text = r#"
internal = ["eth1"]
bypass = true
[scan]
clamd = "/run/clamd"
[[group]]
name = "nobody"
hosts = ["10.0.0.0/8"]
[[time]]
name = "never"
from = "08:00"
to = "09:00"
[[limit]]
name = "unused"
to_internal = "1mbit"
[[rule]]
name = "all"
action = "deny"
[[rule]]
name = "never"
category = ["web"]
action = "allow"
"#;
    let config: GateConfig = toml::from_str(text).unwrap();
    assert_eq!(config.problems(), []);
    let keys: Vec<_> = config.warnings().into_iter().map(|problem| problem.key).collect();
    let expected = [
        "gate.bypass",
        "gate.rule[0].name",
        "gate.scan",
        "gate.group[0].name",
        "gate.time[0].name",
        "gate.limit[0].name",
    ];
    assert_eq!(keys, expected);
}

#[test]
fn names_that_no_flow_has_and_signatures_that_no_rule_asks_for_are_warned_of() {
    let warned = |text: &str| -> Vec<String> {
        let config: GateConfig = toml::from_str(&format!("internal = [\"eth1\"]\n{text}")).unwrap();
        assert_eq!(config.problems(), [], "{text}");
        config.warnings().into_iter().map(|problem| problem.key).collect()
    };
    let signature = "[[signature]]\nname = \"our-chat\"\ncategory = \"chat\"\npattern = 'hello'\n";
    for (name, good) in [
        ("bittorrent", true),
        ("bittorrent/dht", true),
        ("edonkey/kad", true),
        ("tls/youtube", true),
        ("http", true),
        ("ftp_control", true),
        ("ftp-data", true),
        ("dcc", true),
        ("unknown", true),
        ("our-chat", true),
        ("bittorent", false),
        ("bittorrent/tls", false),
        ("tls/yutube", false),
        ("msn", false),
        ("our-chat/part", false),
        ("ftp", false),
    ] {
        let rule = format!(
            "[[rule]]\nname = \"a\"\naction = \"deny\"\napplication = [\"our-chat\", \"{name}\"]\n"
        );
        let rule = rule.replace("[\"our-chat\", \"our-chat\"]", "[\"our-chat\"]");
        let expected: &[&str] = if good { &[] } else { &["gate.rule[0].application[1]"] };
        assert_eq!(warned(&format!("{signature}{rule}")), expected, "{name}");
    }
    let file = |name: &str| {
        format!("[[file]]\nname = \"a\"\naction = \"deny\"\napplication = [\"{name}\"]\n")
    };
    assert!(warned(&file("ftp")).is_empty() && warned(&file("irc")).is_empty());
    assert_eq!(warned(&file("our-chat")), ["gate.file[0].application[0]"]);
    assert_eq!(warned(signature), ["gate.signature[0].name"]);
    assert!(warned(&format!("{signature}{}", file("our-chat"))).is_empty());
    let category = |name: &str| {
        format!("[[rule]]\nname = \"a\"\naction = \"count\"\ncategory = [\"{name}\"]\n")
    };
    assert!(warned(&format!("{signature}{}", category("chat"))).is_empty());
    assert_eq!(warned(&format!("{signature}{}", category("game"))), ["gate.signature[0].name"]);
}

#[test]
fn a_rate_to_internal_hosts_is_not_shared_over_interfaces() {
    for (internal, limit, problems) in [
        (r#"["a", "b"]"#, "to_internal = \"1mbit\"", 1),
        (r#"["a", "b"]"#, "to_internal = \"1mbit\"\neach = \"group\"", 1),
        (r#"["a", "b"]"#, "to_internal = \"1mbit\"\neach = \"host\"", 0),
        (r#"["a", "b"]"#, "from_internal = \"1mbit\"", 0),
        (r#"["a"]"#, "to_internal = \"1mbit\"", 0),
    ] {
        let text = format!("internal = {internal}\n[[limit]]\nname = \"slow\"\n{limit}");
        let config: GateConfig = toml::from_str(&text).unwrap();
        assert_eq!(config.problems().len(), problems, "{text}");
    }
}

#[test]
fn bounds_of_the_scanner_without_which_nothing_is_scanned_are_refused() {
    let text = r#"
internal = ["eth1"]
[scan]
clamd = "/run/clamd"
max_size = "0"
waiting = "0"
"#;
    let config: GateConfig = toml::from_str(text).unwrap();
    let keys: Vec<_> = config.problems().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["gate.scan.max_size", "gate.scan.waiting", "gate.scan.keep"]);
}

#[test]
fn a_rule_about_files_names_whole_applications() {
    let problems = |name: &str| {
        let text = format!(
            "internal = [\"eth1\"]\n[[file]]\nname = \"f\"\naction = \"deny\"\n\
             application = [\"bittorrent\", \"{name}\"]\n"
        );
        toml::from_str::<GateConfig>(&text).unwrap().problems()
    };
    assert_eq!(problems("ftp"), []);
    let [problem] = &problems("http/youtube")[..] else { panic!("one is wrong") };
    assert_eq!(problem.key, "gate.file[0].application[1]");
    assert!(problem.message.ends_with("write \"http\""), "{}", problem.message);
}

#[test]
fn a_rule_about_files_asks_for_what_files_can_be() {
    let problems = |key: &str, value: &str| {
        let text = format!(
            "internal = [\"eth1\"]\n[[file]]\nname = \"f\"\naction = \"deny\"\n{key} = ['{value}']\n"
        );
        toml::from_str::<GateConfig>(&text).unwrap().problems()
    };
    for (key, value) in [
        ("names", "*.iso"),
        ("names", "track??.mp3"),
        ("types", "zip"),
        ("types", "video/*"),
        ("types", "Application/PDF"),
        ("types", "unknown"),
    ] {
        assert_eq!(problems(key, value), [], "{key} {value}");
    }
    for (key, value, why) in [
        ("names", "[a-", "write `?` where `[` is"),
        ("names", "*.{avi,mkv}", "write `?` where `{` is"),
        ("types", "ziip", "did you mean `zip`?"),
        ("types", "vidio/*", "did you mean `video/"),
        ("types", "word", "did you mean `"),
    ] {
        let [problem] = &problems(key, value)[..] else { panic!("{value} is wrong") };
        assert_eq!(problem.key, format!("gate.file[0].{key}[0]"));
        assert!(problem.message.contains(why), "{value}: {}", problem.message);
    }
}

#[test]
fn an_order_names_applications_as_rules_do() {
    let check = |name: &str| super::check_applications(&[name.to_owned()], &[]);
    assert_eq!((check("bittorrent/dht"), check("tls/youtube")), (Ok(()), Ok(())));
    for (bad, why) in [
        ("BitTorrent", "in lower case"),
        ("", "in lower case"),
        ("a/b/c", "in lower case"),
        ("two words", "in lower case"),
        ("bittorent", "did you mean \"bittorrent\""),
        ("bittorrent/dth", "did you mean \"bittorrent/dht\"?"),
        ("bittorrent/bittorrent", "no flow can have the name"),
        ("dcc/dcc", "no flow can have the name"),
        ("ftp", "\"ftp_data\""),
        ("tls/yutube", "did you mean \"tls/youtube\""),
        ("peer-to-peer", "it is a category"),
        ("!?!?!?!?", "[[gate.signature]]"),
        ("targusdataspeed", "no flow can have the name"),
    ] {
        let problem = check(bad).unwrap_err();
        assert!(problem.contains(why), "{bad:?}: {problem}");
    }
}
