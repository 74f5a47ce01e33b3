//! Parsers in processes: what they cannot do, and what follows when they end, hang or lie.

use classify::{
    Settings,
    flow::{Flow, Side, Transport},
    label::Classification,
    packet::Packet,
};
use gate::parser::{
    Parser,
    contents::{self, Contents, What},
    frame::Frame,
    link::{Counts, Link, LinkError, Program},
    names::{Item, Names},
    sandbox::{HANG, NONSENSE, Trial},
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::path::PathBuf;
use testbed::wait_until;

fn program() -> Program {
    Program::Process(env!("CARGO_BIN_EXE_gate-parser").into())
}

pub(crate) fn open<P: Parser>(settings: P::Settings) -> Link<P> {
    Link::open(program(), settings).unwrap()
}

fn request(items: &[u8]) -> Frame {
    let mut frame = Frame::default();
    items.iter().for_each(|item| frame.push(item));
    frame
}

/// Waits until a parser that failed is there again.
fn back<P: Parser>(link: &mut Link<P>) {
    wait_until("another parser", testbed::LIMIT, || link.is_ready()).unwrap();
}

#[test]
fn a_parser_can_reach_nothing() {
    let mut link = open::<Trial>(());
    let all: Vec<u8> = (0..HANG).collect();
    let tried = link.exchange(&mut request(&all)).unwrap();
    assert_eq!(tried.len(), 10, "{tried:?}");
    let did: Vec<_> = tried.iter().filter(|(_, refused)| !refused).collect();
    assert!(did.is_empty(), "not refused: {did:?}");
}

#[test]
fn a_killed_parser_is_counted_and_started_again_without_its_flows() {
    let mut link = open::<Names>(Settings::default());
    let flow = Flow {
        transport: Transport::Tcp,
        client: ([10, 0, 0, 5], 40_000).into(),
        server: ([192, 0, 2, 7], 22).into(),
    };
    let payload = b"SSH-2.0-OpenSSH_9.2p1\r\n";
    let packet = Packet { at_ns: 1, from: Side::Server, tcp: None, payload, length: 23 };
    let ask = |link: &mut Link<Names>, new| {
        let mut frame = Frame::default();
        frame.push(&Item::Packet { flow: 7, new, packet });
        link.exchange(&mut frame).map(|answers| {
            answers.into_iter().map(|answer| (answer.flow, answer.outcome)).collect::<Vec<_>>()
        })
    };
    let pending = vec![(7, Some(Classification::Pending))];
    let pid = Pid::from_raw(link.pid().unwrap() as i32);
    // What a service manager and a terminal send to all processes is the daemon's.
    kill(pid, Signal::SIGTERM).unwrap();
    kill(pid, Signal::SIGINT).unwrap();
    assert_eq!(ask(&mut link, Some((flow, [None; 2]))), Some(pending.clone()));
    assert!(!link.was_lost());
    kill(pid, Signal::SIGKILL).unwrap();
    assert_eq!(ask(&mut link, None), None);
    assert!(link.was_lost() && !link.was_lost());
    assert_eq!(link.counts(), Counts { died: 1, ..Counts::default() });
    back(&mut link);
    // Nobody knows the flow any more; it begins anew.
    assert_eq!(ask(&mut link, None), Some(vec![(7, Some(Classification::Unknown))]));
    assert_eq!(ask(&mut link, Some((flow, [None; 2]))), Some(pending));
    assert!(!link.was_lost());
}

#[test]
fn a_parser_that_hangs_or_answers_nonsense_is_killed_and_started_again() {
    let mut link = open::<Trial>(());
    for (item, counts) in [
        (NONSENSE, Counts { refused: 1, ..Counts::default() }),
        (HANG, Counts { refused: 1, hung: 1, died: 0 }),
    ] {
        let pid = link.pid().unwrap();
        assert!(link.exchange(&mut request(&[item])).is_none());
        assert_eq!(link.counts(), counts);
        assert!(!PathBuf::from(format!("/proc/{pid}")).exists(), "it was not killed");
        back(&mut link);
        assert_eq!(link.exchange(&mut request(&[0])).unwrap().len(), 1);
    }
}

#[test]
fn a_parser_that_cannot_be_set_up_or_started_says_why() {
    let signature = serde_json::json!({ "name": "broken", "category": "other", "ports": [], "pattern": "(", "within": 64 });
    let signatures = vec![serde_json::from_value(signature).unwrap()];
    let settings = Settings { signatures, ..Settings::default() };
    let error = Link::<Names>::open(program(), settings).unwrap_err();
    assert!(matches!(&error, LinkError::Setup(why) if why.contains("parsing pattern")), "{error}");
    let nothing = Program::Process("/nonexistent/nigh".into());
    let error = Link::<Contents>::open(nothing, ()).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[test]
fn a_file_waits_in_the_process_for_the_answer_to_its_name() {
    let mut link = open::<Contents>(());
    let sockets = Flow {
        transport: Transport::Tcp,
        client: ([10, 0, 0, 5], 40_000).into(),
        server: ([192, 0, 2, 7], 80).into(),
    };
    let tell = |link: &mut Link<Contents>, all: Vec<What<'_>>| {
        let mut frame = Frame::default();
        for what in all {
            frame.push(&contents::Item { flow: 1, what });
        }
        link.exchange(&mut frame).unwrap()
    };
    let packet = |from, sequence, payload: &'static [u8]| {
        let tcp = classify::packet::Tcp { sequence, acknowledgement: 0, flags: 0 };
        let length = payload.len() as u32;
        let packet = Packet { at_ns: 0, from, tcp: Some(tcp), payload, length };
        What::Packet { packet, held: None, taken: None }
    };
    let begin = What::Begin {
        sockets,
        application: "http".into(),
        promise: None,
        syns: [None; 2],
        hold: true,
        hash: false,
    };
    let answers = tell(
        &mut link,
        vec![
            begin,
            packet(Side::Client, 1, b"GET /f HTTP/1.1\r\n\r\n"),
            packet(Side::Server, 1, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"),
            packet(Side::Server, 41, b"cd"),
            packet(Side::Server, 43, b"HTTP/1.1 204 No Content\r\n\r\n"),
        ],
    );
    let asks: Vec<bool> = answers.iter().map(|answer| answer.asks).collect();
    assert_eq!(asks, [false, false, true, true]);
    use gate::event::{Event, FileVerdict, TransferId};
    assert!(matches!(answers[2].events[..], [Event::FileNamed(_)]));
    assert!(answers[3].events.is_empty(), "nothing behind a question");
    let scan = What::Answer(TransferId(0), FileVerdict::Scan);
    let answers = tell(&mut link, vec![scan]);
    let events = &answers[0].events;
    let content: Vec<u8> = events
        .iter()
        .filter_map(|event| match event {
            Event::Content { bytes, .. } => Some(bytes.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    assert_eq!(content, b"abcd");
    assert!(matches!(events.last(), Some(Event::FileEnded { bytes: 4, .. })), "{events:?}");
}
