//! Managed flows fed with packets that wait, and with verdicts as the scanner gives them.

mod batches;
mod later;
mod odd;

use super::*;
use crate::{config::Day, parser::link::Program};
use classify::{
    flow::Transport,
    label::{Category, Certainty, Engine},
};
use datapath::gate::{Direction, Key, Protocol, Reason, Record};

const MOMENT: Moment = Moment { day: Day::Tue, minute: 720 };
const MS: u64 = 1_000_000;
const SCAN: &str = "[[file]]\nname = \"all\"\naction = \"scan\"\n[scan]\nclamd = \"/nowhere\"\n";
const DENY: &str = "[[file]]\nname = \"no\"\nnames = [\"*.exe\"]\naction = \"deny\"\n[scan]\n";

/// One flow of HTTP through the managers.
struct Bench {
    managers: Managers,
    policy: Policy,
    log: Log,
    flow: Flow,
    application: &'static str,
    now_ns: u64,
    next: [u32; 2],
    commands: Vec<WorkerCommand>,
}

fn config(text: &str) -> GateConfig {
    let config: GateConfig = toml::from_str(&format!("internal = [\"eth1\"]\n{text}")).unwrap();
    assert_eq!(config.problems(), []);
    config
}

/// A parser in this thread.
pub(super) fn parser() -> Link<Contents> {
    Link::open(Program::Here, ()).unwrap()
}

fn flow(port: u16) -> Flow {
    let client = format!("10.0.0.5:{port}").parse().unwrap();
    Flow { transport: Transport::Tcp, client, server: "192.0.2.7:80".parse().unwrap() }
}

fn label(application: &'static str) -> Label {
    Label {
        application: application.into(),
        detail: None,
        category: Category::Web,
        certainty: Certainty::Certain,
        engine: Engine::Parser,
        reason: "a test".into(),
    }
}

fn held(flow: &Flow, from: Side, payload: &[u8]) -> Held {
    let key = Key::new(Protocol::Tcp, flow.client, flow.server);
    let record = Record {
        key,
        reason: Reason::Held,
        direction: Direction::ToInternal,
        at_ns: 0,
        from: key.side_of(flow.socket(from)).unwrap(),
        client: key.side_of(flow.client),
        internal: key.side_of(flow.client),
        ifindex: 1,
        action: None,
        label: 0,
        number: 0,
        sequence: 0,
        acknowledgement: 0,
        tcp_flags: 0,
        first: [0; 2],
        frame: payload,
        length: payload.len() as u32,
        segment: 0,
        vlan: None,
        partial: false,
        unverified: false,
        fragment: false,
        taken: None,
        transport: 0,
        payload_at: 0,
        payload_length: payload.len() as u32,
        ended: None,
    };
    Held::of(&record).unwrap()
}

impl Bench {
    fn new(text: &str) -> Self {
        Self::of("http", text)
    }

    fn of(application: &'static str, text: &str) -> Self {
        let config = config(text);
        let scanner = scanner(&config, |_| {});
        let mut bench = Self {
            managers: Managers::new(&config, scanner, "/nonexistent".into(), parser()),
            policy: Policy::new(&config, &[]),
            log: Log::new(None, 0),
            flow: flow(40_000),
            application,
            now_ns: 1000 * MS,
            next: [100, u32::MAX - 50],
            commands: Vec::new(),
        };
        bench.begin();
        bench
    }

