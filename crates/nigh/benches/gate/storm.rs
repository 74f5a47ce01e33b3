//! Reconnection storms: a host that tries the same refused endpoint again and again (the paper, sections 3.3 and
//! 4.2.2).
//!
//! - What a refused attempt costs the gateway: the time of the kernel's threads that receive from its
//!   interfaces, whose work of receiving is put into threads for that, and of the gateway's program. Nothing
//!   is removed, and the ends' work is not in it. SYNs with changing source ports at a steady rate are
//!   counted where they arrive; beside the gateways stands a rule of iptables that drops all of them.
//!   Then whole attempts: real connections whose first bytes are BitTorrent's.
//! - What a storm leaves of the permitted traffic beside it.

use crate::{
    Failure,
    clients::{Connections, Counts, Load},
    median, processor,
    stage::{CLIENTS, REFUSED, SERVERS, Stage},
    variants::{Running, Variant},
};
use nix::sys::socket::{
    AddressFamily, MsgFlags, MultiHeaders, SockFlag, SockProtocol, SockType, SockaddrIn, sendmmsg,
    socket,
};
use std::{
    io::{IoSlice, Read, Write},
    net::{Ipv4Addr, SocketAddrV4, TcpStream},
    os::fd::{AsRawFd, OwnedFd},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};
use testbed::Figures;

/// SYNs a second.
const RATE: u32 = 50_000;
/// SYNs to a system call, and the time of that many at the rate.
const BATCH: usize = 100;
const STEP: Duration = Duration::from_nanos(1_000_000_000 / RATE as u64 * BATCH as u64);
/// How long a rate is measured.
const MEASURE: Duration = Duration::from_millis(1_500);
/// Until what was started is at work.
const WARM: Duration = Duration::from_millis(500);
const ROUNDS: usize = 3;
/// Whole attempts a second, and how long a client waits for an answer to its first bytes.
const ATTEMPTS: u32 = 2_000;
const TIMEOUT: Duration = Duration::from_millis(5);
/// Threads that attempt.
const THREADS: u32 = 20;

/// The first message of BitTorrent's peer wire protocol (BEP 3).
fn handshake() -> Vec<u8> {
    let mut message = b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\x05".to_vec();
    message.extend([0x5a; 20]);
    message.extend(b"-NB0001-abcdefghijkl");
    message
}

/// Sends SYNs to a destination at [`RATE`] until stopped.
struct Syns {
    socket: OwnedFd,
    to: SocketAddrV4,
    from: Ipv4Addr,
}

impl Syns {
    fn open(stage: &Stage, from: Ipv4Addr, to: SocketAddrV4) -> Result<Self, Failure> {
        let flags = SockFlag::empty();
        let (family, kind) = (AddressFamily::Inet, SockType::Raw);
        let socket = stage.clients.enter(|| socket(family, kind, flags, SockProtocol::Raw))?;
        Ok(Self { socket, to, from })
    }

