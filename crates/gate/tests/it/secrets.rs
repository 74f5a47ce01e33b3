//! What lets people in is nowhere in the audit: whole sessions with passwords, from bytes to the file.

use classify::{
    flow::{Flow, Side, Transport},
    packet::{Packet, Tcp},
};
use gate::{
    audit::{
        ActionTaken, Audit, AuditAction, ChatSeen, Config, FileSeen, IpfixConfig, Record, Subject,
    },
    chat::Reader,
    event::{Event, Settings},
    manage::Manager,
};
use std::{fs, time::SystemTime};

const SECRET: &str = "hunter2";

fn subject() -> Subject {
    Subject {
        flow: Flow {
            transport: Transport::Tcp,
            client: "10.0.0.5:40000".parse().unwrap(),
            server: "192.0.2.7:21".parse().unwrap(),
        },
        started: SystemTime::now(),
        internal: Side::Client,
        label: None,
    }
}

/// Everything that an audit writes of these records.
fn written(records: Vec<Record>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ipfix = IpfixConfig { file: true, ..IpfixConfig::default() };
    let config = Config { ipfix: Some(ipfix), ..Config::new(folder.path()) };
    let audit = Audit::start(config, None).unwrap();
    for record in records {
        audit.sender().send(record);
    }
    drop(audit);
    let files = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path());
    files.map(|it| String::from_utf8_lossy(&fs::read(it).unwrap()).into_owned()).collect()
}

fn chat(application: &str, session: &[(Side, String)]) -> String {
    let mut reader = Reader::new(application).unwrap();
    let mut messages = Vec::new();
    for (side, bytes) in session {
        reader.feed(*side, bytes.as_bytes(), &mut messages);
    }
    let records = messages.into_iter().map(|message| {
        Record::Chat(ChatSeen { subject: subject(), at: SystemTime::now(), message })
    });
    written(records.collect())
}

#[test]
fn no_password_of_a_chat_is_in_the_log() {
    use Side::{Client, Server};
    // `\0ann\0hunter2` and `hunter2` in BASE64, as SASL has them.
    let (plain, word) = ("AGFubgBodW50ZXIy", "aHVudGVyMg==");
    let irc = [
        (
            Client,
            format!("PASS {SECRET}\r\nNICK ann\r\nUSER ann 0 * :Ann\r\nOPER ann {SECRET}\r\n"),
        ),
        (Client, format!("AUTHENTICATE {plain}\r\nJOIN #nigh {SECRET}\r\n")),
        (Server, ":s.example 001 ann :hello\r\n:ann!a@h JOIN #nigh\r\n".to_owned()),
        (Client, format!("PRIVMSG NickServ :IDENTIFY {SECRET}\r\nPRIVMSG #nigh :in the log\r\n")),
        (Server, format!(":NickServ!s@services NOTICE ann :it was {SECRET}\r\n")),
    ];
    let xmpp = [
        (Client, "<stream:stream to='b.example'>".to_owned()),
        (Client, format!("<auth mechanism='PLAIN'>{plain}</auth><response>{word}</response>")),
        (Server, "<stream:stream><success/>".to_owned()),
        (
            Client,
            format!(
                "<iq type='set'><query xmlns='jabber:iq:auth'><username>ann</username>\
            <password>{SECRET}</password></query></iq>"
            ),
        ),
        (Client, "<message to='b@b.example'><body>in the log</body></message>".to_owned()),
    ];
    for (application, session) in [("irc", &irc[..]), ("xmpp", &xmpp)] {
        let log = chat(application, session);
        assert!(log.contains("in the log"), "{application}: {log}");
        for secret in [SECRET, plain, word] {
            assert!(!log.contains(secret), "{application}: {log}");
        }
    }
}

/// Feeds a connection's bytes to a manager; returns its events.
fn events_of(application: &str, session: &[(Side, String)]) -> Vec<Event> {
    let mut manager = Manager::new(application, &subject().flow, &Settings::default()).unwrap();
    let mut events = Vec::new();
    let mut next = [100_u32, 200];
    for (from, bytes) in session {
        let own = usize::from(*from == Side::Server);
        let tcp = Tcp { sequence: next[own], acknowledgement: next[1 - own], flags: Tcp::ACK };
        next[own] += bytes.len() as u32;
        let (payload, length) = (bytes.as_bytes(), bytes.len() as u32);
        let packet = Packet { at_ns: 0, from: *from, tcp: Some(tcp), payload, length };
        manager.packet(&packet, &mut events);
    }
    events
}

#[test]
fn no_query_of_a_url_is_reported_of_a_file() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n01234567";
    let form = "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\ndata....\r\n--b--";
    for request in [
        format!("GET /?token={SECRET} HTTP/1.1\r\n\r\n"),
        format!("GET /a/?token={SECRET}#{SECRET} HTTP/1.1\r\n\r\n"),
        format!("GET http://h/?token={SECRET} HTTP/1.1\r\n\r\n"),
        format!("POST /?password={SECRET} HTTP/1.1\r\nContent-Length: 8\r\n\r\n01234567"),
        format!(
            "POST /send?password={SECRET} HTTP/1.1\r\nContent-Length: {}\r\n\
             Content-Type: multipart/form-data; boundary=b\r\n\r\n{form}",
            form.len()
        ),
    ] {
        let session = [(Side::Client, request), (Side::Server, answer.to_owned())];
        let events = events_of("http", &session);
        assert!(events.iter().any(|event| matches!(event, Event::FileNamed(_))));
        assert!(!format!("{events:?}").contains(SECRET), "{events:?}");
    }
}

#[test]
fn no_password_of_ftp_or_of_a_url_is_in_the_log() {
    let session = [
        (Side::Server, "220 ready\r\n".to_owned()),
        (Side::Client, "USER ann\r\n".to_owned()),
        (Side::Server, "331 password\r\n".to_owned()),
        (Side::Client, format!("PASS {SECRET}\r\n")),
        (Side::Server, "230 in\r\n".to_owned()),
        (Side::Client, format!("ACCT {SECRET}\r\n")),
        (Side::Client, "PASV\r\n".to_owned()),
        (Side::Server, "227 Entering Passive Mode (192,0,2,7,156,64)\r\n".to_owned()),
        (Side::Client, "RETR a.iso\r\n".to_owned()),
        (Side::Server, "150 comes\r\n".to_owned()),
    ];
    let events = events_of("ftp", &session);
    let expected = events.iter().find_map(|event| match event {
        Event::Expect(expectation) => Some(expectation),
        _ => None,
    });
    // The data connection is announced, and no event contains the password.
    assert!(expected.is_some());
    assert!(!format!("{events:?}").contains(SECRET));

    let log = written(vec![Record::File(FileSeen {
        subject: subject(),
        at: SystemTime::now(),
        transfer: 0,
        from: Side::Server,
        name: format!("ftp://ann:{SECRET}@192.0.2.7/a.iso"),
        size: None,
        seen: 1,
        kind: None,
        sha256: None,
        hash: None,
        complete: true,
        gaps: false,
        peers: Vec::new(),
        verdict: ActionTaken { action: AuditAction::Allow, rule: None },
    })]);
    assert!(log.contains("ftp://192.0.2.7/a.iso") && !log.contains(SECRET), "{log}");
}