    fn with(&mut self, what: impl FnOnce(&mut Managers, &Around<'_>, &mut Vec<WorkerCommand>)) {
        let Self { managers, policy, log, now_ns, commands, .. } = self;
        let around = Around { policy, moment: MOMENT, now_ns: *now_ns, log };
        what(managers, &around, commands);
        managers.exchange(&around, commands);
    }

    fn begin(&mut self) {
        let flow = self.flow;
        let label = Some(label(self.application));
        let syns = self.next.map(|next| Some(next.wrapping_sub(1)));
        let payload = b"GET / HTTP/1.1";
        let tcp = Some(Tcp { sequence: self.next[0], acknowledgement: 0, flags: Tcp::ACK });
        let now = Packet { at_ns: 0, from: Side::Client, tcp, payload, length: 14 };
        self.with(|managers, around, commands| {
            let new = NewFlow {
                flow,
                internal: Side::Client,
                label,
                began_ns: 0,
                expectation: None,
                syns,
                now: Some(&now),
            };
            managers.begin(new, around, commands);
        });
    }

    /// A packet as the kernel hands it over: held where it reaches beyond the order.
    fn send(&mut self, from: Side, bytes: impl AsRef<[u8]>) {
        self.packet(from, 0, bytes.as_ref());
    }

    fn packet(&mut self, from: Side, flags: u8, bytes: &[u8]) {
        let (flow, id) = (self.flow, Id::of(&self.flow));
        let [sequence, acknowledgement] =
            [from as usize, from.other() as usize].map(|side| self.next[side]);
        let tcp = Some(Tcp { sequence, acknowledgement, flags: flags | Tcp::ACK });
        let length = bytes.len() as u32;
        let end = sequence.wrapping_add(length).wrapping_add(u32::from(flags & Tcp::FIN != 0));
        self.next[from as usize] = end;
        let Some(managed) = self.managers.flows.get(&id) else { return };
        let hold_from = managed.now.hold_from[from as usize];
        let holds = hold_from.is_none_or(|hold| end.wrapping_sub(hold).cast_signed() > 0);
        let held = (holds && self.managers.settings.hold).then(|| held(&flow, from, bytes));
        let packet = Packet { at_ns: 0, from, tcp, payload: bytes, length };
        self.with(|managers, around, commands| {
            managers.packet(id, &packet, held, None, around, commands)
        });
    }

    /// The scanner's verdict on a job.
    fn report(&mut self, job: u64, bytes: u64, pause: Option<u64>, verdict: ScanResult) {
        let report = Report { job, bytes, pause, verdict };
        self.with(|managers, around, commands| managers.report(report, around, commands));
    }

    fn rest(&mut self, after_ms: u64) {
        self.now_ns += after_ms * MS;
        self.with(|managers, around, _| managers.rest(around.now_ns));
    }

    /// Bytes of packets that were released, and whether the flow was refused, since asked last.
    fn outcome(&mut self) -> (usize, bool) {
        let commands = std::mem::take(&mut self.commands);
        let released = commands.iter().map(|command| match command {
            WorkerCommand::Release(held) => held.bytes(),
            _ => 0,
        });
        let refused = commands.iter().any(|command| matches!(command, WorkerCommand::Refuse(..)));
        (released.sum(), refused)
    }

    fn waits(&self) -> usize {
        self.managers.waiting_bytes()
    }
}

fn away() -> ScanResult {
    ScanResult::Failed(Failure::Unavailable("a test".into()))
}

/// A response of 30 bytes, the last 10 of which wait for the verdict.
fn response(bench: &mut Bench) {
    bench.send(Side::Client, "GET /f HTTP/1.1\r\n\r\n");
    bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n0123456789");
    bench.send(Side::Server, "0123456789");
    bench.send(Side::Server, "0123456789");
    assert_eq!((bench.waits(), bench.outcome().1), (10, false));
}

#[test]
fn a_clean_file_passes_with_its_last_packet() {
    let mut bench = Bench::new(SCAN);
    response(&mut bench);
    bench.report(0, 30, None, ScanResult::Clean);
    assert_eq!((bench.outcome(), bench.waits()), ((10, false), 0));
    assert_eq!(bench.managers.counts.scanned, 1);
}

/// The records of refusals, the latest first.
fn reported(bench: &Bench) -> Vec<String> {
    let recent = bench.log.recent().into_iter().filter(|one| one.refused);
    recent.map(|one| one.text.split(" in ").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_refusal_is_reported_once_with_its_file_and_what_is_not_scanned_as_such() {
    for (verdict, expected) in [
        (ScanResult::Found("Eicar".into()), "found Eicar, refused: f"),
        (away(), "refused f, which was not scanned,"),
    ] {
        let mut bench = Bench::new(&format!("{SCAN}on_failure = \"refuse\"\n"));
        response(&mut bench);
        bench.report(0, 30, None, verdict);
        let by = bench.commands.iter().find_map(|command| match command {
            WorkerCommand::Refuse(_, by) => by.file.as_deref(),
            _ => None,
        });
        assert_eq!((by, reported(&bench)), (Some("f"), vec![expected.to_owned()]));
    }
}

#[test]
fn what_could_not_be_scanned_passes_or_not_whenever_that_is_known() {
    for (policy, passes) in [("pass", true), ("refuse", false)] {
        let text = format!("{SCAN}on_failure = \"{policy}\"\n");
        // Before the end, with fewer bytes than came.
        let mut bench = Bench::new(&text);
        bench.send(Side::Client, "GET /f HTTP/1.1\r\n\r\n");
        bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n0123456789");
        bench.report(0, 5, None, ScanResult::Failed(Failure::TooLarge));
        assert_eq!(bench.outcome().1, !passes);
        bench.send(Side::Server, "0123456789");
        bench.send(Side::Server, "0123456789");
        assert_eq!(bench.waits(), 0, "{policy}");
        assert_eq!((bench.managers.counts.unscanned, bench.managers.counts.scanned), (1, 0));
        // After the end.
        let mut bench = Bench::new(&text);
        response(&mut bench);
        bench.report(0, 5, None, away());
        assert_eq!(bench.outcome(), if passes { (10, false) } else { (0, true) });
        assert_eq!(bench.waits(), 0);
        // By another scanner's coming.
        let mut bench = Bench::new(&text);
        response(&mut bench);
        bench.with(|managers, around, commands| managers.set_scanner(None, around, commands));
        assert_eq!(bench.outcome(), if passes { (10, false) } else { (0, true) });
        assert_eq!(bench.managers.counts.unscanned, 1);
    }
}

#[test]
fn a_file_with_a_gap_is_not_called_clean_and_does_not_wait_for_ever() {
    for (policy, passes) in [("pass", true), ("refuse", false)] {
        let mut bench = Bench::new(&format!("{SCAN}on_failure = \"{policy}\"\n"));
        bench.send(Side::Client, "GET /f HTTP/1.1\r\n\r\n");
        bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n0123456789");
        // Ten bytes pass that were not copied.
        bench.next[1] = bench.next[1].wrapping_add(10);
        bench.send(Side::Server, "0123456789");
        bench.outcome();
        assert_eq!(bench.waits(), 10);
        bench.rest(1000);
        assert_eq!(bench.managers.flows[&Id::of(&bench.flow)].transfers.len(), 1);
        assert!(
            bench.managers.flows[&Id::of(&bench.flow)].transfers[&TransferId(0)].ended.is_none()
        );
        bench.rest(1100);
        assert!(
            bench.managers.flows[&Id::of(&bench.flow)].transfers[&TransferId(0)].ended.is_some()
        );
        bench.report(0, 20, None, ScanResult::Clean);
        assert_eq!(bench.outcome(), if passes { (10, false) } else { (0, true) });
        assert_eq!((bench.managers.counts.unscanned, bench.managers.counts.scanned), (1, 0));
    }
}

/// One that goes on over another connection is scanned in two parts, of which neither may be called clean.
#[test]
fn a_file_that_was_broken_off_is_not_called_clean_nor_refused() {
    for policy in ["pass", "refuse"] {
        let mut bench = Bench::new(&format!("{SCAN}on_failure = \"{policy}\"\n"));
        bench.send(Side::Client, "GET /f HTTP/1.1\r\n\r\n");
        bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n0123456789");
        bench.packet(Side::Server, Tcp::RST, b"");
        bench.outcome();
        bench.report(0, 10, None, ScanResult::Clean);
        assert!(!bench.outcome().1);
        assert_eq!((bench.managers.counts.unscanned, bench.managers.counts.scanned), (1, 0));
    }
}

#[test]
fn a_verdict_on_the_beginning_does_not_stand_for_the_whole() {
    let mut bench = Bench::new(SCAN);
    bench.send(Side::Client, "GET /f HTTP/1.1\r\n\r\n");
    bench.send(Side::Server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    bench.send(Side::Server, "a\r\n0123456789\r\n");
    assert_eq!(bench.waits(), 15);
    bench.rest(101);
    bench.send(Side::Server, "a\r\n0123456789\r\n");
    bench.send(Side::Server, "0\r\n\r\n");
    bench.outcome();
    // The pause's answer comes when all is there already.
    bench.report(0, 10, Some(10), ScanResult::Clean);
    assert_eq!(bench.outcome(), (0, false));
    bench.report(0, 20, None, ScanResult::Found("x".into()));
    assert_eq!(bench.outcome(), (0, true));
    assert_eq!((bench.managers.counts.found, bench.managers.counts.scanned), (1, 0));
}

#[test]
fn content_that_pauses_often_is_asked_about_less_and_less() {
    let mut bench = Bench::new(SCAN);
    bench.send(Side::Client, "GET /radio HTTP/1.1\r\n\r\n");
    bench.send(Side::Server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut asked = 0;
    for round in 1..=200_u64 {
        bench.send(Side::Server, "a\r\n0123456789\r\n");
        let before = bench.managers.flows[&Id::of(&bench.flow)].pauses;
        bench.rest(150);
        if bench.managers.flows[&Id::of(&bench.flow)].pauses > before {
            asked += 1;
            bench.report(0, round * 10, Some(round * 10), ScanResult::Clean);
        }
    }
    assert_eq!(asked, 1, "150 ms are a rest the first time alone");
    assert_eq!(bench.managers.counts.scanned, 0);
    bench.rest(5000);
    assert_eq!(bench.managers.flows[&Id::of(&bench.flow)].pauses, 2);
}

#[test]
fn a_packet_that_is_sent_again_waits_once() {
    let mut bench = Bench::new(SCAN);
    response(&mut bench);
    for _ in 0..100 {
        bench.next[1] = bench.next[1].wrapping_sub(10);
        bench.send(Side::Server, "evil......");
    }
    assert_eq!((bench.waits(), bench.managers.counts.dropped), (10, 100));
    bench.report(0, 30, None, ScanResult::Clean);
    let released: Vec<Held> = bench
        .commands
        .drain(..)
        .filter_map(|command| match command {
            WorkerCommand::Release(held) => Some(held),
            _ => None,
        })
        .collect();
    assert_eq!(released.last(), Some(&held(&bench.flow, Side::Server, b"0123456789")));
}

#[test]
fn without_room_for_what_waits_a_flow_passes_unscanned_or_is_refused() {
    for (policy, passes) in [("pass", true), ("refuse", false)] {
        let mut bench = Bench::new(&format!("{SCAN}on_failure = \"{policy}\"\n"));
        response(&mut bench);
        bench.managers.waiting_bytes += MAX_WAITING - 15;
        bench.send(Side::Server, "HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(bench.outcome(), if passes { (10 + 19, false) } else { (0, true) });
        assert_eq!(bench.managers.counts.unscanned, 1);
        assert_eq!(bench.waits(), MAX_WAITING - 15);
    }
}

#[test]
fn what_is_packed_or_a_part_is_not_called_clean() {
    let cases = [
        ("200 OK\r\nContent-Encoding: br", 1, 0),
        ("200 OK\r\nContent-Encoding: gzip", 0, 1),
        ("200 OK\r\nContent-Encoding: identity\r\nContent-Encoding: br", 1, 0),
        ("200 OK\r\nContent-Encoding: gzip, gzip", 1, 0),
        ("200 OK\r\nContent-Range: bytes 100-109/5000", 1, 0),
        ("206 Partial Content", 1, 0),
        ("206 Partial Content\r\nContent-Range: bytes 0-9", 1, 0),
        ("206 Partial Content\r\nContent-Range: bytes 100-109/5000", 1, 0),
        ("206 Partial Content\r\nContent-Range: bytes 0-9/10", 0, 1),
        ("206 Partial Content\r\nContent-Range: bytes 0-9/5000", 1, 0),
    ];
    for (head, unscanned, clean) in cases {
        for passes in [true, false] {
            let policy = if passes { "pass" } else { "refuse" };
            let mut bench = Bench::new(&format!("{SCAN}on_failure = \"{policy}\"\n"));
            bench.send(Side::Client, "GET /f HTTP/1.1\r\n\r\n");
            bench.send(
                Side::Server,
                format!("HTTP/1.1 {head}\r\nContent-Length: 10\r\n\r\n0123456789"),
            );
            bench.report(0, 10, None, ScanResult::Clean);
            let counts = bench.managers.counts;
            assert_eq!((counts.unscanned, counts.scanned), (unscanned, clean), "{head}");
            assert_eq!(bench.outcome().1, !passes && unscanned > 0, "{head}");
            assert_eq!(bench.waits(), 0, "{head}");
        }
    }
}

#[test]
fn what_nobody_could_read_is_counted_or_refused() {
    for (policy, passes) in [("pass", true), ("refuse", false)] {
        let text = format!("{SCAN}on_failure = \"{policy}\"\n");
        // A head of which a part was not copied.
        let mut bench = Bench::new(&text);
        bench.send(Side::Client, "GET /f HTTP/1.1\r\n\r\n");
        bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-");
        bench.next[1] = bench.next[1].wrapping_add(10);
        bench.send(Side::Server, ": 30\r\n\r\n0123456789");
        bench.outcome();
        bench.rest(3000);
        assert_eq!(bench.outcome(), if passes { (18, false) } else { (0, true) });
        assert_eq!((bench.managers.counts.unscanned, bench.waits()), (1, 0));
        // First packets that there was no room for.
        let mut bench = Bench::new(&text);
        bench.flow = flow(40_001);
        bench.managers.first_bytes = MAX_FIRST;
        let packet = Packet {
            at_ns: 0,
            from: Side::Client,
            tcp: Some(Tcp { sequence: 1, acknowledgement: 1, flags: Tcp::ACK }),
            payload: b"GET /f HTTP/1.1\r\n\r\n",
            length: 19,
        };
        bench.managers.keep(Id::of(&bench.flow), &packet);
        bench.begin();
        assert_eq!(bench.outcome().1, !passes);
        assert_eq!(bench.managers.counts.unscanned, 1);
    }
}

/// What passed before the flow had its name is whole where its end was seen.
#[test]
fn a_file_that_was_over_before_its_flow_was_known_is_read_from_what_was_kept() {
    for (flags, complete) in [(Tcp::FIN, true), (Tcp::RST, false)] {
        let mut bench = Bench::new(SCAN);
        bench.flow = flow(40_001);
        let id = Id::of(&bench.flow);
        let head = "HTTP/1.0 200 OK\r\n\r\n0123456789";
        let packet = |from, sequence, flags, payload: &'static str| Packet {
            at_ns: 0,
            from,
            tcp: Some(Tcp { sequence, acknowledgement: 0, flags }),
            payload: payload.as_bytes(),
            length: payload.len() as u32,
        };
        let [client, server] = bench.next;
        bench.managers.keep(id, &packet(Side::Client, client, 0, "GET /f HTTP/1.0\r\n\r\n"));
        bench.managers.keep(id, &packet(Side::Server, server, 0, head));
        let end = server.wrapping_add(head.len() as u32);
        bench.managers.keep(id, &packet(Side::Server, end, flags, ""));
        bench.begin();
        let ended = bench.managers.flows[&id].transfers[&TransferId(0)].ended.unwrap();
        assert_eq!((ended.bytes, ended.complete), (10, complete));
    }
}

/// Names of the operator's own are still HTTP, and rules about either fit, the first of the list first.
#[test]
fn http_under_another_name_is_read() {
    let rule = |name: &str, application: &str, action: &str| {
        format!(
            "[[file]]\nname = \"{name}\"\nnames = [\"*.exe\"]\n\
             application = [\"{application}\"]\naction = \"{action}\"\n"
        )
    };
    for (rules, refused) in [
        (rule("a", "http", "deny"), true),
        (rule("a", "our-updates", "deny"), true),
        (rule("a", "our-updates", "allow") + &rule("b", "http", "deny"), false),
        (rule("a", "http", "deny") + &rule("b", "our-updates", "allow"), true),
        (rule("a", "ftp", "deny"), false),
    ] {
        let mut bench = Bench::of("our-updates", &rules);
        bench.send(Side::Client, "GET /f.exe HTTP/1.1\r\n\r\n");
        bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
        assert_eq!(bench.managers.counts.files, 1);
        assert_eq!(bench.outcome().1, refused, "{rules}");
    }
}

/// The label is the first request's; files of all are read, also where that one was to a tracker.
#[test]
fn files_of_later_requests_on_one_connection_are_read() {
    for application in ["http", "http.video", "bittorrent"] {
        for (name, refused) in [("f.txt", false), ("f.exe", true)] {
            let mut bench = Bench::of(application, DENY);
            bench.send(Side::Client, "GET /announce HTTP/1.1\r\n\r\n");
            bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
            // A response that says nothing of a file comes between.
            bench.send(Side::Client, "HEAD /g.exe HTTP/1.1\r\n\r\n");
            bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
            bench.send(Side::Client, "GET /a HTTP/1.1\r\n\r\n");
            bench.send(Side::Client, format!("GET /{name} HTTP/1.1\r\n\r\n"));
            bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
            assert!(!bench.outcome().1, "{application}");
            bench.send(Side::Server, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
            assert_eq!(bench.outcome().1, refused, "{application} {name}");
            assert_eq!(bench.managers.counts.files, 3, "{application} {name}");
        }
    }
}

/// Only what is written down is read.
#[test]
fn an_audit_reads_no_more_than_it_writes() {
    let audit = |what: &str| format!("[audit]\nfolder = \"/nowhere\"\n{what}\n");
    for (application, what, managed, hash) in [
        ("http", "record = [\"flows\"]", false, false),
        ("http", "record = [\"files\"]", true, false),
        ("http", "record = [\"files\"]\nhash = true", true, true),
        ("http", "record = [\"chat\"]", false, false),
        ("xmpp", "record = [\"files\"]", true, false),
        ("irc", "record = [\"chat\"]", true, false),
        ("irc", "record = [\"refusals\"]\nhash = true", false, false),
    ] {
        let bench = Bench::of(application, &audit(what));
        assert_eq!(bench.managers.len(), usize::from(managed), "{application} {what}");
        assert_eq!(bench.managers.settings.hash, hash, "{what}");
    }
}

#[test]
fn without_the_parser_flows_go_on_unread_or_are_refused_and_the_next_ones_are_read() {
    for (on_failure, passes) in [("pass", true), ("refuse", false)] {
        let mut bench = Bench::new(&format!("{SCAN}on_failure = \"{on_failure}\"\n"));
        response(&mut bench);
        bench.managers.reading.fail();
        bench.with(|managers, around, _| managers.rest(around.now_ns));
        assert_eq!(bench.outcome(), if passes { (10, false) } else { (0, true) });
        let Counts { lost, unscanned, .. } = bench.managers.counts;
        assert_eq!((lost, unscanned, bench.waits()), (1, 1, 0));
        assert!(bench.managers.flows.is_empty());
        // The verdict comes too late, and another flow is read from its beginning.
        bench.report(0, 30, None, ScanResult::Clean);
        bench.flow = flow(40_001);
        bench.next = [100, u32::MAX - 50];
        bench.begin();
        response(&mut bench);
    }
}
