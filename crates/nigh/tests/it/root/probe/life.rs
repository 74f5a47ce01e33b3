//! A mesh as it runs: by its schedule, over deaths and reloads.

use super::stage::{BINARY, LIMIT, NAMES, Proof, Stage, done, private};
use serde_json::json;
use testbed::wait_until;

const MESH: &str = r#"
[[probe.test]]
name = "always"
what = "owd"
mesh = ["alfa", "bravo", "carol"]
interval = "1s"
rate = 20
"#;

#[test]
fn a_mesh_of_three_measures_all_the_time_and_outlives_a_station() {
    let mut stage = Stage::start(3, Proof::SharedKey, MESH);
    for number in 0..3 {
        stage.wait("records of both others", number, |status| done(status, "always") >= 4);
        let status = stage.status(number);
        let reached = status["peers"].as_array().unwrap();
        assert!(reached.len() == 2 && reached.iter().all(|peer| peer["reached"] == true));
        assert_eq!(status["station"]["leases"], 2, "{status:#}");
    }
    stage.stations[2].process().kill();
    stage.wait("the loss of carol", 0, |status| {
        let peers = status["peers"].as_array().unwrap();
        peers.iter().any(|peer| peer["name"] == "carol" && peer["reached"] == false)
    });
    // What was agreed with it has ended, what was agreed with the other has not.
    stage.wait("the end of carol's session", 0, |status| status["station"]["leases"] == 1);
    let before = done(&stage.status(0), "always");
    stage.wait("records of bravo", 0, |status| done(status, "always") >= before + 2);
    let sections = stage.sections(2, MESH);
    let Stage { stations, places, .. } = &mut stage;
    stations[2].restart(&places[2], BINARY.as_ref(), NAMES[2], &sections).unwrap();
    stage.wait("carol's records", 2, |status| done(status, "always") >= 2);
    stage.wait("carol again", 0, |status| {
        let peers = status["peers"].as_array().unwrap();
        status["station"]["leases"] == 2 && peers.iter().all(|peer| peer["reached"] == true)
    });
}

#[test]
fn what_was_shown_before_a_kill_is_shown_after_it() {
    let mut stage = Stage::start(2, Proof::SharedKey, &MESH.replace(", \"carol\"", ""));
    let shown = |stage: &Stage| {
        let path = "/api/v1/probe/show?what=delay&test=always&limit=20000";
        let (code, body) = stage.stations[0].http(&stage.places[0], path).unwrap();
        assert_eq!(code, 200, "{body}");
        let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
        answer["entries"].as_array().unwrap().clone()
    };
    // Some kills, so that one may fall into a transaction.
    for round in 1..=5 {
        wait_until("records", LIMIT, || shown(&stage).len() >= round * 2).unwrap();
        let before = shown(&stage);
        stage.stations[0].process().kill();
        let sections = stage.sections(0, &MESH.replace(", \"carol\"", ""));
        let Stage { stations, places, .. } = &mut stage;
        stations[0].restart(&places[0], BINARY.as_ref(), NAMES[0], &sections).unwrap();
        let after = shown(&stage);
        assert!(before.iter().all(|entry| after.contains(entry)), "round {round}");
        let archive = &stage.status(0)["archive"];
        assert_eq!(archive["set_aside"], json!([]), "{archive:#}");
    }
}

#[test]
fn a_reload_keeps_counters_and_sessions() {
    let stage = Stage::start(2, Proof::SharedKey, &MESH.replace(", \"carol\"", ""));
    stage.wait("records", 0, |status| done(status, "always") >= 2);
    let before = stage.status(0);
    let more = "allow = [\"10.77.0.9/32\"]\n".to_owned() + &MESH.replace(", \"carol\"", "");
    stage.stations[0].configure(NAMES[0], &stage.sections(0, &more)).unwrap();
    stage.stations[0].control(&json!({"do": "reload"})).unwrap();
    let after = stage.status(0);
    assert!(done(&after, "always") >= done(&before, "always"));
    let accepted = |status: &serde_json::Value| status["station"]["accepted"]["delay"].as_u64();
    assert_eq!(accepted(&after), accepted(&before), "the other's session goes on");
    let peers = stage.status(1);
    assert_eq!(accepted(&peers), Some(1), "and so does this one's: {peers:#}");
    // Now the address may be sent to; nobody is there.
    let record = stage.order(0, json!({"what": "ping", "to": "10.77.0.9", "duration": "200ms"}));
    assert_eq!(record.unwrap()["figures"]["kind"], "ping");
    // What is only opened at the start is reported so, and nothing is changed.
    let moved = more.clone() + "[probe.reflector]\nport = 8862\n";
    stage.stations[0].configure(NAMES[0], &stage.sections(0, &moved)).unwrap();
    let error = stage.stations[0].control(&json!({"do": "reload"})).unwrap_err().to_string();
    assert!(error.contains("nothing was changed") && error.contains("probe.reflector"), "{error}");
}

#[test]
fn a_reload_does_not_forget_how_long_a_station_is_lost() {
    let mut stage = Stage::start(2, Proof::SharedKey, &MESH.replace(", \"carol\"", ""));
    stage.wait("bravo", 0, |status| status["peers"][0]["reached"] == true);
    stage.stations[1].process().kill();
    let lost = |status: &serde_json::Value| {
        let bravo = &status["peers"][0];
        bravo["reached"] == false && bravo["since_seconds"].as_f64() >= Some(2.0)
    };
    stage.wait("the loss of bravo", 0, lost);
    stage.stations[0].control(&json!({"do": "reload"})).unwrap();
    let status = stage.status(0);
    assert!(lost(&status), "{status:#}");
}

