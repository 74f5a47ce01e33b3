//! Scenes: what is wrong with one, and what happens at set times.

use super::{LIMIT, TWO_HOSTS, binary, lab, using::stopped_path};
use std::process::Command;
use testbed::wait_until;

/// The report on a scene that is refused.
pub(super) fn complaint(scene: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scene.toml");
    std::fs::write(&path, scene).unwrap();
    // A scene that is taken wrongly runs until it is stopped.
    let mut command = Command::new("timeout");
    let output = command.arg("20").arg(binary()).args(["lab", "run"]).arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    text.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn mistakes_are_reported_with_line_column_and_key() {
    // What is changed in the scene, to what; the position, and the message.
    for (from, to, position, printed) in [
        (
            "between = [\"r1\", \"r2\"]",
            "relation = \"inside\"\nbetween = [\"r1\", \"r2\"]",
            "scene.toml:12:12",
            "link[0].relation: `inside` was renamed to `internal`",
        ),
        (
            "attach = \"r2\"",
            "attach = \"r3\"",
            "scene.toml:22:10",
            "host[1].attach: there is no node r3",
        ),
        (
            "[\"r1\", \"r2\"]",
            "[\"r1\", \"r9\"]",
            "scene.toml:12:18",
            "link[0].between[1]: there is no node r9",
        ),
        ("delay = \"10ms\"", "delya = \"10ms\"", "scene.toml:13:9", "no setting `delya`"),
        (
            "delay = \"10ms\"",
            "delay = 10",
            "scene.toml:13:9",
            "expected a duration: write 10s, 100ms or 1h 30m",
        ),
        ("seed = 7", "seeds = 7", "scene.toml:3:1", "unknown key `seeds`: did you mean `seed`?"),
        ("attach = \"r1\"", "attached = \"r1\"", "scene.toml:17:1", "unknown key `attached`"),
        ("30.0.0.10/24", "30.0.0.10/33", "scene.toml:23:12", "host[1].address[0]"),
        ("30.0.0.10/24", "20.0.0.10/24", "scene.toml:23:12", "20.0.0.10 is given twice"),
        ("name = \"server\"", "name = \"pc\"", "scene.toml:21:8", "there are two hosts pc"),
        ("name = \"server\"", "name = \"a/b\"", "scene.toml:21:8", "cannot name a namespace"),
        ("[[link]]", "[[links]]", "scene.toml:11:3", "unknown section `[links]`"),
        ("seed = 7", "network = \"none\"", "scene.toml:5:1", "the network comes from the file"),
    ] {
        let text = complaint(&TWO_HOSTS.replacen(from, to, 1));
        assert!(text.contains(printed), "{from} -> {to}:\n{text}");
        assert!(text.contains(position), "{from} -> {to}: not at {position}\n{text}");
    }
    let event = "\n[[event]]\nat = \"1s\"\nlink = \"r1-r2\"\nset = {}\n";
    assert!(complaint(&format!("{TWO_HOSTS}{event}")).contains("this changes nothing"));
    let event = event.replace("r1-r2", "r2-r3").replace("{}", "{ up = false }");
    assert!(complaint(&format!("{TWO_HOSTS}{event}")).contains("there is no node r3"));
    for (event, printed) in [
        (
            "link = \"r1-r2\"\nset = { prohibit = \"30.0.0.0/24\" }",
            "event[0].set.prohibit: this is for",
        ),
        ("node = \"r1\"\nset = { prohibit = [\"30.0.0.9/24\"] }", "has bits set after its length"),
        ("node = \"r1\"\nset = { delay = \"1ms\" }", "of a node there are `up` and `prohibit`"),
        ("node = \"r1\"\nset = { prohibits = [] }", "event[0].set"),
    ] {
        let text = complaint(&format!("{TWO_HOSTS}\n[[event]]\nat = \"1s\"\n{event}\n"));
        assert!(text.contains(printed), "{event}:\n{text}");
    }
    let one_way = TWO_HOSTS.replace("[\"r1\", \"r2\"]", "[\"r1\", \"r2\"]\none_way = true");
    let event = "\n[[event]]\nat = \"1s\"\nlink = \"r1-r2\"\nset = { up = false }\n";
    let text = complaint(&format!("{one_way}{event}"));
    assert!(
        text.contains("event[0].link: r1-r2 has no reverse direction: add `one_way = true`"),
        "{text}"
    );
    assert!(complaint("").contains("there is no network"));
}

#[test]
fn a_network_comes_from_a_file_beside_the_scene() {
    let scene = "[lab]\nnetwork = \"none.nigh\"\n";
    let text = complaint(scene);
    assert!(text.contains("cannot open none.nigh"), "{text}");
}

#[test]
fn events_change_links_and_nodes_when_it_is_time() {
    let events = "
[[event]]
at = \"1500ms\"
link = \"r1-r2\"
set = { delay = \"50ms\" }

[[event]]
at = \"3s\"
node = \"r2\"
set = { up = false }
";
    let lab = lab(&format!("{TWO_HOSTS}{events}"));
    let words = ["ping", "-i", "0.1", "-c", "60", "-w", "6", "30.0.0.10"];
    let finished = lab.run("pc", &words, LIMIT).unwrap();
    let received = super::programs::times(&finished.stdout);
    // First 20 ms, then 100 ms, then nothing.
    assert!(received.first().is_some_and(|time| (20.0..100.0).contains(time)), "{finished:?}");
    assert!(received.last().is_some_and(|time| *time >= 100.0), "{finished:?}");
    assert!(received.len() < 45, "{finished:?}");
}

/// A list in the node's table, and lists that an event puts in its place, in both families.
#[test]
fn a_node_reports_what_it_prohibits() {
    let (v4, v6) = ("30.0.0.10", "2001:db8:30::10");
    let prohibit = "prohibit = [\"30.0.0.0/24\", \"2001:db8:30::/64\"]";
    let scene = TWO_HOSTS.replace("name = \"r2\"", &format!("name = \"r2\"\n{prohibit}"));
    let ping = |lab: &testbed::Lab, to| {
        lab.run("pc", &["ping", "-n", "-c", "1", "-W", "1", to], LIMIT).unwrap().stdout
    };
    let passes = |lab: &testbed::Lab, to| ping(lab, to).contains("1 received");
    for (instead, v6_passes) in
        [(None, false), (Some("\"2001:db8:30::/64\""), false), (Some(""), true)]
    {
        let event = instead.map(|list| {
            let set = format!("set = {{ prohibit = [{list}] }}");
            format!("\n[[event]]\nat = \"500ms\"\nnode = \"r2\"\n{set}\n")
        });
        let mut lab = lab(&format!("{scene}{}", event.unwrap_or_default()));
        if instead.is_none() {
            let path = stopped_path(&mut lab, "pc", v4);
            assert_eq!(path["stopped"], format!("r2 does not let packets pass to {v4}"));
            let hop = path["hops"][1]["address"].as_str().unwrap();
            // What ping calls code 13 of "destination unreachable".
            let text = ping(&lab, v4);
            assert!(text.contains(&format!("From {hop} icmp_seq=1 Packet filtered")), "{text}");
        } else {
            wait_until("the event", LIMIT, || passes(&lab, v4)).unwrap();
        }
        let text = ping(&lab, v6);
        let printed = "Destination unreachable: Administratively prohibited";
        assert!(text.contains(if v6_passes { "1 received" } else { printed }), "{text}");
    }
}
