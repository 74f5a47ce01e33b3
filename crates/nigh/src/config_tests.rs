//! Configuration files and the reports about them.

use super::*;
use job::file::{Finding, SIZE_LIMIT, Severity};

/// What is found in `text`: `line:column key: message`, one a line.
fn findings(text: &str) -> Vec<String> {
    let report = match parse(text.as_bytes(), Path::new("nigh.toml")) {
        Ok(loaded) => loaded.report,
        Err(report) => report,
    };
    let show = |f: &Finding| format!("{}:{} {}: {}", f.line, f.column, f.key, f.message);
    report.findings.iter().map(show).collect()
}

/// The part of a file that is good, with `more` before it.
fn with_echo(more: &str) -> String {
    format!("{more}\n[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"192.0.2.1\"]\n")
}

#[test]
fn a_renamed_key_has_one_finding() {
    let found = findings("[gate]\ninside = [\"eth1\"]\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("2:1 gate.inside: ") && found[0].contains("`gate.internal`"));
}

#[test]
fn every_mistake_is_named_with_line_and_column() {
    let table: &[(&str, &[&str])] = &[
        (
            "name = \"x\"\n",
            &[
                "1:1 name: `name` is before the first section: move it below the section to which it belongs",
            ],
        ),
        ("[node]\nnmae = \"b\"\n", &["2:1 node.nmae: unknown key `nmae`: did you mean `name`?"]),
        (
            "[node]\ncolour = \"b\"\n",
            &[
                "2:1 node.colour: unknown key `colour`: there are `name`, `control`, `http`, `http_names`, `http_token`, `state`",
            ],
        ),
        (
            "[node]\nname = 5\nhttp = \"localhost\"\nx = 1\n",
            &[
                "2:8 node.name: invalid type: integer `5`, expected a string",
                "3:8 node.http: expected an address with a port, such as `127.0.0.1:9160` or `[::1]:9160`",
                "4:1 node.x: unknown key `x`: there are `name`, `control`, `http`, `http_names`, `http_token`, `state`",
            ],
        ),
        (
            "[node]\nhttp_names = [\"node1.example.net\", \"node1:9160\"]\n",
            &[
                "2:36 node.http_names[1]: a host's name has letters, digits, `-` and `.`; no port and no path",
            ],
        ),
        (
            "[node]\nname = \"\"\ncontrol = \"run/x\"\nstate = \"y\"\n",
            &[
                "2:8 node.name: a name has 1 to 253 characters, none of them a control character",
                "3:11 node.control: the path of the control socket must begin with `/`",
                "4:9 node.state: the path of the state directory must begin with `/`",
            ],
        ),
        (
            "[anycast]\nprefixes = [\"192.0.2.0/24\"]\nquiet = \"long\"\n",
            &[
                "3:9 anycast.quiet: invalid value: string \"long\", expected a duration: write 10s, 100ms or 1h 30m",
            ],
        ),
        (
            "[lab]\nseed = 7\n[[node]]\nname = 5\n[[host]]\nname = \"pc\"\n",
            &["3:1 node: this is a scene of the lab: `nigh lab run nigh.toml`"],
        ),
        ("[nod]\nname = \"a\"\n", &["1:2 nod: unknown section `[nod]`: did you mean `[node]`?"]),
        (
            "[lab]\n",
            &[
                "1:2 lab: unknown section `[lab]`: there are `node`, `echo`, `anycast`, `oracle`, `probe`, `gate`",
            ],
        ),
        ("[node]\nname = \"a\"\nname = \"b\"\n", &["3:1 : duplicate key"]),
        ("node = 3\n", &["1:8 node: invalid type: integer `3`, expected a section"]),
    ];
    for (text, expected) in table {
        assert_eq!(findings(&with_echo(text)), *expected, "for {text:?}");
    }
}

#[test]
fn a_value_that_cannot_be_read_is_the_only_mistake() {
    let gate = "[gate]\ninternal = [\"eth1\"]\n";
    let limit = "[[gate.limit]]\nname = \"slow\"\n";
    let rule = "[[gate.rule]]\nname = \"r\"\naction = \"deny\"\n";
    for (more, expected) in [
        (
            format!("{limit}from_internal = \"20MB\"\n"),
            "5:17 gate.limit[0].from_internal: \"20MB\" is not a rate: expected bits a second such as `800kbit`, `20Mbit` or `1.5Gbit`",
        ),
        (
            limit.to_owned(),
            "3:1 gate.limit[0]: nothing is limited: give to_internal, from_internal or both",
        ),
        (
            format!("{rule}direction = [\"to-internal\"]\n"),
            "6:13 gate.rule[0].direction: [\"to-internal\"] is not one word in quotes",
        ),
        (
            format!("{rule}direction = \"up\"\n"),
            "6:13 gate.rule[0].direction: unknown value `up`: there are `from-internal`, `to-internal`",
        ),
    ] {
        assert_eq!(findings(&format!("{gate}{more}")), [expected], "for {more:?}");
    }
}

#[test]
fn a_mistake_in_an_upstream_is_found_behind_its_tag() {
    let bird = "[[anycast.upstream]]\nname = \"b\"\ntype = \"bird\"\nsocket = \"/b\"\nprotocol = \"p\"\nexport = \"e\"\n";
    let anycast = "[anycast]\nprefixes = [\"192.0.2.0/24\"]\n";
    let table = [
        (
            "type = \"bpg\"",
            "11:8 anycast.upstream[1].type: unknown value `bpg`: did you mean `bgp`?",
        ),
        ("name = \"x\"", "10:1 anycast.upstream[1].type: `type` is missing"),
        (
            "name = \"x\"\ntype = \"bird\"\nsocket = 5",
            "13:10 anycast.upstream[1].socket: invalid type: integer `5`, expected path string",
        ),
        (
            "name = \"x\"\ntype = \"bird\"\nsokcet = \"/b\"\nprotocol = \"p\"\nexport = \"e\"",
            "13:1 anycast.upstream[1].sokcet: unknown key `sokcet`: did you mean `socket`?",
        ),
    ];
    for (second, expected) in table {
        let text = format!("{anycast}{bird}\n[[anycast.upstream]]\n{second}\n{}", with_echo(""));
        assert_eq!(findings(&text)[0], expected, "for {second}");
    }
}

#[test]
fn a_good_file_has_no_findings_and_its_defaults() {
    let loaded = parse(with_echo("").as_bytes(), Path::new("nigh.toml")).unwrap();
    assert_eq!(loaded.report.findings, []);
    assert_eq!(loaded.node, NodeConfig::default());
    assert_eq!(loaded.node.control, Path::new("/run/nigh/control.sock"));
}

#[test]
fn a_file_without_a_feature_is_refused() {
    let nothing =
        ": no job is configured: add a section `[echo]`, `[oracle]`, `[probe]` or `[gate]`";
    assert_eq!(findings("[node]"), [format!("1:7 {nothing}")]);
    assert_eq!(findings("[node]\nname=\"\"\n").last(), Some(&format!("2:8 {nothing}")));
    let anycast = "[anycast]\nprefixes = [\"192.0.2.0/24\"]\n";
    let alone = "1:1 echo: [anycast] announces what [echo] answers: add a section `[echo]`";
    assert_eq!(findings(anycast), [alone]);
}

#[test]
fn broken_text_is_refused_where_it_breaks() {
    let report = parse(b"[node]\nname = \"a\xff\"\n", Path::new("x")).unwrap_err();
    assert_eq!((report.findings[0].line, report.findings[0].column), (2, 10));
    let deep = format!("[node]\nx{} = 1\n", ".a".repeat(200_000));
    assert!(findings(&deep)[0].starts_with("2:1 : more than 32 levels deep"));
    let brackets = format!("[node]\nx = {}\n", "[".repeat(200_000));
    assert!(!findings(&brackets).is_empty());
}

#[test]
fn a_finding_shows_the_line_and_marks_the_words() {
    let report =
        parse(with_echo("[node]\n\tnmae = \"b\" # c").as_bytes(), Path::new("/etc/n.toml"));
    let expected = "\
error: node.nmae: unknown key `nmae`: did you mean `name`?
 --> /etc/n.toml:2:2
  |
2 |  nmae = \"b\" # c
  |  ^^^^
";
    assert_eq!(report.unwrap_err().render(), expected);
}

#[test]
fn a_secret_is_not_shown_and_not_for_everybody() {
    let text = with_echo("[node]\npassword = 12345");
    let report = parse(text.as_bytes(), Path::new("n.toml")).unwrap_err();
    let shown = report.render() + &report.sentence() + &serde_json::to_string(&report).unwrap();
    assert!(shown.contains("password = ***"), "{shown}");
    assert!(!shown.contains("12345"), "{shown}");
    let oracle = "[oracle]\n[oracle.authentication]\nkey = \"c0ffee\"\n";
    let report = parse(oracle.as_bytes(), Path::new("n.toml")).unwrap_err();
    let shown = report.render() + &report.sentence();
    assert!(shown.contains("oracle.authentication.key: a key is 32 hexadecimal digits"), "{shown}");
    assert!(!shown.contains("c0ffee"), "{shown}");
    let broken = parse(b"[node]\npassword = \"12345\nname = 2", Path::new("n.toml")).unwrap_err();
    assert!(!broken.render().contains("12345"), "{}", broken.render());
}

#[test]
fn a_secret_that_everybody_may_read_is_warned_of() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("n.toml");
    let upstream = "[anycast]\nprefixes = [\"192.0.2.0/24\"]\n[[anycast.upstream]]\nname = \"a\"\n\
                    type = \"bgp\"\npeer = \"192.0.2.9\"\npeer_as = 1\nlocal_as = 2\npassword = \"x\"\n";
    std::fs::write(&path, with_echo("") + upstream).unwrap();
    for (mode, expected) in [(0o600, 0), (0o640, 0), (0o644, 1)] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let findings = load(&path).unwrap().report.findings;
        assert_eq!(findings.len(), expected, "mode {mode:o}: {findings:?}");
        for finding in findings {
            assert_eq!(finding.severity, Severity::Warning);
            assert_eq!((finding.line, &*finding.key), (13, "anycast.upstream[0].password"));
        }
    }
}

