//! Stations that are far from each other through a lab, and one that reflects in the driver.

use super::stage::{BINARY, NAMES, Proof, Stage};
use serde_json::{Value, json};
use std::path::Path;
use testbed::Receiver;

/// Half of the lab's link, in nanoseconds: forward, and reverse.
const FORWARD_NS: i64 = 20_000_000;
const REVERSE_NS: i64 = 5_000_000;

fn minimum(record: &Value, direction: &str) -> i64 {
    record["figures"][direction]["minimum"]["estimate_ns"].as_i64().unwrap()
}

/// A path that is longer forward than in reverse: a round trip alone would not know.
#[test]
fn each_way_has_its_own_delay() {
    let stage = Stage::apart(2, Proof::Certificates);
    let lab = stage.join("[[link]]\nbetween = [\"ALFA\", \"BRAVO\"]\ndelay = \"5ms\"\n");
    lab.ask(&["link", "ALFA>BRAVO", "set", "delay=20ms"]).unwrap();
    let stage = stage.begin("");
    let order = json!({"what": "owd", "to": "bravo", "duration": "1s", "rate": 50});
    let record = stage.order(0, order).unwrap();
    assert_eq!(record["figures"]["kind"], "delay", "{record:#}");
    assert!(minimum(&record, "forward") >= FORWARD_NS, "{record:#}");
    assert!(minimum(&record, "reverse") >= REVERSE_NS, "{record:#}");
    assert!(minimum(&record, "round_trip") >= FORWARD_NS + REVERSE_NS, "{record:#}");
    let trace = stage.order(0, json!({"what": "trace", "to": "bravo"})).unwrap();
    assert_eq!(trace["figures"]["reached"], true, "{trace:#}");
    assert_eq!(trace["figures"]["hops"].as_array().unwrap().len(), 3, "{trace:#}");
}

#[test]
fn plain_packets_are_reflected_in_the_driver() {
    let stage = Stage::start(2, Proof::SharedKey, "");
    // What is sent from a driver reaches a veth whose own side has a program.
    let _receiver = Receiver::new(&stage.switch, "port2").unwrap();
    let mut stage = stage;
    let sections = stage.sections(1, "reflector = { interfaces = [\"eth0\"] }");
    let Stage { stations, places, .. } = &mut stage;
    stations[1].restart(&places[1], Path::new(BINARY), NAMES[1], &sections).unwrap();
    let order = json!({"what": "owd", "to": "bravo", "duration": "1s", "rate": 20, "plain": true});
    let record = stage.order(0, order).unwrap();
    let status = stage.status(1);
    assert_eq!(record["figures"]["round_trip"]["sent"], 20, "{record:#}");
    assert_eq!(record["figures"]["round_trip"]["lost"], 0, "{record:#} {status:#}");
    assert_eq!(status["driver"]["reflected"], 20, "{status:#}");
    assert_eq!(status["delays"]["reflected"], 0, "{status:#}");
}
