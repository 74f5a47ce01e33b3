//! Tests on request by HTTP: off by default, for clients with the token, within limits.

use super::stage::{Proof, Stage, private};
use std::{
    io::{Read, Write},
    net::TcpStream,
};
use testbed::Namespace;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Sends a request for a test from the station's own namespace; the status code and the body.
fn post(host: &Namespace, token: Option<&str>, body: &str) -> (u16, String) {
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    let request = format!(
        "POST /api/v1/probe/run HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}Content-Length: {}\r\n\r\n{body}",
        authorization.unwrap_or_default(),
        body.len()
    );
    let answer = host.enter(|| {
        let mut stream = TcpStream::connect(("127.0.0.1", 9160)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[test]
fn a_page_and_a_name_server_are_asked_where_that_is_allowed() {
    let stage = Stage::start(1, Proof::SharedKey, "allow = [\"127.0.0.1/32\"]");
    let page = serde_json::json!({"what": "http", "to": "http://127.0.0.1:9160/healthz"});
    let record = stage.order(0, page).unwrap();
    assert_eq!(record["figures"]["status"], 200, "{record:#}");
    assert_eq!(record["figures"]["bytes"], 3, "{record:#}");
    let elsewhere = serde_json::json!({"what": "http", "to": "http://10.77.0.9/"});
    let record = stage.order(0, elsewhere).unwrap();
    let reason = record["figures"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("allow list"), "{record:#}");
    // Nobody answers there.
    let question = serde_json::json!({"what": "dns", "to": "www.example.com@127.0.0.1"});
    let record = stage.order(0, question).unwrap();
    assert_eq!(record["figures"]["kind"], "failed", "{record:#}");
    // The command line prints the same, and ends with another exit code.
    let failed = stage.probe(0, &["run", "dns", "www.example.com@127.0.0.1"]);
    assert_eq!(failed.status.code(), Some(1), "{}{}", failed.stdout, failed.stderr);
    assert!(failed.stdout.contains("nothing was measured: "), "{}", failed.stdout);
    // No clock error is known there, and a missing value is not taken as zero.
    let record = stage.order(0, serde_json::json!({"what": "clock", "to": "127.0.0.1"})).unwrap();
    assert_eq!(record["figures"]["kind"], "failed", "{record:#}");
    for (key, value) in [
        ("duration", serde_json::json!("1s")),
        ("rate", 5.into()),
        ("bandwidth", 5.into()),
        ("transport", "udp".into()),
        ("plain", true.into()),
    ] {
        let mut order = serde_json::json!({"what": "clock", "to": "127.0.0.1"});
        order[key] = value;
        let refused = stage.order(0, order).unwrap_err().to_string();
        assert!(refused.contains("clock has no "), "{key}: {refused}");
    }
    let elsewhere = serde_json::json!({"what": "dns", "to": "www.example.com@10.77.0.9"});
    let refused = stage.order(0, elsewhere).unwrap_err().to_string();
    assert!(refused.contains("not on the allow list"), "{refused}");
}

#[test]
fn requests_by_http_need_a_token() {
    let ping = r#"{"what":"ping","to":"bravo","duration":"400ms"}"#;
    let stage = Stage::start(2, Proof::SharedKey, "");
    assert_eq!(post(&stage.places[0], Some(TOKEN), ping).0, 404, "off by default");
    private(&stage.file("token"), TOKEN);
    let file = stage.file("token");
    let more = format!(
        "request = {{ token = \"{}\", may = [\"ping\", \"trace\"] }}",
        file.to_str().unwrap()
    );
    stage.stations[0].configure("alfa", &stage.sections(0, &more)).unwrap();
    stage.stations[0].control(&serde_json::json!({"do": "reload"})).unwrap();
    let host = &stage.places[0];
    assert_eq!(post(host, None, ping).0, 401);
    assert_eq!(post(host, Some("0123456789abcdef0123456789abcdee"), ping).0, 401);
    assert_eq!(post(host, Some(TOKEN), "{").0, 400);
    let old = r#"{"what":"ping","to":"bravo","length":"400ms"}"#;
    let (code, body) = post(host, Some(TOKEN), old);
    assert!(code == 400 && body.contains("was renamed to `duration`"), "{code} {body}");
    assert_eq!(post(host, Some(TOKEN), r#"{"what":"owd","to":"bravo"}"#).0, 403);
    let (code, body) = post(host, Some(TOKEN), r#"{"what":"ping","to":"10.77.0.9"}"#);
    assert!(code == 422 && body.contains("not on the allow list"), "{code} {body}");
    let (code, body) = post(host, Some(TOKEN), ping);
    let record: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((code, &record["figures"]["kind"]), (200, &"ping".into()), "{body}");
    let refused = &stage.status(0)["requests_refused"];
    assert_eq!(refused["token"], 2, "{refused}");
    // A file that others can read is refused, and the token in force stays.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&file, open).unwrap();
    let error = stage.stations[0].control(&serde_json::json!({"do": "reload"})).unwrap_err();
    assert!(error.to_string().contains("probe.request.token"), "{error}");
    assert_eq!(post(host, Some(TOKEN), ping).0, 200);
}
