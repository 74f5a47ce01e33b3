//! Every rule of the section: a value that breaks it, and the key that is blamed.

use super::*;

fn parse(text: &str) -> Result<OracleConfig, toml::de::Error> {
    toml::from_str(text)
}

fn problems(text: &str) -> Vec<String> {
    parse(text).unwrap().problems().iter().map(ToString::to_string).collect()
}

#[test]
fn an_empty_section_is_good() {
    let config = parse("").unwrap();
    assert_eq!(config, OracleConfig::default());
    assert_eq!(config.problems(), []);
    assert_eq!(config.listen, ["0.0.0.0:8899".parse().unwrap(), "[::]:8899".parse().unwrap()]);
}

#[test]
fn every_rule_names_its_key() {
    let table = [
        ("listen = []", "oracle.listen: the list is empty"),
        ("listen = [\"127.0.0.1:0\"]", "oracle.listen[0]: 0 is not a port"),
        ("listen = [\"224.0.0.1:1\"]", "oracle.listen[0]: 224.0.0.1 is a multicast"),
        (
            "listen = [\"127.0.0.1:1\", \"127.0.0.1:1\"]",
            "oracle.listen[1]: 127.0.0.1:1 is listed twice",
        ),
        ("threads = 257", "oracle.threads: 257 is more"),
        ("interfaces = [\"a/b\"]", "oracle.interfaces[0]: \"a/b\" cannot be"),
        ("ttl = \"1500ms\"", "oracle.ttl: must be whole seconds"),
        ("ttl = \"19h\"", "oracle.ttl: must be whole seconds"),
        ("sources = [\"192.0.2.1/24\"]", "oracle.sources[0]: 192.0.2.1/24 has bits"),
        ("cost = \"8 * hops\"", "oracle.cost: at byte 4: "),
        ("[[metric]]\nname = \"a\"\ncost = \"latency +\"", "oracle.metric[0].cost: at byte "),
        ("[[metric]]\nname = \"a b\"\ncost = \"1\"", "oracle.metric[0].name: \"a b\" is not"),
        (
            "[[metric]]\nname = \"default\"\ncost = \"1\"",
            "oracle.metric[0].name: default is the name of another",
        ),
        ("[[adjust]]\ndo = \"avoid\"", "oracle.adjust[0].prefix: give a prefix or an AS"),
        ("[[adjust]]\nas = 1\nprefix = \"::/0\"\npenalty = 1.0", "oracle.adjust[0].as: either"),
        ("[[adjust]]\nas = 0\npenalty = 1.0", "oracle.adjust[0].as: AS 0 is reserved"),
        ("[[adjust]]\nas = 1", "oracle.adjust[0].do: give \"prefer\""),
        (
            "[[adjust]]\nas = 1\ndo = \"prefer\"\npenalty = 1.0",
            "oracle.adjust[0].penalty: either do or penalty",
        ),
        ("[[adjust]]\nas = 1\npenalty = inf", "oracle.adjust[0].penalty: must be a finite"),
        (
            "[[adjust]]\nas = 1\npenalty = 1.0\n[[adjust]]\nas = 1\ndo = \"avoid\"",
            "oracle.adjust[1]: AS 1 is adjusted twice",
        ),
        ("[limit]\nrate = 5\nburst = 0", "oracle.limit.burst: 0 would let nothing"),
        ("[limit]\nprefix6 = 65", "oracle.limit.prefix6: 65 is not"),
    ];
    for (text, expected) in table {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(expected), "{text}: {found:?}");
    }
}

#[test]
fn a_request_has_bits_for_twelve_metrics_the_default_among_them() {
    let metrics = |count: usize| -> String {
        (1..=count)
            .map(|bit| format!("[[metric]]\nname = \"m{bit}\"\ncost = \"{bit}\"\n"))
            .collect()
    };
    let most = crate::proxidor::MAX_METRICS;
    assert_eq!(problems(&metrics(most - 1)), Vec::<String>::new());
    assert_eq!(
        problems(&metrics(most)),
        ["oracle.metric: 12 and the default are more than the 12 that a request has bits for: \
          remove 1"]
    );
}

#[test]
fn unknown_keys_and_values_are_refused() {
    for text in [
        "lisen = []",
        "mode = \"kernel\"",
        "exits = \"farthest\"",
        "[limit]\nnode_rate = 5",
        "[[metric]]\nname = \"a\"",
        "[[adjust]]\nas = 1\ndo = \"love\"",
        "[topology]\nseeds = \"/x\"",
        "[[topology.mrt]]\nfile = \"/x\"",
        "[authentication]\nrequired = true",
        "[authentication]\nkey = \"00\"",
        "[authentication]\nkey = \"+0010203040506070809a0b0c0d0e0f0\"",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_key_is_read_and_not_shown() {
    let text = "[authentication]\nkey = \"000102030405060708090a0b0c0d0e0F\"\nrequired = true";
    let config = parse(text).unwrap();
    let authentication = config.authentication.clone().unwrap();
    assert_eq!(authentication.key, Key::new(std::array::from_fn(|i| i as u8)));
    assert!(!format!("{config:?}").contains("0001"), "{config:?}");
    let error = parse("[authentication]\nkey = \"c0ffee\"").unwrap_err();
    assert!(!error.message().contains("c0ffee"), "{error}");
}

#[test]
fn files_that_are_not_there_are_warned_of() {
    let config = parse("[topology]\noracle_conf = \"/nonexistent/a\"\n[[topology.mrt]]\nfile = \"/nonexistent/b\"\nrouter = \"10.0.0.1\"").unwrap();
    let keys: Vec<_> = config.warnings().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["oracle.topology.oracle_conf", "oracle.topology.mrt[0].file"]);
    let keys: Vec<_> = parse("").unwrap().warnings().into_iter().map(|p| p.key).collect();
    assert_eq!(keys, ["oracle.topology"]);
}

#[test]
fn renamed_keys_have_only_their_new_name() {
    for (old, new) in RENAMED {
        let table = |key: &str| {
            let key = key.strip_prefix("oracle.").unwrap();
            let value = match key.rsplit('.').next() {
                Some("patience" | "timeout") => "1s",
                Some("versions_bytes" | "versions_size") => "64MiB",
                _ => "/x",
            };
            parse(&format!("{key} = \"{value}\""))
        };
        assert!(table(new).is_ok(), "{new}");
        assert!(table(old).is_err(), "{old}");
    }
}
