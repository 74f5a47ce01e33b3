//! Stations agree before anything is sent, and refuse what they should.

use super::stage::{Authority, NAMES, Proof, Stage, done};
use serde_json::{Value, json};

/// The sum of all refusals of a station, or those of one reason.
fn refused(status: &Value, reason: &str) -> u64 {
    status["station"]["refused"][reason].as_u64().unwrap_or(0)
}

#[test]
fn a_delay_is_measured_on_request_in_both_families() {
    let stage = Stage::start(2, Proof::SharedKey, "");
    for family in ["ipv4", "ipv6"] {
        let order = json!({"what": "owd", "to": "bravo", "duration": "1s", "rate": 50,
                           "family": family});
        let record = stage.order(0, order).unwrap();
        assert_eq!((&record["from"], &record["to"]), (&json!("alfa"), &json!("bravo")));
        let figures = &record["figures"];
        assert_eq!(figures["kind"], "delay", "{record:#}");
        assert_eq!(figures["round_trip"]["sent"], 50, "{record:#}");
        assert_eq!(figures["forward"]["lost"], 0, "{record:#}");
        let forward = &figures["forward"]["median"];
        let (low, high) = (forward["low_ns"].as_i64(), forward["high_ns"].as_i64());
        // Both stations have the same clock, so the true delay is within some milliseconds. The kernel
        // may not know the clock's error: then nothing is promised.
        if let (Some(low), Some(high)) = (low, high) {
            assert!(low <= high && high > 0, "{record:#}");
        } else {
            assert_eq!((low, high), (None, None), "{record:#}");
        }
    }
    stage.wait("the end of what was agreed", 1, |status| status["station"]["leases"] == 0);
    let status = stage.status(1);
    assert_eq!(status["station"]["accepted"]["delay"], 2, "{status:#}");
    assert_eq!(status["delays"]["reflected"], 100, "{status:#}");
    // The command line shows it too.
    let finished = stage.probe(0, &["run", "owd", "bravo", "--duration", "500ms"]);
    assert!(finished.success(), "{}", finished.stderr);
    assert!(finished.stdout.contains("round trip: 5 sent"), "{}", finished.stdout);
}

#[test]
fn throughput_and_ping_are_measured_between_stations() {
    let stage = Stage::start(2, Proof::Certificates, "");
    for (transport, bandwidth) in
        [("tcp", None), ("udp", Some(20)), ("psock", None), ("iperf3", None)]
    {
        let mut order = json!({"what": "throughput", "to": "bravo", "duration": "500ms",
                               "transport": transport});
        if let Some(bandwidth) = bandwidth {
            order["bandwidth"] = json!(bandwidth);
        }
        let record = stage.order(0, order).unwrap();
        let figures = &record["figures"];
        assert_eq!(figures["kind"], "throughput", "{record:#}");
        assert_eq!(figures["transport"], transport, "{record:#}");
        assert!(figures["bytes"].as_u64().unwrap() > 100_000, "{record:#}");
    }
    let record = stage.order(0, json!({"what": "ping", "to": "bravo"})).unwrap();
    assert_eq!(record["figures"]["kind"], "ping", "{record:#}");
    assert_eq!(record["figures"]["lost"], 0, "{record:#}");
    let record = stage.order(0, json!({"what": "trace", "to": "bravo", "family": "ipv6"})).unwrap();
    assert_eq!(record["figures"]["reached"], true, "{record:#}");
    assert_eq!(record["figures"]["hops"].as_array().unwrap().len(), 1, "{record:#}");
    let status = stage.status(0);
    assert_eq!(done(&status, "request"), 6, "{status:#}");
}

