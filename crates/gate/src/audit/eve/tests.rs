//! Each kind of record against the fields that Suricata documents.

use super::{
    super::tests::{at, flow_end, subject, verdict},
    *,
};
use serde_json::{Value, json};

fn eve(record: &Record) -> Value {
    let mut out = Vec::new();
    Eve::new(Mask::default(), (1, 2), true).write(record, &mut out).unwrap();
    assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
    serde_json::from_slice(&out).unwrap()
}

/// Takes out what differs and is inspected elsewhere.
fn without(mut line: Value, keys: &[&str]) -> Value {
    for key in keys {
        assert!(line.as_object_mut().unwrap().remove(*key).is_some(), "{key} in {line}");
    }
    line
}

#[test]
fn a_flow_has_the_fields_that_suricata_gives_it() {
    let line = eve(&flow_end(Transport::Tcp, AuditAction::Limit));
    assert!(line["flow_id"].as_u64().unwrap() < 1 << 53);
    let expected = json!({
        "timestamp": "2026-11-18T11:07:45.000000+0000",
        "event_type": "flow",
        "src_ip": "10.0.0.5", "src_port": 51413,
        "dest_ip": "192.0.2.7", "dest_port": 6881,
        "proto": "TCP",
        "app_proto": "bittorrent",
        "flow": {
            "pkts_toserver": 5, "pkts_toclient": 4, "bytes_toserver": 502, "bytes_toclient": 1062,
            "start": "2026-11-18T11:06:40.000000+0000", "end": "2026-11-18T11:07:41.500000+0000",
            "age": 61, "state": "established", "reason": "timeout", "alerted": false,
            "action": "pass",
        },
        "tcp": {
            "tcp_flags": "1b", "tcp_flags_ts": "1a", "tcp_flags_tc": "13",
            "syn": true, "fin": true, "psh": true, "ack": true, "state": "fin_wait1",
        },
        "nigh": {
            "application": "bittorrent", "detail": "peer-wire", "category": "peer-to-peer",
            "certainty": "likely", "engine": "host", "reason": "peer of tracker 192.0.2.1:6969",
            "internal": "client", "verdict": "limit", "rule": "no-sharing",
        },
    });
    assert_eq!(without(line, &["flow_id"]), expected);
}

#[test]
fn flows_of_udp_have_no_object_tcp_and_refused_ones_say_drop() {
    let line = eve(&flow_end(Transport::Udp, AuditAction::Drop));
    assert_eq!(line["tcp"], Value::Null);
    assert_eq!(line["flow"]["action"], "drop");
    assert_eq!(line["flow"]["alerted"], true);
    assert_eq!(line["flow"]["state"], "established");
}

#[test]
fn a_flow_that_was_reset_at_both_ends_is_closed() {
    let line = eve(&flow_end(Transport::Tcp, AuditAction::Reset));
    assert_eq!(
        (&line["flow"]["state"], &line["tcp"]["state"]),
        (&json!("closed"), &json!("closed"))
    );
    assert_eq!(eve(&flow_end(Transport::Tcp, AuditAction::Drop))["flow"]["state"], "established");
}

#[test]
fn a_flow_without_a_name_is_one_whose_protocol_failed() {
    let Record::Flow(mut it) = flow_end(Transport::Udp, AuditAction::Allow) else { unreachable!() };
    it.subject.label = None;
    let line = eve(&Record::Flow(it));
    assert_eq!(line["app_proto"], "failed");
    assert_eq!(line["nigh"]["application"], Value::Null);
}

#[test]
fn connections_get_the_state_that_their_control_bits_show() {
    let traffic = |flags| Traffic { packets: 1, bytes: 40, flags };
    for (there, back, expected) in [
        (0x02, 0x00, "syn_sent"),
        (0x02, 0x12, "syn_recv"),
        (0x12, 0x12, "established"),
        (0x1b, 0x12, "fin_wait1"),
        (0x1b, 0x1b, "closed"),
        (0x12, 0x14, "closed"),
        (0x10, 0x00, "established"),
        (0x00, 0x00, "none"),
    ] {
        assert_eq!(tcp_state(traffic(there), traffic(back)), expected, "{there:x} {back:x}");
    }
}