#[test]
fn who_connects_again_after_a_reload_does_with_the_new_keys() {
    let mesh = MESH.replace(", \"carol\"", "");
    let mut stage = Stage::start(2, Proof::SharedKey, &mesh);
    let reached = |status: &serde_json::Value| status["peers"][0]["reached"].as_bool();
    stage.wait("bravo", 0, |status| reached(status) == Some(true));
    private(&stage.file("mesh.key"), &format!("{}\n", "a5".repeat(32)));
    stage.stations[0].control(&json!({"do": "reload"})).unwrap();
    stage.stations[1].process().kill();
    stage.wait("the loss of bravo", 0, |status| reached(status) == Some(false));
    let sections = stage.sections(1, &mesh);
    let Stage { stations, places, .. } = &mut stage;
    stations[1].restart(&places[1], BINARY.as_ref(), NAMES[1], &sections).unwrap();
    stage.wait("bravo again", 0, |status| reached(status) == Some(true));
}

#[test]
fn a_session_that_is_ended_by_a_reload_leaves_what_it_measured() {
    let mesh = MESH.replace(", \"carol\"", "").replace("\"1s\"", "\"1h\"");
    let stage = Stage::start(2, Proof::SharedKey, &mesh);
    // What happened to the first of them is known by then: a packet is lost after two seconds.
    stage.wait("packets", 0, |status| status["delays"]["sent"].as_u64() >= Some(60));
    assert_eq!(done(&stage.status(0), "always"), 0);
    stage.stations[0].configure(NAMES[0], &stage.sections(0, "")).unwrap();
    stage.stations[0].control(&json!({"do": "reload"})).unwrap();
    stage.wait("the record", 0, |status| done(status, "always") == 1);
    let kept = || stage.kept(0, &["delay"]).as_array().map(Vec::len) == Some(1);
    wait_until("it on the disk", LIMIT, kept).unwrap();
}

#[test]
fn a_timetable_is_kept_and_disturbing_tests_are_apart() {
    // All of these are due at the same moments, and there is not even room for two of them in seven seconds:
    // without a timetable and leases they would run at once.
    let more = r#"
[[probe.test]]
name = "bulk"
what = "throughput"
mesh = ["alfa", "bravo"]
interval = "7s"
duration = "1s"
spread = "1s"
[[probe.test]]
name = "look"
what = "ping"
mesh = ["alfa", "bravo"]
interval = "7s"
duration = "1s"
spread = "1s"
"#;
    let stage = Stage::start(2, Proof::SharedKey, more);
    for number in 0..2 {
        stage.wait("runs of both tests", number, |status| {
            done(status, "bulk") >= 2 && done(status, "look") >= 2
        });
        let runs = |status: &serde_json::Value| done(status, "bulk") + done(status, "look");
        let before = runs(&stage.status(number));
        // What was put before is on disk when more is.
        stage.wait("them on disk", number, |status| {
            status["archive"]["written"].as_u64() >= Some(before) && runs(status) > before
        });
    }
    let mut runs = Vec::new();
    for number in 0..2 {
        for words in [["throughput", "--test", "bulk"], ["delay", "--direction", "round-trip"]] {
            for record in stage.kept(number, &words).as_array().unwrap() {
                let (at, lasted) = (record["at_ns"].as_u64(), record["lasted_ns"].as_u64());
                let (at, bulk) = (at.unwrap(), record["figures"]["kind"] == "throughput");
                runs.push((at, at + lasted.unwrap(), bulk, record["from"].clone()));
            }
        }
    }
    assert!(runs.len() >= 8, "{runs:?}");
    for (number, one) in runs.iter().enumerate() {
        for other in &runs[number + 1..] {
            let at_once = one.0 < other.1 && other.0 < one.1;
            assert!(!at_once || !one.2 && !other.2, "{one:?} and {other:?} run at once");
        }
    }
}

#[test]
fn the_problems_of_a_station_are_shown() {
    // No clock is that good, and bravo is not there.
    let more = MESH.replace(", \"carol\"", "") + "[probe.clock]\nlimit = \"1ns\"\n";
    let mut stage = Stage::start(2, Proof::SharedKey, &more);
    stage.stations[1].process().kill();
    let (code, body) = stage.stations[0].http(&stage.places[0], "/healthz").unwrap();
    assert!(code == 503 && body.contains("probe: ") && body.contains("clock"), "{body}");
    let status = stage.probe(0, &["status"]);
    let text = status.stdout;
    assert!(text.contains("probe: not healthy; station alfa"), "{text}");
    assert_eq!(status.status.code(), Some(5));
    let reported = || {
        let (_, body) = stage.stations[0].http(&stage.places[0], "/healthz").unwrap();
        body.contains("station bravo is not reached")
    };
    wait_until("the problem", LIMIT, reported).unwrap();
}

#[test]
fn few_capabilities_are_kept_by_every_thread_of_a_station() {
    let more =
        "reflector = { interfaces = [\"eth0\"] }\n".to_owned() + &MESH.replace(", \"carol\"", "");
    let mut stage = Stage::start(2, Proof::SharedKey, &more);
    // A test on request as well, so that threads that are made when they are wanted are there.
    stage.order(0, json!({"what": "trace", "to": "bravo"})).unwrap();
    stage.wait("records", 0, |status| done(status, "always") >= 1);
    let pid = stage.stations[0].process().pid();
    let threads = testbed::few_capabilities(pid);
    for name in ["delay", "archive", "probe"] {
        assert!(threads.contains_key(name), "{name} in {threads:?}");
    }
}
