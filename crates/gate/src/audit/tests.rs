//! The log from the sender to the file.

use super::{mapping::tests::LastByte, record::*, *};
use crate::chat;
use classify::{
    flow::{Flow, Side, Transport},
    label::{Category, Certainty, Engine, Label},
};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A second of 2026.
pub(super) fn at(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_795_000_000_000 + milliseconds)
}

/// A flow from internal hosts to a peer.
pub(super) fn subject(transport: Transport) -> Subject {
    Subject {
        flow: Flow {
            transport,
            client: "10.0.0.5:51413".parse().unwrap(),
            server: "192.0.2.7:6881".parse().unwrap(),
        },
        started: at(0),
        internal: Side::Client,
        label: Some(Label {
            application: "bittorrent".into(),
            detail: Some("peer-wire".into()),
            category: Category::PeerToPeer,
            certainty: Certainty::Likely,
            engine: Engine::Host,
            reason: "peer of tracker 192.0.2.1:6969".into(),
        }),
    }
}

pub(super) fn verdict(action: AuditAction) -> ActionTaken {
    ActionTaken { action, rule: Some("no-sharing".into()) }
}

pub(super) fn flow_end(transport: Transport, action: AuditAction) -> Record {
    Record::Flow(FlowEnd {
        subject: subject(transport),
        at: at(65_000),
        last: at(61_500),
        to_server: Traffic { packets: 5, bytes: 502, flags: 0x1a },
        to_client: Traffic { packets: 4, bytes: 1062, flags: 0x13 },
        end: End::Timeout,
        verdict: verdict(action),
    })
}

fn chat_record(event: chat::Event) -> Record {
    Record::Chat(ChatSeen {
        subject: subject(Transport::Tcp),
        at: at(10),
        message: chat::Message {
            protocol: chat::Protocol::Irc,
            side: Side::Server,
            from: "ann!a@10.0.0.9".into(),
            to: "#nigh".into(),
            event,
        },
    })
}

/// The lines of all files of lines.
fn lines(folder: &Path) -> Vec<Value> {
    let names = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let names = names.filter(|it| it.extension().is_some_and(|it| it == "json"));
    let text: String = names.map(|it| fs::read_to_string(it).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn started(config: Config, mapping: Option<Arc<dyn Mapping>>) -> Audit {
    Audit::start(config, mapping).expect("a log in a folder of the test")
}

#[test]
fn what_is_sent_stands_in_the_file_and_in_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let audit = started(Config::new(folder.path()), None);
    let sender = audit.sender();
    sender.send(flow_end(Transport::Tcp, AuditAction::Allow));
    sender.send(chat_record(chat::Event::Text("hello".into())));
    audit.flush();
    let status = audit.status();
    assert_eq!((status.received, status.written, status.waiting), (2, 2, 0));
    assert_eq!(status.lost, Lost { queue_full: 0, not_written: 0 });
    let found = lines(folder.path());
    assert_eq!(found[0]["event_type"], "flow");
    assert_eq!(found[1]["chat"]["text"], "hello");
    assert_eq!(found[0]["flow_id"], found[1]["flow_id"]);
}

#[test]
fn what_waits_is_written_before_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let audit = started(Config::new(folder.path()), None);
    let sender = audit.sender();
    for _ in 0..100 {
        sender.send(flow_end(Transport::Udp, AuditAction::Count));
    }
    drop(audit);
    assert_eq!(lines(folder.path()).len(), 100);
    // Nobody writes any more.
    sender.send(flow_end(Transport::Udp, AuditAction::Count));
    let status = sender.status();
    assert_eq!((status.written, status.lost.not_written, status.waiting), (100, 1, 0));
}

#[test]
fn a_full_queue_loses_records_and_the_log_says_how_many() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { queue: 4, ..Config::new(folder.path()) };
    let counters = Arc::new(Counters::default());
    let writer = Writer::open(config, Mask::default(), Arc::clone(&counters)).unwrap();
    // The writer is not yet there to take anything.
    let (queue, orders) = sync_channel(4);
    let sender = Sender { queue, counters, mask: Mask::default() };
    for _ in 0..7 {
        sender.send(flow_end(Transport::Tcp, AuditAction::Allow));
    }
    assert_eq!(sender.status().lost.queue_full, 3);
    let thread = std::thread::spawn(move || writer.run(&orders));
    drop(sender);
    thread.join().unwrap();
    let found = lines(folder.path());
    assert_eq!(found.len(), 5);
    assert_eq!(found[4]["event_type"], "engine");
    assert_eq!(found[4]["nigh"]["lost"], 3);
}