#[test]
fn an_address_that_did_not_agree_is_sent_nothing() {
    let stage = Stage::start(2, Proof::SharedKey, "allow = [\"10.77.0.8/32\"]");
    let unknown = stage.unknown();
    for what in ["ping", "trace", "owd"] {
        let refused = stage.order(0, json!({"what": what, "to": "10.77.0.9"})).unwrap_err();
        assert!(refused.to_string().contains("not on the allow list"), "{refused}");
    }
    let refused = stage.order(0, json!({"what": "throughput", "to": "10.77.0.9"})).unwrap_err();
    assert!(refused.to_string().contains("not a station"), "{refused}");
    // The command line shows the same.
    let finished = stage.probe(0, &["run", "ping", "10.77.0.9"]);
    assert_eq!(finished.stdout, "");
    assert!(finished.stderr.contains("allow list"), "{}", finished.stderr);
    // Nothing was sent: the unknown host's neighbour table has no entry for the station.
    let neighbours = unknown.check(&["ip", "neigh", "show", "10.77.0.1"]).unwrap();
    assert_eq!(neighbours, "");
}

#[test]
fn a_wrong_certificate_is_refused_on_both_sides() {
    let stage = Stage::empty(2, Proof::Certificates);
    // Bravo's is for another name, and later from another authority.
    let authority = Authority::new("other");
    let carol = std::fs::read(stage.file("carol.pem")).unwrap();
    std::fs::write(stage.file("bravo.pem"), carol).unwrap();
    std::fs::copy(stage.file("carol.key"), stage.file("bravo.key")).unwrap();
    let mut stage = stage.begin("");
    let order = || json!({"what": "owd", "to": "bravo", "duration": "1s"});
    let record = stage.order(0, order()).unwrap();
    let reason = record["figures"]["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("bravo is not reached") && reason.contains("certificate"),
        "{record:#}"
    );
    // As an asking station it is not believed to be bravo.
    let record = stage.order(1, json!({"what": "owd", "to": "alfa", "duration": "1s"})).unwrap();
    let reason = record["figures"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("the certificate is not for bravo"), "{record:#}");
    stage.wait("the refusal", 0, |status| refused(status, "unknown-peer") > 0);
    authority.issue("bravo", &stage.file("bravo"));
    let sections = stage.sections(1, "");
    let Stage { stations, places, .. } = &mut stage;
    stations[1].restart(&places[1], super::stage::BINARY.as_ref(), NAMES[1], &sections).unwrap();
    stage.order(1, json!({"what": "owd", "to": "alfa", "duration": "1s"})).unwrap();
    stage.wait("the refusal", 0, |status| refused(status, "handshake") > 0);
    let status = stage.status(0);
    assert_eq!(status["station"]["accepted"].as_object().unwrap().len(), 0, "{status:#}");
    assert_eq!(status["delays"]["sent"], 0, "{status:#}");
}

#[test]
fn what_a_station_may_not_ask_is_refused_and_counted() {
    let stage = Stage::empty(2, Proof::SharedKey);
    let more = "limit = { duration = \"5s\", rate = 100 }";
    let stage = stage.begin(more);
    let refused_here = stage.order(0, json!({"what": "owd", "to": "bravo", "rate": 101}));
    assert!(refused_here.unwrap_err().to_string().contains("probe.limit.rate"));
    let refused_here =
        stage.order(0, json!({"what": "throughput", "to": "bravo", "duration": "6s"}));
    assert!(refused_here.unwrap_err().to_string().contains("100ms to 5s"));
    // The other station has narrower limits.
    let narrow = stage.sections(1, "limit = { rate = 5 }");
    stage.stations[1].configure(NAMES[1], &narrow).unwrap();
    stage.stations[1].control(&json!({"do": "reload"})).unwrap();
    let record = stage.order(0, json!({"what": "owd", "to": "bravo", "rate": 10})).unwrap();
    let reason = record["figures"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("bravo refuses") && reason.contains("packets a second"), "{record:#}");
    assert_eq!(refused(&stage.status(1), "too-fast"), 1);
    let (_, metrics) = stage.stations[1].http(&stage.places[1], "/metrics").unwrap();
    assert!(metrics.contains("nigh_probe_refused_total{reason=\"too-fast\"} 1"), "{metrics}");
}
