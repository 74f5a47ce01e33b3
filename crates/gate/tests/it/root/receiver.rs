//! What the gate judges of random series of segments, beside what an application reads of them behind the
//! kernel's own TCP.
//!
//! ```text
//!   series ──► TAP device ──► the kernel's TCP ──► what the application reads
//!      │            └── acknowledgements ──┐                  │
//!      └──► Record::is_broken ──► stream::Half ──► what is judged, or that it is unclear
//! ```
//!
//! Where the stream is not unclear, the application must have read what was judged, or the beginning of it,
//! and its end only where that is the end of what was judged.

use classify::packet::Tcp;
use datapath::{
    gate::{Direction, Key, Protocol, Reason, Record},
    tap::{HEADER, LONGEST, Tap},
};
use gate::stream::{Budget, Half, Piece};
use socket2::SockRef;
use splitmix::Random;
use std::{
    collections::BTreeMap,
    io::{ErrorKind, IoSlice, IoSliceMut, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    time::Duration,
};
use testbed::{
    Namespace,
    segment::{ACK, Answer, FIN, RST, SYN, Segment, URG},
};

/// Addresses of the receiver and of the sender.
const ADDRESSES: [[&str; 2]; 2] = [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]];
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
/// Ports of a receiver with a common and one with a small window.
const PORTS: [u16; 2] = [80, 81];

/// A receiver in a namespace, and the device that is its way to the sender.
struct Receiver {
    _namespace: Namespace,
    tap: Tap,
    listeners: Vec<TcpListener>,
}

/// What became of a series.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The application read all that was judged.
    Same,
    /// The application read the beginning of it.
    Beginning,
    /// The gate says that it may have read something else; whether it has.
    Unclear { differs: bool },
    /// The gate has not seen all.
    Missed,
}

/// What the gate makes of a series.
struct Judge {
    half: Half,
    read: Vec<u8>,
    unclear: bool,
    missed: bool,
    end: bool,
}

impl Judge {
    fn new(isn: u32) -> Self {
        let mut half = Half::new(1 << 20, Budget::new(1 << 24));
        half.judge(true);
        let syn = Tcp { sequence: isn, acknowledgement: 0, flags: Tcp::SYN };
        half.segment(&syn, b"", 0, &mut |_, _| {});
        Self { half, read: Vec::new(), unclear: false, missed: false, end: false }
    }

    fn see(&mut self, segment: &Segment, frame: &[u8], taken: Option<u32>) {
        let record = record(segment, frame, taken);
        // A bare acknowledgement is not copied out.
        let is_bare = segment.payload.is_empty() && segment.flags & (SYN | FIN | RST | URG) == 0;
        if record.is_broken() || is_bare {
            return;
        }
        let tcp = Tcp {
            sequence: record.sequence,
            acknowledgement: record.acknowledgement,
            flags: record.tcp_flags,
        };
        let Self { half, read, unclear, missed, end } = self;
        let mut sink = |_, piece: Piece<'_>| match piece {
            Piece::Bytes(bytes) => read.extend_from_slice(bytes),
            Piece::Gap(_) => *missed = true,
            Piece::End => *end = true,
            Piece::Unclear => *unclear = true,
            Piece::Reset | Piece::Restart => {}
        };
        if let Some(number) = record.taken {
            half.acknowledged(number, &mut sink);
        }
        half.segment(&tcp, record.payload(), record.payload_length, &mut sink);
    }
}

/// What the gate's program copies out of its whole frame.
fn record<'a>(segment: &Segment, frame: &'a [u8], taken: Option<u32>) -> Record<'a> {
    let key = Key::new(Protocol::Tcp, segment.from, segment.to);
    let (transport, payload_at) = segment.places();
    Record {
        key,
        reason: Reason::Held,
        direction: Direction::ToInternal,
        at_ns: 0,
        from: key.side_of(segment.from).unwrap(),
        client: key.side_of(segment.from),
        internal: key.side_of(segment.to),
        ifindex: 1,
        action: None,
        label: 0,
        number: 0,
        sequence: segment.sequence,
        acknowledgement: segment.acknowledgement,
        tcp_flags: segment.flags,
        first: [0; 2],
        frame,
        length: frame.len() as u32,
        segment: 0,
        vlan: None,
        partial: false,
        unverified: true,
        fragment: false,
        taken,
        transport,
        payload_at,
        payload_length: segment.payload.len() as u32,
        ended: None,
    }
}

fn byte_at(at: usize) -> u8 {
    (at * 7 + at / 251) as u8
}

