//! Flows as IPFIX, read by tshark: from a file, and as a collector gets them.

use classify::{
    flow::{Flow, Side, Transport},
    label::{Category, Certainty, Engine, Label},
};
use gate::audit::{
    ActionTaken, Audit, AuditAction, Config, End, FlowEnd, IpfixConfig, Mapping, Record, Subject,
    Traffic,
};
use serde_json::Value;
use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

fn is_6(number: u16) -> bool {
    number.is_multiple_of(4)
}

/// One of 40 flows, every fourth of version 6.
fn flow(number: u16) -> Record {
    let [client, server] =
        if is_6(number) { ["[2001:db8::5]", "[2001:db8:1::7]"] } else { ["10.0.0.5", "192.0.2.7"] };
    let client = format!("{client}:{}", 40_000 + number);
    let server = format!("{server}:6881");
    let started = UNIX_EPOCH + Duration::from_millis(1_795_000_000_250 + u64::from(number));
    Record::Flow(FlowEnd {
        subject: Subject {
            flow: Flow {
                transport: if number.is_multiple_of(2) { Transport::Udp } else { Transport::Tcp },
                client: client.parse().unwrap(),
                server: server.parse().unwrap(),
            },
            started,
            internal: Side::Client,
            label: (number != 1).then(|| Label {
                application: "bittorrent".into(),
                detail: Some("utp".into()),
                category: Category::PeerToPeer,
                certainty: Certainty::Certain,
                engine: Engine::Parser,
                reason: "a handshake".into(),
            }),
        },
        at: started + Duration::from_secs(65),
        last: started + Duration::from_secs(60),
        to_server: Traffic { packets: 5, bytes: 500 + u64::from(number), flags: 0x1a },
        to_client: Traffic { packets: 7, bytes: 70_000_000_000, flags: 0x13 },
        end: End::Closed,
        verdict: ActionTaken {
            action: if number == 2 { AuditAction::Drop } else { AuditAction::Allow },
            rule: None,
        },
    })
}

/// What tshark says of a file: an object for each flow, its fields by name.
fn read(path: &Path) -> Vec<Value> {
    let run = Command::new("tshark")
        .args(["-T", "json", "--no-duplicate-keys", "-r"])
        .arg(path)
        .output()
        .expect("tshark is installed by scripts/setup test");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(!text.contains("_ws.malformed"), "{text}");
    let messages: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut flows = Vec::new();
    for message in &messages {
        for (name, set) in message["_source"]["layers"]["cflow"].as_object().unwrap() {
            if !name.starts_with("Set ") {
                continue;
            }
            for (name, record) in set.as_object().unwrap() {
                if name.starts_with("Flow ") {
                    flows.push(record.clone());
                }
            }
        }
    }
    flows
}

/// The values of a field wherever it stands, as tshark groups some of them: a field that a record has
/// in both directions has two.
fn fields(record: &Value, name: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (key, value) in record.as_object().into_iter().flatten() {
        match value {
            Value::String(text) if key == name => out.push(text.clone()),
            Value::Array(values) if key == name => {
                out.extend(values.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            inner => out.extend(fields(inner, name)),
        }
    }
    out
}

fn check(flows: &[Value], client: [&str; 2]) {
    assert_eq!(flows.len(), 40);
    for record in flows {
        let port: u16 = fields(record, "cflow.srcport")[0].parse().unwrap();
        let number = port - 40_000;
        let is = |name: &str, expected: &[&str]| {
            assert_eq!(fields(record, name), expected, "{name} of {record:#}");
        };
        let address = if is_6(number) { "cflow.srcaddrv6" } else { "cflow.srcaddr" };
        is(address, &[client[usize::from(is_6(number))]]);
        is("cflow.dstport", &["6881"]);
        is("cflow.protocol", &[if number.is_multiple_of(2) { "17" } else { "6" }]);
        is("cflow.octets", &[&(500 + number).to_string(), "70000000000"]);
        is("cflow.packets", &["5", "7"]);
        is("cflow.flow_end_reason", &["3"]);
        is("cflow.biflow_direction", &["1"]);
        is("cflow.forwarding_status", &[if number == 2 { "2" } else { "1" }]);
        // An empty string is there, and tshark has nothing to show of it.
        let names: &[_] = if number == 1 { &[] } else { &["bittorrent", "utp"] };
        is("cflow.appl_name", names.get(..1).unwrap_or_default());
        is("cflow.application_sub_category_name", names.get(1..).unwrap_or_default());
        is("cflow.timedelta", &["60.000000000"]);
    }
}

/// In a file the templates come first, and both directions are in one record.
#[test]
fn tshark_reads_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let ipfix = IpfixConfig { file: true, ..IpfixConfig::default() };
    let config = Config { ipfix: Some(ipfix), ..Config::new(folder.path()) };
    let audit = Audit::start(config, None).unwrap();
    for number in 0..40 {
        audit.sender().send(flow(number));
    }
    audit.flush();
    assert_eq!(audit.status().ipfix.written, 40);
    drop(audit);
    let flows = read(&folder.path().join("flows.ipfix"));
    check(&flows, ["10.0.0.5", "2001:db8::5"]);
}

/// A collector gets templates first, and none of its messages is longer than a path may carry; with a
/// mapping it sees other addresses.
#[test]
fn a_collector_gets_what_a_reader_of_files_understands() {
    #[derive(Debug)]
    struct Elsewhere;
    impl Mapping for Elsewhere {
        fn map(&self, address: IpAddr) -> IpAddr {
            match address {
                IpAddr::V4(it) => Ipv4Addr::new(198, 51, 100, it.octets()[3]).into(),
                IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1).into(),
            }
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let address = Some(collector.local_addr().unwrap());
    let ipfix = IpfixConfig { collector: address, ..IpfixConfig::default() };
    let config = Config { ipfix: Some(ipfix), ..Config::new(folder.path()) };
    let audit = Audit::start(config, Some(Arc::new(Elsewhere))).unwrap();
    for number in 0..40 {
        audit.sender().send(flow(number));
    }
    audit.flush();
    let status = audit.status();
    assert_eq!((status.ipfix.sent, status.ipfix.not_sent, status.ipfix.written), (40, 0, 0));
    let (mut all, mut message, mut flows) = (Vec::new(), [0; 2048], Vec::new());
    while flows.len() < 40 {
        let length = collector.recv(&mut message).expect("a message");
        assert!(length <= 512 - 48, "{length}");
        all.extend_from_slice(&message[..length]);
        // The number of a message says how many flows came before it; few fit into one.
        if u32::from_be_bytes(message[8..12].try_into().unwrap()) > 30 {
            fs::write(folder.path().join("all"), &all).unwrap();
            flows = read(&folder.path().join("all"));
        }
    }
    check(&flows, ["198.51.100.5", "2001:db8:ffff::1"]);
}
