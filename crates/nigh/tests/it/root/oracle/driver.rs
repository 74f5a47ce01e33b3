//! The plain request answered in the driver, the limits, and ALTO beside it.

use super::stage::{BINARY, EAST, LIMIT, NETWORK, Stage, UNKNOWN, WEST, metric, pair, sections};
use datapath::oracle::lacks;
use nix::sys::signal::Signal;
use oracle::{alto::tls::Fingerprint, proxidor::Rcode};
use serde_json::json;
use std::{
    net::{TcpStream, UdpSocket},
    path::Path,
};
use testbed::{Nigh, Receiver, wait_until};

#[test]
fn the_driver_answers_as_the_sockets_do_and_follows_changes_without_rights() {
    let stage = Stage::start("interfaces = [\"eth0\"]");
    let _receiver = Receiver::new(&stage.client, "eth0").unwrap();
    for _ in 0..10 {
        assert_eq!(stage.order(), [WEST, EAST, UNKNOWN]);
    }
    let status = stage.status();
    // A kernel that cannot run the program leaves all to the sockets: the same answers, and a line.
    let fallback = lacks().map(|lacks| {
        format!(
            "the sockets answer all requests, about a quarter as many a second as the driver \
             would: this kernel has no {lacks}"
        )
    });
    let in_driver = if fallback.is_none() { 10 } else { 0 };
    assert_eq!(status["driver"]["fallback"], json!(fallback), "{status}");
    assert_eq!(status["driver"]["answered"], in_driver, "{status}");
    assert_eq!(status["queries"]["received"], 10 - in_driver, "{status}");
    let line =
        fallback.map_or("interface eth0: native XDP".into(), |text| format!("driver: {text}"));
    assert!(stage.done(&["status"]).lines().any(|said| said == line), "{line}");
    // By now the daemon has given up the rights with which it loaded the program.
    stage.done(&["set", "link", "10.0.0.3", "east", "bandwidth", "1000"]);
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    stage.reload(NETWORK, "interfaces = [\"eth0\"]\ncost = \"-as_number\"").unwrap();
    assert_eq!(stage.order(), [EAST, WEST, UNKNOWN]);
    let status = stage.status();
    let answered = status["driver"]["answered"].as_u64().unwrap();
    assert_eq!(answered, if in_driver == 0 { 0 } else { 12 }, "{status}");
    assert_eq!(answered + status["queries"]["received"].as_u64().unwrap(), 12, "{status}");
    let (_, text) = stage.nigh.http(&stage.node, "/metrics").unwrap();
    let count = |name: &str| metric(&text, &format!("nigh_oracle_driver_{name}_total"), &[]);
    assert_eq!(count("received"), count("answered") + count("passed") + count("dropped"));
    // Another interface needs rights that are gone.
    let error = stage.reload(NETWORK, "").unwrap_err().to_string();
    assert!(error.contains("oracle.interfaces changed: restart the daemon"), "{error}");
    // So does another attach mode for the same one.
    let other = "interfaces = [\"eth0\"]\nmode = \"generic\"";
    let error = stage.reload(NETWORK, other).unwrap_err().to_string();
    assert!(error.contains("oracle.mode changed: restart the daemon"), "{error}");
}

/// What is asked for by name is no fallback's.
#[test]
fn native_is_native_or_an_error() {
    let (_client, node) = pair();
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("network.toml");
    std::fs::write(&file, NETWORK).unwrap();
    let sections = sections(&file, "interfaces = [\"eth0\"]\nmode = \"native\"");
    let started = Nigh::start(&node, Path::new(BINARY), "node-a", &sections);
    if let Some(lacks) = lacks() {
        let error = started.unwrap_err().to_string();
        let why = format!("oracle.interfaces: interface \"eth0\": this kernel has no {lacks}");
        assert!(error.contains(&why), "{error}");
    } else {
        let status = started.unwrap().control(&json!({"do": "status"})).unwrap();
        let interface = &status["oracle"]["driver"]["interfaces"][0];
        assert_eq!(interface["mode"], "native", "{status}");
    }
}