impl Receiver {
    fn start() -> Self {
        let namespace = Namespace::new("receiver").unwrap();
        let tap = namespace.enter(|| Tap::open("eth0")).unwrap();
        let ip = |words: &str| {
            let words: Vec<&str> = std::iter::once("ip").chain(words.split(' ')).collect();
            namespace.check(&words).unwrap();
        };
        ip("link set eth0 address 02:00:00:00:00:01");
        ip("link set eth0 up");
        for [own, other] in ADDRESSES {
            let (length, nodad) = if own.contains(':') { (64, " nodad") } else { (24, "") };
            ip(&format!("address add {own}/{length} dev eth0{nodad}"));
            ip(&format!("neigh replace {other} lladdr 02:00:00:00:00:02 dev eth0"));
        }
        let mut listeners = Vec::new();
        for [own, _] in ADDRESSES {
            for port in PORTS {
                let address = SocketAddr::new(own.parse().unwrap(), port);
                let listener = namespace.enter(|| TcpListener::bind(address)).unwrap();
                if port == PORTS[1] {
                    SockRef::from(&listener).set_recv_buffer_size(2048).unwrap();
                }
                listener.set_nonblocking(true).unwrap();
                listeners.push(listener);
            }
        }
        Self { _namespace: namespace, tap, listeners }
    }

    fn send(&self, frame: &[u8]) {
        self.tap.send(&[IoSlice::new(&[0; HEADER]), IoSlice::new(frame)]).unwrap();
    }

    /// What has come back to a port.
    fn answers(&self, port: u16, buffer: &mut [u8]) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Some(length) = self.tap.receive(&mut [IoSliceMut::new(buffer)]).unwrap() {
            answers.extend(Answer::of(&buffer[HEADER..length]));
        }
        answers.retain(|answer| answer.port == port);
        answers
    }

    /// Sends the series of a seed.
    fn series(&self, seed: u64, buffer: &mut [u8]) -> Outcome {
        let mut random = Random::new(seed);
        let mut chance = |percent: u64| random.below(100) < percent;
        let (family, window) = (usize::from(chance(50)), usize::from(chance(30)));
        let stamps = chance(50);
        let listener = &self.listeners[family * 2 + window];
        let port = 1024 + (seed % 60_000) as u16;
        let from = SocketAddr::new(ADDRESSES[family][1].parse().unwrap(), port);
        let isn = random.bits() as u32;
        let mut stamp = random.bits() as u32;
        let plain = Segment {
            from,
            to: listener.local_addr().unwrap(),
            sequence: isn,
            acknowledgement: 0,
            flags: SYN,
            urgent: 0,
            timestamps: stamps.then_some([stamp, 0]),
            payload: Vec::new(),
            options: false,
            spoilt: [false; 2],
        };
        let whole = |segment: &Segment| segment.whole(MACS);
        self.send(&whole(&plain));
        let answers = self.answers(port, buffer);
        let answer = answers.iter().find(|answer| answer.flags & SYN != 0).expect("a SYN's answer");
        let first = isn.wrapping_add(1);
        let echo = answer.stamp;
        let plain = Segment {
            sequence: first,
            acknowledgement: answer.sequence.wrapping_add(1),
            flags: ACK,
            timestamps: stamps.then_some([stamp, echo]),
            ..plain
        };
        self.send(&whole(&plain));
        let (mut stream, _) = listener.accept().expect("the connection");
        stream.set_nonblocking(true).unwrap();
        // What is left of it goes with it.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
        let mut judge = Judge::new(isn);
        let (mut taken, mut at) = (Some(first), 0_usize);
        let mut application = Application::default();
        let mut sent_so_far = Vec::new();
        for _ in 0..=random.below(16) {
            let mut chance = |percent: u64| random.below(100) < percent;
            let mut segment = plain.clone();
            let kinds = [chance(8), chance(5), chance(5), chance(3), chance(2), chance(2)];
            let [no_ack, other_ack, fin, urgent, syn, reset] = kinds;
            segment.flags = if no_ack { 0 } else { ACK };
            for (is, flag) in [(fin, FIN), (urgent, URG), (syn, SYN), (reset, RST)] {
                segment.flags |= if is { flag } else { 0 };
            }
            let (spoils, spoils_header) = (chance(5), chance(3));
            segment.spoilt = [spoils, spoils_header && family == 0];
            segment.options = chance(12);
            let (decoy, old_stamp, no_stamp) = (chance(15), chance(8), chance(5));
            let (again, ahead, far, bare, cuts) =
                (chance(20), chance(10), chance(4), chance(3), chance(3));
            stamp = stamp.wrapping_add(random.below(3) as u32);
            let value = if old_stamp { stamp.wrapping_sub(1000) } else { stamp };
            segment.timestamps = (stamps && !no_stamp).then_some([value, echo]);
            if other_ack {
                let by = [1, 1000, 1 << 20, 1 << 31][random.below(4) as usize];
                segment.acknowledgement = segment.acknowledgement.wrapping_add(by);
            }
            if urgent {
                segment.urgent = random.below(60) as u16;
            }
            let length = if bare { 0 } else { 1 + random.below(120) as usize };
            let begin = match (again, ahead) {
                (true, _) => at.saturating_sub(random.below(200) as usize),
                (_, true) => at + random.below(200) as usize,
                _ => at,
            };
            let byte = |at: usize| byte_at(at) ^ if decoy { 0xff } else { 0 };
            segment.payload = (begin..begin + length).map(byte).collect();
            segment.sequence = first.wrapping_add(begin as u32);
            if far {
                let by = [2000, 1 << 16, 1 << 30, 1 << 31, u32::MAX - 3000];
                segment.sequence = segment
                    .sequence
                    .wrapping_add(by[random.below(5) as usize])
                    .wrapping_add((random.below(200) as u32).wrapping_sub(100));
            } else if !again && random.below(100) < 90 {
                at = begin + length;
            }
            let tcp = if segment.timestamps.is_some() { 32 } else { 20 };
            // Behind the ports and flags; the first alone, or both.
            let cut = (cuts && length > 16).then(|| {
                let least: usize = usize::div_ceil(tcp, 8);
                let most = (tcp + length - 1) / 8;
                8 * (least + random.below((most - least + 1) as u64) as usize)
            });
            let number = random.bits() as u32;
            let frames = match cut {
                Some(cut) => segment.cut(MACS, number, cut).to_vec(),
                None => vec![whole(&segment)],
            };
            if cut.is_some() {
                // The gate looks at no fragments of TCP: it says so.
                judge.unclear = true;
            } else {
                judge.see(&segment, &frames[0], taken);
            }
            let sent = if cut.is_some() && random.below(2) == 0 { 1 } else { frames.len() };
            for frame in &frames[..sent] {
                self.send(frame);
            }
            sent_so_far.push((segment, taken));
            for answer in self.answers(port, buffer) {
                if answer.flags & SYN != 0 {
                    // A SYN behind a reset began another connection: its place is for the next series.
                    let reset = Segment {
                        sequence: answer.acknowledgement,
                        flags: RST,
                        timestamps: None,
                        ..plain.clone()
                    };
                    self.send(&whole(&reset));
                }
                if answer.flags & (ACK | RST) == ACK {
                    taken = Some(answer.acknowledgement);
                }
            }
            if random.below(3) == 0 {
                application.read(&mut stream);
            }
        }
        application.read(&mut stream);
        drop(stream);
        self.answers(port, buffer);
        application.compare(&mut judge, seed, &sent_so_far)
    }
}