#[test]
fn a_disk_that_refuses_costs_records_that_are_counted_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let audit = started(
        Config { rotate_size: ::config::Size(1 << 20), ..Config::new(folder.path()) },
        None,
    );
    let sender = audit.sender();
    sender.send(flow_end(Transport::Tcp, AuditAction::Allow));
    audit.flush();
    // The file is full after the next write; the folder is gone by then, so no other can be begun.
    let away = folder.path().with_extension("away");
    let big = "x".repeat(2 << 20);
    sender.send(chat_record(chat::Event::Text(big)));
    fs::rename(folder.path(), &away).unwrap();
    audit.flush();
    sender.send(flow_end(Transport::Tcp, AuditAction::Allow));
    audit.flush();
    let status = audit.status();
    assert_eq!(status.lost.not_written, 1, "{status:?}");
    assert!(status.error.is_some());
    fs::rename(&away, folder.path()).unwrap();
    sender.send(flow_end(Transport::Tcp, AuditAction::Allow));
    audit.flush();
    let status = audit.status();
    assert_eq!((status.received, status.written, status.waiting), (4, 3, 0));
    assert_eq!(status.error, None);
    let found = lines(folder.path());
    let reported: Vec<&Value> = found.iter().filter(|it| it["event_type"] == "engine").collect();
    assert_eq!(reported.len(), 1);
    assert_eq!(reported[0]["nigh"]["lost"], 1);
}

#[test]
fn skipped_kinds_and_words_of_chats_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let config =
        Config { record: [Kind::Chat].into(), chat_text: false, ..Config::new(folder.path()) };
    let audit = started(config, None);
    let sender = audit.sender();
    sender.send(flow_end(Transport::Tcp, AuditAction::Allow));
    sender.send(chat_record(chat::Event::Text("the words themselves".into())));
    sender.send(chat_record(chat::Event::Leave("the words themselves".into())));
    drop(audit);
    assert_eq!(sender.status().skipped, 1);
    let text = fs::read_to_string(folder.path().join("eve.json")).unwrap();
    assert!(!text.contains("the words themselves"));
    let found = lines(folder.path());
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["chat"]["to"], "#nigh");
}

#[test]
fn with_a_mapping_no_address_that_was_seen_is_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let audit = started(Config::new(folder.path()), Some(Arc::new(LastByte)));
    let sender = audit.sender();
    sender.send(flow_end(Transport::Tcp, AuditAction::Limit));
    sender.send(chat_record(chat::Event::Text("come to 10.0.0.8:4000".into())));
    sender.send(chat_record(chat::Event::Offer {
        name: "for-10.0.0.5.txt".into(),
        size: None,
        address: Some("10.0.0.9:5000".parse().unwrap()),
    }));
    sender.send(chat_record(chat::Event::Direct("10.0.0.9:5000".parse().unwrap())));
    sender.send(Record::File(FileSeen {
        subject: subject(Transport::Tcp),
        at: at(20),
        transfer: 0,
        from: Side::Server,
        name: "http://192.0.2.7/a.iso".into(),
        size: Some(10),
        seen: 10,
        kind: None,
        sha256: None,
        hash: None,
        complete: true,
        gaps: false,
        peers: vec!["192.0.2.8".parse().unwrap()],
        verdict: verdict(AuditAction::Allow),
    }));
    drop(audit);
    let text = fs::read_to_string(folder.path().join("eve.json")).unwrap();
    assert!(!text.contains("10.0.0.") && !text.contains("192.0.2."), "{text}");
    assert!(text.contains("ann!a@198.51.100.9"), "{text}");
    let found = lines(folder.path());
    assert_eq!(found[0]["src_ip"], "198.51.100.5");
    assert_eq!(found[0]["dest_ip"], "198.51.100.7");
    assert_eq!(found[2]["chat"]["address"], "198.51.100.9:5000");
    assert_eq!(found[4]["nigh"]["peers"][0], "198.51.100.8");
}

#[test]
fn a_folder_that_cannot_be_is_an_error_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let error = Audit::start(Config::new(folder.path().join("file")), None).unwrap_err();
    assert!(error.to_string().contains("[gate.audit]"), "{error}");
}