#[test]
fn the_number_of_a_flow_is_that_of_its_sockets_and_its_start() {
    let id = |key, record: &Record| Eve::new(Mask::default(), key, true).flow_id(record.subject());
    let one = flow_end(Transport::Tcp, AuditAction::Allow);
    assert_eq!(id((1, 2), &one), id((1, 2), &flow_end(Transport::Tcp, AuditAction::Drop)));
    assert_ne!(id((1, 2), &one), id((1, 2), &flow_end(Transport::Udp, AuditAction::Allow)));
    assert_ne!(id((1, 2), &one), id((3, 4), &one));
    let Record::Flow(mut later) = one.clone() else { unreachable!() };
    later.subject.started = at(1);
    assert_ne!(id((1, 2), &one), id((1, 2), &Record::Flow(later)));
}

fn file(complete: bool) -> Record {
    Record::File(FileSeen {
        subject: subject(Transport::Tcp),
        at: at(5),
        transfer: 3,
        from: Side::Server,
        name: "a \"b\"\n.iso".into(),
        size: Some(100),
        seen: 50,
        kind: Some("iso9660".into()),
        sha256: Some([0xab; 32]),
        hash: Some("0123".into()),
        complete,
        gaps: false,
        peers: vec!["192.0.2.9".parse().unwrap()],
        verdict: verdict(AuditAction::Allow),
    })
}

#[test]
fn a_file_comes_from_its_sender_and_has_the_fields_of_fileinfo() {
    let line = eve(&file(true));
    assert_eq!(line["event_type"], "fileinfo");
    assert_eq!((&line["src_ip"], &line["src_port"]), (&json!("192.0.2.7"), &json!(6881)));
    assert_eq!(line["dest_ip"], "10.0.0.5");
    assert_eq!(line["tx_id"], 3);
    let info = json!({
        "filename": "a \"b\"\n.iso", "magic": "iso9660", "gaps": false, "state": "CLOSED",
        "sha256": "ab".repeat(32), "stored": false, "size": 50, "tx_id": 3,
    });
    assert_eq!(line["fileinfo"], info);
    assert_eq!(line["nigh"]["size"], 100);
    assert_eq!(line["nigh"]["hash"], "0123");
    assert_eq!(line["nigh"]["peers"], json!(["192.0.2.9"]));
    assert_eq!(eve(&file(false))["fileinfo"]["state"], "TRUNCATED");
}

fn refusal(transport: Transport, action: AuditAction, cause: Cause) -> Record {
    let subject = subject(transport);
    Record::Refusal(Refusal { subject, at: at(1), verdict: verdict(action), cause, attempts: 4 })
}

#[test]
fn a_refusal_is_an_alert_that_blocked_with_the_verdict_of_version_7() {
    let line = eve(&refusal(Transport::Tcp, AuditAction::Reset, Cause::Rule));
    assert_eq!(line["event_type"], "alert");
    let alert = without(line["alert"].clone(), &["signature_id"]);
    let expected = json!({
        "action": "blocked", "gid": 4004, "rev": 1, "signature": "no-sharing",
        "category": "Potential Corporate Privacy Violation", "severity": 1,
    });
    assert_eq!(alert, expected);
    let expected = json!({ "action": "drop", "reject-target": "both", "reject": ["tcp-reset"] });
    assert_eq!(line["verdict"], expected);
    assert_eq!(line["nigh"]["attempts"], 4);
    let udp = eve(&refusal(Transport::Udp, AuditAction::Reset, Cause::Rule));
    assert_eq!(udp["verdict"]["reject"], json!(["icmp-prohib"]));
    let quiet = eve(&refusal(Transport::Udp, AuditAction::Drop, Cause::Operator));
    assert_eq!(quiet["verdict"], json!({ "action": "drop" }));
}

#[test]
fn a_refused_file_is_named_in_the_alert() {
    let line = eve(&refusal(Transport::Tcp, AuditAction::Drop, Cause::File("x.exe".into())));
    assert_eq!(line["files"][0]["filename"], "x.exe");
    assert_eq!(line["nigh"]["cause"], "file");
}