    fn run(&self, stop: &AtomicBool) -> Result<(), Failure> {
        let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
        let addresses = [Some(SockaddrIn::from(self.to)); BATCH];
        let mut packets = [syn(self.from, self.to); BATCH];
        let (mut port, mut next) = (0u16, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now < next {
                thread::sleep(next - now);
            }
            // What was missed because somebody else had the processor is not caught up with.
            next = next.max(now - STEP) + STEP;
            for packet in &mut packets {
                port = port.wrapping_add(1).max(1024);
                set_port(packet, port);
            }
            let slices: Vec<_> = packets.iter().map(|packet| [IoSlice::new(packet)]).collect();
            let fd = self.socket.as_raw_fd();
            match sendmmsg(fd, &mut headers, &slices, addresses, [], MsgFlags::empty()) {
                // What arrives is counted, not what is sent.
                Ok(_) | Err(nix::Error::ENOBUFS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// An IPv4 packet with a SYN; the kernel fills in the header's checksum.
fn syn(from: Ipv4Addr, to: SocketAddrV4) -> [u8; 40] {
    let mut packet = [0; 40];
    packet[..4].copy_from_slice(&[0x45, 0, 0, 40]);
    packet[8..10].copy_from_slice(&[64, 6]);
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.ip().octets());
    packet[22..24].copy_from_slice(&to.port().to_be_bytes());
    packet[32..36].copy_from_slice(&[0x50, 2, 0xff, 0xff]);
    packet
}

fn set_port(packet: &mut [u8; 40], port: u16) {
    packet[20..22].copy_from_slice(&port.to_be_bytes());
    packet[36..38].fill(0);
    // The pseudo-header of RFC 9293, section 3.1, and the segment.
    let mut covered = [0; 32];
    covered[..8].copy_from_slice(&packet[12..20]);
    covered[8..12].copy_from_slice(&[0, 6, 0, 20]);
    covered[12..].copy_from_slice(&packet[20..]);
    let check = wire::checksum::checksum(&covered);
    packet[36..38].copy_from_slice(&check.to_be_bytes());
}

/// Runs a storm of SYNs while something else is done.
fn during<R>(
    stage: &Stage,
    to: SocketAddrV4,
    meanwhile: impl FnOnce() -> Result<R, Failure>,
) -> Result<R, Failure> {
    let syns = Syns::open(stage, CLIENTS[0], to)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let storm = scope.spawn(|| syns.run(&stop));
        thread::sleep(WARM);
        let result = meanwhile();
        stop.store(true, Ordering::Relaxed);
        storm.join().map_err(|_| "the storm died")??;
        result
    })
}

/// The time that a gateway works, in microseconds: its threads of the kernel and its program.
fn worked(threads: &[u32], running: &mut Running<'_>) -> Result<f64, Failure> {
    let mut kernel = 0.0;
    for thread in threads {
        kernel += processor::of_process(*thread)?;
    }
    // Thousands of packets have come before this is asked.
    if kernel < 1e-3 {
        return Err("the kernel does not receive in its threads here".into());
    }
    Ok((kernel + running.seconds()?) * 1e6)
}

/// Microseconds of the gateway for each SYN of a storm that arrives.
fn of_syns(stage: &Stage, threads: &[u32], running: &mut Running<'_>) -> Result<f64, Failure> {
    during(stage, REFUSED, || {
        let before = (stage.received()?, worked(threads, running)?);
        thread::sleep(MEASURE);
        let after = (worked(threads, running)?, stage.received()?);
        Ok((after.0 - before.1) / (after.1 - before.0))
    })
}

/// One attempt as a client of BitTorrent makes it. Whether anybody answered its first bytes.
fn attempt(from: Ipv4Addr, message: &[u8]) -> Result<bool, Failure> {
    let Ok(mut stream) = connect(from) else { return Ok(false) };
    stream.set_read_timeout(Some(TIMEOUT))?;
    // Closing is silent: what was refused stays unanswered.
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    let mut answer = [0; 68];
    Ok(stream.write_all(message).is_ok() && stream.read(&mut answer).is_ok_and(|got| got > 0))
}

fn connect(from: Ipv4Addr) -> std::io::Result<TcpStream> {
    let (domain, kind) = (socket2::Domain::IPV4, socket2::Type::STREAM);
    let socket = socket2::Socket::new(domain, kind, Some(socket2::Protocol::TCP))?;
    socket.bind(&SocketAddrV4::new(from, 0).into())?;
    socket.connect_timeout(&REFUSED.into(), 4 * TIMEOUT)?;
    Ok(socket.into())
}

/// Microseconds of the gateway for each whole attempt, and the share that was answered.
fn of_attempts(
    stage: &Stage,
    threads: &[u32],
    running: &mut Running<'_>,
) -> Result<(f64, f64), Failure> {
    let (made, answered, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let message = handshake();
    let attempts = || -> Result<(), Failure> {
        let step = Duration::from_secs(1) * THREADS / ATTEMPTS;
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(next.saturating_duration_since(Instant::now()));
            next = next.max(Instant::now() - step) + step;
            let was = attempt(CLIENTS[0], &message)?;
            made.fetch_add(1, Ordering::Relaxed);
            answered.fetch_add(u64::from(was), Ordering::Relaxed);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let ends: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| stage.clients.enter(attempts))).collect();
        thread::sleep(WARM);
        let count = || (made.load(Ordering::Relaxed), answered.load(Ordering::Relaxed));
        let before = (count(), worked(threads, running));
        thread::sleep(MEASURE);
        let after = (count(), worked(threads, running));
        stop.store(true, Ordering::Relaxed);
        for end in ends {
            end.join().map_err(|_| "an attempt died")??;
        }
        let made = (after.0.0 - before.0.0) as f64;
        Ok(((after.1? - before.1?) / made, (after.0.1 - before.0.1) as f64 / made))
    })
}