#[test]
fn what_is_allowed_but_seldom_meant_is_warned_of() {
    let text = with_echo("").replace("192.0.2.1\"", "192.0.2.1\", \"198.51.100.1\"")
        + "[anycast]\nprefixes = [\"192.0.2.0/24\"]\n";
    let loaded = parse(text.as_bytes(), Path::new("n.toml")).unwrap();
    let found: Vec<_> = loaded.report.findings.iter().map(|f| (f.severity, &*f.key)).collect();
    let expected = ["echo.addresses[1]", "anycast.upstream"].map(|key| (Severity::Warning, key));
    assert_eq!(found, expected);
    assert_eq!(loaded.report.findings[0].line, 4);
    // Beside a mistake they are not shown.
    let report = parse(text.replace("eth0", "").as_bytes(), Path::new("n.toml")).unwrap_err();
    assert_eq!((report.errors(), report.findings.len()), (1, 1));
}

#[test]
fn text_that_acts_on_a_terminal_is_not_printed() {
    let report = parse(b"[node]\nname = \"\x1b[2J\"\n", Path::new("n.toml")).unwrap_err();
    assert!(!report.render().contains('\x1b'));
}

#[test]
fn a_file_too_large_or_missing_is_reported() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("n.toml");
    assert!(matches!(load(&path), Err(LoadError::Read { .. })));
    std::fs::write(&path, vec![b'#'; SIZE_LIMIT as usize + 1]).unwrap();
    assert!(matches!(load(&path), Err(LoadError::TooLarge { .. })));
    assert!(matches!(load(temporary.path()), Err(LoadError::Read { .. })));
}

#[test]
fn the_control_socket_of_a_file_is_known_whatever_else_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nigh.toml");
    for (text, control) in [
        ("[node]\ncontrol = \"/run/other.sock\"\n[unknown]\n", Some("/run/other.sock")),
        ("[node]\nname = \"a\"\n", None),
        ("[node\n", None),
    ] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(path_of(&path, "control"), control.map(PathBuf::from), "{text}");
    }
    assert_eq!(path_of(&folder.path().join("none"), "state"), None);
}
