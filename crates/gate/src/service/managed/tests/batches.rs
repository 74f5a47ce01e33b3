//! Decisions and holds never come later than with a parser in this thread: what is in a batch that is with the
//! parser goes on only when that has read it, and the kernel is never told to let pass what nobody has read.

use super::*;
use std::net::SocketAddr;

const CLIENT: [u8; 4] = [10, 0, 0, 5];
const SERVER: [u8; 4] = [192, 0, 2, 7];
const FILE: &[u8] = &[b'X'; 68];

/// A packet, by whom it is from, and the server's port, by which flows are told apart.
type Sent = (u16, Side, &'static [u8]);

/// What is known of a flow after a batch: bytes that went on, what the kernel does, whether it was refused.
type Outcome = BTreeMap<u16, (usize, Option<[Manage; 2]>, bool)>;

fn socket(address: [u8; 4], port: u16) -> SocketAddr {
    (address, port).into()
}

/// Flows as the worker sees them.
struct Flows {
    bench: Bench,
    next: BTreeMap<u16, [u32; 2]>,
    outcome: Outcome,
}

impl Flows {
    fn new() -> Self {
        let mut bench = Bench::new(SCAN);
        bench.with(|managers, _, _| managers.retain(|_| false));
        bench.commands.clear();
        Self { bench, next: BTreeMap::new(), outcome: Outcome::new() }
    }

    fn flow(port: u16) -> Flow {
        let (client, server) = (socket(CLIENT, 40_000 + port), socket(SERVER, port));
        Flow { transport: Transport::Tcp, client, server }
    }

    /// A packet that the kernel holds, as all of an undecided flow.
    fn take(&mut self, (port, from, payload): Sent) {
        let flow = Self::flow(port);
        let next = self.next.entry(port).or_insert([7000, 90]);
        let [sequence, acknowledgement] =
            [from as usize, from.other() as usize].map(|side| next[side]);
        next[from as usize] += payload.len() as u32;
        let tcp = Some(Tcp { sequence, acknowledgement, flags: Tcp::ACK });
        let packet = Packet { at_ns: 0, from, tcp, payload, length: payload.len() as u32 };
        let held = Some(held(&flow, from, payload));
        let Bench { managers, policy, log, now_ns, commands, .. } = &mut self.bench;
        let around = Around { policy, moment: MOMENT, now_ns: *now_ns, log };
        if !managers.flows.contains_key(&Id::of(&flow)) {
            if managers.may_announce() {
                managers.exchange(&around, commands);
            }
            let announced = managers.announced(&flow, around.now_ns);
            let application = match port {
                21 => "ftp_control",
                6667 => "irc",
                _ => "http",
            };
            let new = NewFlow {
                flow,
                internal: Side::Client,
                label: Some(label(application)),
                began_ns: 0,
                expectation: announced.as_ref().map(|announced| &announced.expectation),
                syns: [Some(6999), Some(89)],
                now: Some(&packet),
            };
            managers.begin(new, &around, commands);
        }
        managers.packet(Id::of(&flow), &packet, held, None, &around, commands);
    }

    fn exchange(&mut self) {
        self.bench.with(|_, _, _| {});
        for command in self.bench.commands.drain(..) {
            match command {
                WorkerCommand::Release(held) => {
                    let is_of = |port: &&u16| {
                        let flow = Self::flow(**port);
                        Key::new(Protocol::Tcp, flow.client, flow.server) == *held.key()
                    };
                    let port = self.next.keys().find(is_of).unwrap();
                    self.outcome.entry(*port).or_default().0 += held.bytes();
                }
                WorkerCommand::Manage(flow, manage) => {
                    self.outcome.entry(flow.server.port()).or_default().1 = Some(manage);
                }
                WorkerCommand::Refuse(flow, _) => {
                    self.outcome.entry(flow.server.port()).or_default().2 = true;
                }
                WorkerCommand::Used(_) => {}
            }
        }
    }
}

/// A case, its packets, the file's flow, and how many bytes of that go on before and after a verdict.
const CASES: [(&str, &[Sent], u16, [usize; 2]); 5] = [
    (
        "a file of FTP in one packet, the flow's first",
        &[
            (21, Side::Server, b"220 ready\r\n"),
            (21, Side::Client, b"PASV\r\n"),
            (21, Side::Server, b"227 Entering Passive Mode (192,0,2,7,10,0)\r\n"),
            (21, Side::Client, b"RETR f\r\n"),
            (2560, Side::Server, FILE),
        ],
        2560,
        [0, FILE.len()],
    ),
    (
        "a file that is sent to the server",
        &[
            (21, Side::Server, b"229 Entering Extended Passive Mode (|||2560|)\r\n"),
            (21, Side::Client, b"STOR f\r\n"),
            (2560, Side::Client, FILE),
        ],
        2560,
        [0, FILE.len()],
    ),
    (
        "a file over DCC",
        &[
            (6667, Side::Server, b":a!a@h PRIVMSG you :\x01DCC SEND f 3221225991 2560 68\x01\r\n"),
            (2560, Side::Server, FILE),
        ],
        2560,
        [0, FILE.len()],
    ),
    (
        "a file of HTTP, and the next request",
        &[
            (80, Side::Client, b"GET /f HTTP/1.1\r\n\r\n"),
            (80, Side::Server, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n01234"),
            (80, Side::Client, b"GET /g HTTP/1.1\r\n\r\n"),
        ],
        80,
        [38, 38 + 43],
    ),
    (
        "a file in a request",
        &[
            (80, Side::Client, b"PUT /h HTTP/1.1\r\nContent-Length: 6\r\n\r\n"),
            (80, Side::Client, b"123456"),
        ],
        80,
        [38, 38 + 6],
    ),
];

#[test]
fn a_batch_is_held_as_its_packets_one_by_one_are() {
    for (case, packets, file, [before, after]) in CASES {
        for verdict in [ScanResult::Clean, ScanResult::Found("Eicar".into())] {
            let [one_by_one, batch] = [true, false].map(|alone| {
                let mut flows = Flows::new();
                for packet in packets {
                    flows.take(*packet);
                    if alone {
                        flows.exchange();
                    }
                }
                flows.exchange();
                let before = flows.outcome.clone();
                flows.bench.report(0, 5, None, verdict.clone());
                flows.exchange();
                (before, flows.outcome)
            });
            assert_eq!(batch.0[&file].0, before, "{case}");
            assert_eq!(one_by_one, batch, "{case}");
            let (went_on, _, refused) = batch.1[&file];
            let expected =
                if verdict == ScanResult::Clean { (after, false) } else { (before, true) };
            assert_eq!((went_on, refused), expected, "{case}, {verdict:?}");
        }
    }
}

#[test]
fn the_kernel_holds_a_flow_before_the_parser_has_read_anything_of_it() {
    let mut flows = Flows::new();
    flows.take((80, Side::Client, b"GET /f HTTP/1.1\r\n\r\n"));
    let [order] = &flows.bench.commands[..] else { panic!("one order, and nothing goes on") };
    let hold = |from| Manage { copy: true, hold_from: Some(from), ..Manage::default() };
    assert!(
        matches!(order, WorkerCommand::Manage(_, both) if *both == [hold(7000), hold(90)]),
        "{order:?}"
    );
}

#[test]
fn a_flow_that_was_announced_to_a_parser_that_failed_is_read_by_the_next_one() {
    let (_, packets, file, _) = CASES[0];
    let (last, before) = packets.split_last().unwrap();
    let mut flows = Flows::new();
    before.iter().for_each(|packet| flows.take(*packet));
    flows.exchange();
    flows.bench.managers.reading.fail();
    flows.exchange();
    assert_eq!(flows.bench.managers.len(), 0, "the flow that announced it is lost");
    flows.take(*last);
    flows.exchange();
    assert_eq!((flows.outcome[&file].0, flows.bench.waits()), (0, FILE.len()));
    flows.bench.report(0, 68, None, ScanResult::Found("Eicar".into()));
    flows.exchange();
    assert!(flows.outcome[&file].2, "it is refused");
}