/// Gbit/s of permitted traffic from the client that has no storm.
fn permitted(stage: &Stage, every: Duration) -> Result<f64, Failure> {
    let load = Load {
        clients: &CLIENTS[1..],
        servers: &SERVERS,
        connections: 50,
        kind: Connections::Persistent,
        every,
    };
    load.run(&stage.clients, |counts: &Counts| {
        thread::sleep(2 * WARM);
        let bytes = || counts.bytes.load(Ordering::Relaxed);
        let (before, begin) = (bytes(), Instant::now());
        thread::sleep(MEASURE);
        Ok((bytes() - before) as f64 * 8.0 / 1e9 / begin.elapsed().as_secs_f64())
    })
}

/// Ways that refuse at the first packet.
const REFUSE: [Variant; 3] = [Variant::Refuse, Variant::RefuseDriver, Variant::NfqueueRefuse];
/// The variants that face whole attempts; the last classifies each again.
const ATTEMPTED: [Variant; 5] = [
    Variant::Refuse,
    Variant::RefuseDriver,
    Variant::Deny,
    Variant::NfqueueRefuse,
    Variant::NfqueueDeny,
];

/// A variant with what its rounds gave.
type Measured<const N: usize> = (Variant, Vec<[f64; N]>);

/// Measures everything.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Failure> {
    let stage = Stage::build()?;
    let threads = stage.receive_in_threads()?;
    println!("\nA host tries a refused endpoint again {RATE} times a second");
    let measured = rounds(&stage, &REFUSE, |running| Ok([of_syns(&stage, &threads, running)?]))?;
    let nothing = dropped(&stage, |stage| of_syns(stage, &threads, &mut Running::Kernel))?;
    spread(figures, "a rule of iptables: a refused SYN", &nothing);
    for (variant, costs) in &measured {
        let costs: Vec<f64> = costs.iter().map(|[cost]| *cost).collect();
        spread(figures, &format!("{}: a refused SYN", variant.name()), &costs);
    }
    ratio(figures, "a refused SYN", &measured, Variant::NfqueueRefuse);

    println!("\nA host makes whole attempts at a refused endpoint");
    let nothing =
        dropped(&stage, |stage| Ok(of_attempts(stage, &threads, &mut Running::Kernel)?.0))?;
    spread(figures, "a rule of iptables: a whole attempt", &nothing);
    let measured = rounds(&stage, &ATTEMPTED, |running| {
        let (cost, answered) = of_attempts(&stage, &threads, running)?;
        Ok([cost, answered])
    })?;
    for (variant, samples) in &measured {
        let costs: Vec<f64> = samples.iter().map(|[cost, _]| *cost).collect();
        spread(figures, &format!("{}: a whole attempt", variant.name()), &costs);
        let answered = median(samples.iter().map(|[_, answered]| answered * 100.0).collect());
        figures.add(&format!("{}: attempts answered", variant.name()), answered, "percent", None);
    }
    ratio(figures, "a whole attempt", &measured, Variant::NfqueueDeny);
    drop(stage);
    beside(figures, &Stage::build()?)
}