#[test]
fn a_file_that_nobody_could_scan_is_no_hit_of_a_rule() {
    let line = eve(&refusal(Transport::Tcp, AuditAction::Drop, Cause::Unscanned("x.exe".into())));
    assert_eq!(line["event_type"], "alert");
    assert_eq!(line["alert"]["signature"], "file not scanned");
    assert_eq!(
        (&line["alert"]["category"], &line["alert"]["severity"]),
        (&json!("Misc activity"), &json!(3))
    );
    assert_eq!(
        (&line["nigh"]["cause"], &line["nigh"]["rule"]),
        (&json!("unscanned"), &json!("no-sharing"))
    );
    assert_eq!(line["files"][0]["filename"], "x.exe");
}

#[test]
fn what_no_rule_was_asked_about_is_a_drop() {
    let line = eve(&refusal(Transport::Tcp, AuditAction::Drop, Cause::Cache));
    assert_eq!(line["event_type"], "drop");
    assert_eq!(line["drop"]["reason"], "flow drop");
    assert_eq!(line["alert"], Value::Null);
}

fn scan(finding: Finding, action: AuditAction) -> Value {
    eve(&Record::Scan(Scanned {
        subject: subject(Transport::Tcp),
        at: at(1),
        transfer: 2,
        from: Side::Server,
        name: "eicar.com".into(),
        size: 68,
        finding,
        verdict: verdict(action),
    }))
}

#[test]
fn a_find_is_an_alert_and_other_scans_are_events_of_our_own() {
    let line = scan(Finding::Found("Eicar-Signature".into()), AuditAction::Drop);
    assert_eq!(line["event_type"], "alert");
    assert_eq!(line["alert"]["signature"], "Eicar-Signature");
    assert_eq!(line["alert"]["category"], "A Network Trojan was detected");
    assert_eq!(line["files"][0]["filename"], "eicar.com");
    assert_eq!(line["scan"]["result"], "found");
    assert_eq!(line["src_ip"], "192.0.2.7");
    let clean = scan(Finding::Clean, AuditAction::Allow);
    assert_eq!((&clean["event_type"], &clean["scan"]["result"]), (&json!("scan"), &json!("clean")));
    let failed = scan(Finding::Failed("timed out".into()), AuditAction::Allow);
    assert_eq!(failed["scan"]["reason"], "timed out");
}

#[test]
fn anomalies_have_suricatas_names() {
    for (kind, event) in [
        (AnomalyKind::Overlap, "stream.reassembly_overlap_different_data"),
        (AnomalyKind::Gap, "stream.reassembly_seq_gap"),
        (AnomalyKind::Reassembly, "stream.reassembly_depth_reached"),
    ] {
        let subject = subject(Transport::Tcp);
        let line = eve(&Record::Anomaly(Anomaly { subject, at: at(1), from: Side::Server, kind }));
        assert_eq!(line["anomaly"], json!({ "type": "stream", "event": event }));
        assert_eq!(line["src_ip"], "192.0.2.7");
    }
}

#[test]
fn the_manual_asks_for_fields_that_are_there() {
    let manual = include_str!("../../../../../docs/gate-audit.md");
    let lines = [
        eve(&flow_end(Transport::Tcp, AuditAction::Limit)),
        eve(&refusal(Transport::Tcp, AuditAction::Reset, Cause::Rule)),
    ];
    let mut seen = 0;
    for command in manual.lines().filter(|line| line.starts_with("jq ")) {
        let filter = command.split('\'').nth(1).unwrap();
        let words = filter.split(|c: char| !(c.is_ascii_alphanumeric() || "_.$".contains(c)));
        // `.flow.bytes_toserver`, also behind a variable.
        for (_, path) in words.filter_map(|word| word.split_once('.')) {
            let pointer = format!("/{}", path.replace('.', "/"));
            let there = |line: &Value| line.pointer(&pointer).is_some_and(|value| !value.is_null());
            assert!(path.is_empty() || lines.iter().any(there), ".{path} of {command}");
            seen += 1;
        }
    }
    assert!(seen > 8, "only {seen} fields were found");
}