#[test]
fn a_source_prefix_is_held_to_its_rate() {
    let stage = Stage::start("");
    let file = stage.file();
    let text = sections(&file, "").replace("rate = 0", "rate = 1\nburst = 10");
    stage.nigh.configure("node-a", &text).unwrap();
    stage.nigh.control(&json!({"do": "reload"})).unwrap();
    stage.client.enter(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect("192.0.2.1:8899").unwrap();
        for _ in 0..100 {
            socket.send(&[0xf0; 12]).unwrap();
        }
    });
    let status = stage.status();
    let dropped = status["driver"]["filter_dropped"].as_u64().unwrap();
    let passed = status["driver"]["filter_passed"].as_u64().unwrap();
    assert_eq!(dropped + passed, 100, "{status}");
    assert!((10..=12).contains(&passed), "{status}");
    // Off again, at once.
    stage.reload(NETWORK, "").unwrap();
    assert_eq!(stage.rank(&[EAST, WEST]), (Rcode::NO_ERROR, vec![WEST.into(), EAST.into()]));
}

#[test]
fn alto_is_served_beside_it() {
    let stage = Stage::start("[oracle.alto]\nlisten = [\"192.0.2.1:6671\"]");
    stage.client.enter(|| TcpStream::connect("192.0.2.1:6671")).unwrap();
    let status = stage.status();
    assert_eq!(status["alto"]["listen"], json!(["192.0.2.1:6671"]), "{status}");
    assert!(stage.done(&["status"]).contains("ALTO at 192.0.2.1:6671"));
    let error = stage.reload(NETWORK, "").unwrap_err().to_string();
    assert!(error.contains("oracle.alto changed: restart the daemon"), "{error}");
    let more = "[oracle.alto]\nlisten = [\"192.0.2.1:6671\"]\nclasses = 5";
    stage.reload(NETWORK, more).unwrap();
}

#[test]
fn a_reload_takes_a_renewed_certificate() {
    let pems = tempfile::tempdir().unwrap();
    let (certificate, key) = (pems.path().join("alto.crt"), pems.path().join("alto.key"));
    let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let old = made();
    std::fs::write(&certificate, old.cert.pem()).unwrap();
    std::fs::write(&key, old.signing_key.serialize_pem()).unwrap();
    let alto = format!(
        "[oracle.alto]\nlisten = [\"192.0.2.1:6671\"]\ncertificate = \"{}\"\nkey = \"{}\"",
        certificate.display(),
        key.display()
    );
    let mut stage = Stage::start(&alto);
    let before = stage.order();
    let serves = |stage: &Stage, der: &[u8]| {
        stage.status()["alto"]["fingerprint"] == Fingerprint::of(der).to_string()
    };
    assert!(serves(&stage, old.cert.der()));

    // Half renewed: nothing changes, neither the certificate nor the order.
    let new = made();
    std::fs::write(&certificate, new.cert.pem()).unwrap();
    let more = format!("cost = \"-as_number\"\n{alto}");
    let error = stage.reload(NETWORK, &more).unwrap_err().to_string();
    assert!(error.contains("nothing was changed: oracle.alto: the key in "), "{error}");
    assert!(serves(&stage, old.cert.der()));
    assert_eq!(stage.order(), before);

    std::fs::write(&key, new.signing_key.serialize_pem()).unwrap();
    stage.reload(NETWORK, &more).unwrap();
    assert!(serves(&stage, new.cert.der()));
    assert_ne!(stage.order(), before);

    // The same with a signal.
    std::fs::write(&certificate, old.cert.pem()).unwrap();
    std::fs::write(&key, old.signing_key.serialize_pem()).unwrap();
    stage.nigh.process().signal(Signal::SIGHUP).unwrap();
    wait_until("the certificate", LIMIT, || serves(&stage, old.cert.der())).unwrap();
}