/// What a rule of iptables that drops everything costs: the kernel's own part of any refusal.
fn dropped(
    stage: &Stage,
    one: impl Fn(&Stage) -> Result<f64, Failure>,
) -> Result<Vec<f64>, Failure> {
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        stage.drop_all(true)?;
        let cost = one(stage);
        stage.drop_all(false)?;
        costs.push(cost?);
    }
    Ok(costs)
}

/// What each variant costs, in turns; variants that cannot run are skipped.
fn rounds<const N: usize>(
    stage: &Stage,
    variants: &[Variant],
    one: impl Fn(&mut Running<'_>) -> Result<[f64; N], Failure>,
) -> Result<Vec<Measured<N>>, Failure> {
    let mut all: Vec<_> = variants.iter().map(|variant| (*variant, Vec::new())).collect();
    for round in 0..ROUNDS {
        for (variant, samples) in &mut all {
            match variant.start(stage)? {
                Ok(mut running) => {
                    refuse_once(stage)?;
                    samples.push(one(&mut running)?);
                    let report = running.end()?;
                    if round == 0 {
                        println!("  {}: {report}", variant.name());
                    }
                }
                Err(why) => println!("  {}: skipped: {why}", variant.name()),
            }
        }
        all.reverse();
    }
    all.sort_by_key(|(variant, _)| variants.iter().position(|one| one == variant));
    all.retain(|(_, samples)| !samples.is_empty());
    Ok(all)
}

/// The median, and the least and the most.
fn spread(figures: &mut Figures, name: &str, costs: &[f64]) {
    let unit = "microseconds of CPU";
    figures.add(name, median(costs.to_vec()), unit, None);
    let least = costs.iter().copied().fold(f64::MAX, f64::min);
    figures.add(&format!("{name}, least"), least, unit, None);
    figures.add(&format!("{name}, most"), costs.iter().copied().fold(0.0, f64::max), unit, None);
}

/// What the gate's cache costs of what a gateway of others does.
fn ratio<const N: usize>(
    figures: &mut Figures,
    what: &str,
    measured: &[Measured<N>],
    peer: Variant,
) {
    let of = |wanted: Variant| {
        let (_, samples) = measured.iter().find(|(variant, _)| *variant == wanted)?;
        Some(median(samples.iter().map(|sample| sample[0]).collect()))
    };
    for variant in [Variant::Refuse, Variant::RefuseDriver] {
        if let (Some(ours), Some(theirs)) = (of(variant), of(peer)) {
            let name = format!("{}: {what}, of \"{}\"", variant.name(), peer.name());
            figures.add(&name, ours / theirs, "times", Some("0.1"));
        }
    }
}

/// One whole attempt, so that a gateway that learns has learnt.
fn refuse_once(stage: &Stage) -> Result<(), Failure> {
    stage.clients.enter(|| attempt(CLIENTS[0], &handshake()))?;
    Ok(())
}

/// What is left of the permitted traffic.
fn beside(figures: &mut Figures, stage: &Stage) -> Result<(), Failure> {
    // 50 connections with a file of 2 MB each 0.4 s.
    let steady = Duration::from_millis(400);
    println!("\n2 Gbit/s of permitted traffic beside a storm of {RATE} a second");
    for variant in REFUSE {
        let name = variant.name();
        let (mut kept, mut without, mut with) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let running = match variant.start(stage)? {
                Ok(running) => running,
                Err(why) => {
                    println!("  {}: skipped: {why}", variant.name());
                    break;
                }
            };
            refuse_once(stage)?;
            let before = permitted(stage, steady)?;
            let under = during(stage, REFUSED, || permitted(stage, steady))?;
            running.end()?;
            without.push(before);
            with.push(under);
            kept.push(under / before);
        }
        if kept.is_empty() {
            continue;
        }
        let goal = variant.is_ours().then_some("0.98");
        figures.add(&format!("{name}: without the storm"), median(without), "Gbit/s", None);
        figures.add(&format!("{name}: during the storm"), median(with), "Gbit/s", None);
        figures.add(&format!("{name}: permitted traffic keeps"), median(kept), "times", goal);
    }
    Ok(())
}
