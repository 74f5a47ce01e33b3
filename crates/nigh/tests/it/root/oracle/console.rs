//! What an operator asks and changes, by commands and in the console.

use super::stage::{EAST, LIMIT, NETWORK, Stage, UNKNOWN, WEST};
use serde_json::Value;

/// The columns of each line, blanks apart.
fn columns(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn what_is_known_is_printed() {
    let stage = Stage::start("");
    let routers = stage.done(&["print", "routers"]);
    assert!(columns(&routers).contains(&vec!["10.0.0.1", "berlin", "2", "1", "0"]), "{routers}");
    assert!(columns(&routers).contains(&vec!["10.8.0.2", "east", "1", "0", "1"]), "{routers}");
    let links = stage.done(&["print", "links", "berlin"]);
    let row = vec!["10.0.0.1", "10.0.0.2", "0", "up", "1000", "1.5", "10", "0", "0"];
    assert!(columns(&links).contains(&row) && links.lines().count() == 3, "{links}");
    let networks = stage.done(&["print", "networks", "internal"]);
    assert!(columns(&networks).contains(&vec!["192.0.2.0/24", "10.0.0.1"]), "{networks}");
    let networks = stage.done(&["print", "networks", "external", "203.0.113.0/24"]);
    let row = vec!["203.0.113.0/24", "10.8.0.2", "64502", "2"];
    assert!(columns(&networks).contains(&row) && networks.lines().count() == 2, "{networks}");
    let more = stage.done(&["print", "networks", "External", "--count", "1"]);
    assert!(more.ends_with("and 1 more: --count shows them\n"), "{more}");
    let route = stage.done(&["print", "route", "berlin", "east"]);
    assert!(columns(&route).contains(&vec!["10.8.0.2", "10.0.0.3", "1", "20", "2", "weight"]));
    let path = stage.done(&["print", "path", "192.0.2.9", EAST]);
    for line in [
        "from 192.0.2.9 at router 10.0.0.1 (its network is attached there)",
        "to   203.0.113.7 beyond router 10.8.0.2",
        "min_bandwidth 50 Mbit/s",
        "latency       3.5 ms",
        "internal_hops 2",
        "as_number     64502",
        "as_distance   2",
        "weight        20",
        "cost default: 17.200000, rank 2",
    ] {
        assert!(path.lines().any(|found| found == line), "{line} in {path}");
    }
    let hops = columns(&path);
    assert!(hops.iter().any(|hop| hop.starts_with(&["10.0.0.3", "10.8.0.2", "3", "up"])), "{path}");
    let none = stage.done(&["print", "path", "192.0.2.9", UNKNOWN]);
    assert!(none.contains("no path") && none.contains("cost default: unknown"), "{none}");
    let json: Value =
        serde_json::from_str(&stage.done(&["print", "path", "192.0.2.9", WEST, "--json"])).unwrap();
    assert_eq!(json["exit"], "10.8.0.1");
    assert!(stage.done(&["status"]).starts_with("oracle: healthy"));
    assert!(stage.done(&["print", "feeds"]).contains("configuration"));
    assert!(stage.done(&["print", "metrics"]).contains("8 * as_distance"));
    assert_eq!(stage.done(&["print", "threads"]).lines().count(), 3);
}

#[test]
fn routers_links_and_networks_are_created_and_deleted() {
    let stage = Stage::start("");
    for (words, changed) in [
        (
            &["create", "router", "10.0.0.9", "--name", "leipzig"][..],
            "router 10.0.0.9 (leipzig): created\n",
        ),
        (
            &["create", "link", "leipzig", "berlin", "--bandwidth", "10000", "--both"],
            "link leipzig -> berlin, both directions: created\n",
        ),
        (
            &[
                "create",
                "network",
                "external",
                "100.64.0.0/24",
                "leipzig",
                "--as",
                "64509",
                "--distance",
                "1",
            ],
            "network 100.64.0.0/24 at router leipzig: created\n",
        ),
    ] {
        assert_eq!(stage.done(words), changed, "{words:?}");
    }
    assert_eq!(stage.order(), [UNKNOWN, WEST, EAST]);
    assert_eq!(
        stage.done(&["delete", "link", "leipzig", "berlin", "--both"]),
        "link leipzig -> berlin, both directions: deleted\n"
    );
    assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    stage.done(&["delete", "network", "external", "198.51.100.0/24", "west"]);
    assert_eq!(stage.order(), [EAST, UNKNOWN, WEST], "unknown ones keep their order");
    stage.done(&["delete", "router", "east"]);
    assert_eq!(stage.order(), [UNKNOWN, EAST, WEST]);
    for (words, error) in [
        (&["delete", "router", "hamburg"][..], "no router has the address or name hamburg"),
        (&["set", "link", "berlin", "leipzig", "loss", "0.1"], "there is no link from"),
        (
            &["set", "link", "berlin", "10.0.0.2", "loss", "2"],
            "loss 2 is out of range: it must be 0 to 1",
        ),
        (&["set", "link", "berlin", "10.0.0.2", "weight", "1.5"], "a weight is a whole number"),
        (&["set", "interface", "berlin", "17", "DOWN"], "no link is on interface 17"),
        (&["set", "metric", "speed", "1"], "there is no metric speed"),
        (&["set", "metric", "default", "8", "*", "hops"], "at byte 4"),
        (&["create", "router", "10.0.0.1"], "there already is a router 10.0.0.1"),
        (
            &["create", "network", "internal", "192.0.2.1/24", "berlin"],
            "has bits set after its length",
        ),
        (&["print", "path", "100.65.0.9", WEST], "is in no known network"),
    ] {
        let finished = stage.oracle(words);
        assert!(
            !finished.success() && finished.stderr.contains(error),
            "{words:?}: {}",
            finished.stderr
        );
    }
}

#[test]
fn a_dump_loads_back_to_the_same_state() {
    let stage = Stage::start("");
    stage.done(&["set", "link", "10.0.0.3", "east", "bandwidth", "777"]);
    stage.done(&["create", "network", "internal", "2001:db8:1::/48", "10.0.0.2"]);
    stage.done(&["delete", "network", "external", "198.51.100.0/24", "west"]);
    let show = || {
        [
            &["print", "routers"][..],
            &["print", "links"],
            &["print", "networks", "internal"],
            &["print", "networks", "external"],
        ]
        .map(|words| stage.done(words))
    };
    let before = show();
    let folder = stage.files.path().join("dump");
    let text = stage.done(&["dump", folder.to_str().unwrap()]);
    let [conf, toml] = ["oracle.conf", "network.toml"].map(|name| folder.join(name));
    let wrote = format!("wrote {} and {}\n", conf.display(), toml.display());
    assert!(text.ends_with(&wrote), "{text}");
    let sections = |topology: &str| {
        format!("[oracle]\nthreads = 2\n[oracle.limit]\nrate = 0\n[oracle.topology]\n{topology}\n")
    };
    let reload = |topology: String| {
        stage.nigh.configure("node-a", &sections(&topology)).unwrap();
        stage.nigh.control(&serde_json::json!({"do": "reload"})).unwrap();
    };
    reload(format!("file = \"{}/network.toml\"", folder.display()));
    assert_eq!(show(), before);
    reload(format!("oracle_conf = \"{}/oracle.conf\"", folder.display()));
    // The format oracle.conf has no names, which the dump notes; all else is the same.
    let unnamed =
        before.map(|text| text.replace("berlin", "-").replace("west", "-").replace("east", "-"));
    assert_eq!(show().map(|text| columns_of(&text)), unnamed.map(|text| columns_of(&text)));
    assert!(text.contains("names"), "{text}");
}

fn columns_of(text: &str) -> Vec<Vec<String>> {
    columns(text).into_iter().map(|row| row.into_iter().map(str::to_owned).collect()).collect()
}

#[test]
fn the_console_reads_lines_like_the_command_line() {
    let stage = Stage::start("");
    let lines = "\nprint networks\nprint networks internal
set link 10.0.0.3 east bandwidth 1000\nset link a b loss 0\nnonsense\nexit\n";
    let script = stage.files.path().join("lines");
    std::fs::write(&script, lines).unwrap();
    let line = format!(
        "{} oracle console --socket {} < {}",
        super::stage::BINARY,
        stage.nigh.socket().display(),
        script.display()
    );
    let finished = stage.node.run(&["sh", "-c", &line], LIMIT).unwrap();
    assert!(finished.success(), "{}", finished.stderr);
    let text = finished.stdout;
    for part in [
        "basic commands\n  status ",
        "Which ones",
        "192.0.2.0/24",
        "link 10.0.0.3 -> east: bandwidth 1000 Mbit/s\n",
        "error: no router has the address or name a",
        "nonsense",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    let history = stage.reload(NETWORK, "").unwrap();
    assert!(history["reloaded"].is_string());
}
