//! A mesh of three through a lab, from its timetable to what is shown: on the terminal, as pictures, over
//! HTTP and in files.

use super::stage::{LIMIT, Proof, Stage, done};
use serde_json::{Value, json};
use testbed::wait_until;

const MESH: &str = r#"
[[probe.test]]
name = "always"
what = "owd"
mesh = ["alfa", "bravo", "carol"]
interval = "1s"
rate = 20
[[probe.test]]
name = "bulk"
what = "throughput"
from = ["alfa"]
to = ["bravo"]
interval = "40s"
duration = "500ms"
spread = "34s"
[[probe.test]]
name = "path"
what = "trace"
from = ["alfa"]
to = ["carol"]
interval = "40s"
spread = "9s"
"#;

/// A triangle whose sides take 2, 4 and 20 ms: the path from alfa to carol is over bravo.
const TRIANGLE: &str = r#"
[[link]]
between = ["ALFA", "BRAVO"]
delay = "2ms"
weight = 2
[[link]]
between = ["BRAVO", "CAROL"]
delay = "4ms"
weight = 4
[[link]]
between = ["ALFA", "CAROL"]
delay = "20ms"
weight = 20
"#;

/// What is shown over HTTP.
fn asked(stage: &Stage, words: &str) -> (u16, Value) {
    let path = format!("/api/v1/probe/show?{words}");
    let (code, body) = stage.stations[0].http(&stage.places[0], &path).unwrap();
    (code, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
}

/// Names of all files below a folder, without it.
fn files(folder: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for kind in std::fs::read_dir(folder).unwrap().flatten() {
        for file in std::fs::read_dir(kind.path()).unwrap().flatten() {
            let (kind, file) = (kind.file_name(), file.file_name());
            names.push(format!("{}/{}", kind.to_string_lossy(), file.to_string_lossy()));
        }
    }
    names.sort();
    names
}

#[test]
fn a_mesh_of_three_is_measured_by_its_timetable_and_shown() {
    let stage = Stage::apart(3, Proof::Certificates);
    let _lab = stage.join(TRIANGLE);
    let stage = stage.begin(MESH);
    for test in ["always", "bulk", "path"] {
        // The timetable begins each within 40 s, and again when there was no room for it.
        for _ in 0..2 {
            let one = |status: &Value| done(status, test) >= 1;
            if wait_until(test, LIMIT, || one(&stage.status(0))).is_ok() {
                break;
            }
        }
        assert!(done(&stage.status(0), test) >= 1, "{test}: {:#}", stage.status(0));
    }
    // The archive gathers for a second what it writes.
    for words in
        [["delay", "--to", "carol"], ["throughput", "--to", "bravo"], ["traces", "--to", "carol"]]
    {
        let there = || !stage.kept(0, &words).as_array().unwrap().is_empty();
        wait_until("records on disk", LIMIT, there).unwrap();
    }
    let more = || stage.kept(0, &["delay", "--to", "bravo"]).as_array().unwrap().len() > 1;
    wait_until("more than one record", LIMIT, more).unwrap();
    let mesh = stage.kept(0, &["mesh", "--since", "1h"]);
    for (to, least) in [("bravo", 2_000_000), ("carol", 6_000_000)] {
        let cells = mesh["cells"].as_array().unwrap();
        let cell = cells.iter().find(|cell| cell["to"] == to).unwrap();
        assert_eq!(cell["from"], "alfa", "{cell}");
        assert!(cell["median"]["estimate_ns"].as_i64().unwrap() >= least, "{cell}");
    }
    let hops = &stage.kept(0, &["traces"])[0]["figures"];
    assert_eq!((&hops["reached"], hops["hops"].as_array().unwrap().len()), (&json!(true), 4));
    let bulk = &stage.kept(0, &["throughput", "--test", "bulk"])[0];
    assert_eq!((&bulk["to"], &bulk["figures"]["kind"]), (&json!("bravo"), &json!("throughput")));
    for (view, text) in [
        ("mesh", "carol"),
        ("delay", "alfa > bravo"),
        ("throughput", "alfa > bravo"),
        ("traces", "10.77.3.1"),
        ("clocks", "alfa"),
    ] {
        let shown = stage.read(0, &["show", view]);
        assert!(shown.success() && shown.stdout.contains(text), "{}{}", shown.stdout, shown.stderr);
        let picture = stage.file(&format!("{view}.svg"));
        let shown = stage.read(0, &["show", view, "--svg", picture.to_str().unwrap()]);
        assert!(shown.success(), "{}", shown.stderr);
        let picture = std::fs::read_to_string(picture).unwrap();
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    }
    over_http(&stage);
    // In files; today is not over, so only on request.
    let folder = stage.file("files");
    let exported = stage.read(0, &["export", folder.to_str().unwrap(), "--json"]);
    assert!(exported.success(), "{}", exported.stderr);
    let written: Vec<Value> = serde_json::from_str(&exported.stdout).unwrap();
    for kind in ["clock", "delay", "throughput", "trace"] {
        let file = written.iter().find(|file| file["kind"] == kind);
        assert!(file.is_some_and(|file| file["records"].as_u64() >= Some(1)), "{written:#?}");
        assert!(files(&folder).iter().any(|name| name.starts_with(kind)), "{:?}", files(&folder));
    }
    let again = stage.read(0, &["export", folder.to_str().unwrap()]);
    assert!(!again.success() && again.stderr.contains("is there already"), "{}", again.stderr);
}

/// The same filters, bounds, and what is wrong with a question.
fn over_http(stage: &Stage) {
    let (code, mesh) = asked(stage, "");
    assert_eq!((code, &mesh["what"], &mesh["more"]), (200, &json!("mesh"), &json!(false)));
    assert_eq!(mesh["mesh"]["to"], json!(["bravo", "carol"]));
    let (_, some) = asked(stage, "what=delay&to=bravo&since=1h&test=always&limit=1");
    let entries = some["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["to"]), (1, &json!("bravo")), "{some}");
    assert_eq!(some["more"], true, "{some}");
    let (_, none) = asked(stage, "what=delay&from=bravo");
    assert_eq!((&none["entries"], &none["more"]), (&json!([]), &json!(false)));
    for (words, text) in [
        ("what=weather", "weather"),
        ("limit=-1", "invalid digit"),
        ("since=yesterday", "since"),
        ("speed=1", "unknown field"),
    ] {
        let (code, printed) = asked(stage, words);
        assert_eq!(code, 400, "{words}: {printed}");
        assert!(printed["error"].as_str().unwrap().contains(text), "{words}: {printed}");
    }
}