/// What the application reads.
#[derive(Default)]
struct Application {
    read: Vec<u8>,
    end: bool,
    reset: bool,
}

impl Application {
    fn read(&mut self, stream: &mut TcpStream) {
        let mut buffer = [0; 4096];
        while !self.end && !self.reset {
            match stream.read(&mut buffer) {
                Ok(0) => self.end = true,
                Ok(length) => self.read.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => self.reset = true,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn compare(&self, judge: &mut Judge, seed: u64, sent: &[(Segment, Option<u32>)]) -> Outcome {
        let ends = !self.end || (judge.end && judge.read == self.read);
        let fits = judge.read.starts_with(&self.read) && ends;
        // What is missing is not waited for: then it is known that not all was seen.
        judge.half.give_up(&mut |_, piece| judge.missed |= matches!(piece, Piece::Gap(_)));
        match fits {
            _ if judge.unclear => Outcome::Unclear { differs: !fits },
            true if judge.read == self.read => Outcome::Same,
            true => Outcome::Beginning,
            false if judge.missed => Outcome::Missed,
            false => {
                let sent: String = sent.iter().map(|one| format!("\n{one:02x?}")).collect();
                panic!("seed {seed}: read {:02x?}, judged {:02x?}: {sent}", self.read, judge.read);
            }
        }
    }
}

/// Sends so many series; says what became of them.
fn compare(count: u64) -> BTreeMap<Outcome, u64> {
    let receiver = Receiver::start();
    let mut buffer = vec![0; LONGEST];
    let mut outcomes = BTreeMap::new();
    for seed in 0..count {
        *outcomes.entry(receiver.series(seed, &mut buffer)).or_default() += 1;
    }
    println!("{count} series: {outcomes:?}");
    outcomes
}

#[test]
fn what_is_judged_is_what_the_kernels_receiver_reads() {
    let outcomes = compare(2_000);
    // Neither is the gate content with calling everything unclear, nor is there nothing to find.
    assert!(outcomes[&Outcome::Same] > 300, "{outcomes:?}");
    assert!(outcomes[&Outcome::Unclear { differs: true }] > 100, "{outcomes:?}");
}

#[test]
fn soak_what_is_judged_is_what_the_kernels_receiver_reads() {
    compare(1_000_000);
}
