//! Packets a second of an interface, masked in the kernel or in this process and written to a file in memory,
//! beside the same without the mask. The sender has one core with all that the kernel does for it and for the
//! receiver, the program that writes has another one.
//!
//! There are two loads: one of many hosts, as fast as a packet socket sends them; and one that is made in the
//! kernel, of two hosts, as fast as the interface takes it.

use crate::captures;
use datapath::{
    blast::{self, PassGuard, Request, Sender},
    clock::monotonic_ns,
    mask::{Direction, Engine, Mask, Masked, Pace},
    socket::{Receive, Socket},
};
use mask::{
    live::{
        self,
        output::{Files, Head, Output, Packet, Rotation},
    },
    machine::{Link, MappingName, Secrets, Unit},
    policy::Policy,
};
use nix::{
    net::if_::if_nametoindex,
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use std::{
    error::Error,
    net::IpAddr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};
use testbed::{End, Figures, Namespace, link};
use wire::echo_frame::EchoFrame;
use zeroize::Zeroizing;

type Failure = Box<dyn Error + Send + Sync>;

/// How long a load takes.
const SECONDS: Duration = Duration::from_secs(3);
/// Rounds, in which each method of capturing has a turn; of each the fastest counts.
const ROUNDS: usize = 3;
/// Bytes of a packet.
const LENGTH: usize = 166;
/// Packets of many hosts, again and again.
const MANY: usize = 1 << 17;
/// Packets to a system call.
const BATCH: usize = 64;
/// Packets to a call of the sender in the kernel.
const CALL: u32 = 1 << 13;

#[derive(Clone, Copy, PartialEq)]
enum Load {
    Socket,
    Kernel,
}

/// What is done with packets: a policy, by whom; without one they are written as they are.
type Way = (Option<&'static str>, Engine);

/// What one run gave, in packets: a second, and in a hundred lost.
struct Run {
    rate: f64,
    lost: f64,
}

/// Measures all variants under all loads.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Failure> {
    let frames = frames();
    for (load, name) in [(Load::Socket, "many hosts"), (Load::Kernel, "made in the kernel")] {
        let ways: [Way; 4] = [
            (None, Engine::Process),
            (Some("research"), Engine::Kernel),
            (Some("strict"), Engine::Kernel),
            (Some("research"), Engine::Process),
        ];
        let mut best = [0.0_f64; 4];
        let mut lost = [0.0_f64; 4];
        for _ in 0..ROUNDS {
            for (n, way) in ways.into_iter().enumerate() {
                let run = run(way, load, &frames)?;
                if run.rate > best[n] {
                    (best[n], lost[n]) = (run.rate, run.lost);
                }
            }
        }
        let [bare, research, strict, process] = best;
        figures.add(&format!("live, {name}: without the mask"), bare / 1e6, "Mpps", None);
        figures.add(&format!("live, {name}: lost of it"), lost[0], "%", None);
        figures.add(&format!("live, {name}: research"), research / 1e6, "Mpps", None);
        figures.add(&format!("live, {name}: lost of it, research"), lost[1], "%", None);
        figures.add(&format!("live, {name}: strict"), strict / 1e6, "Mpps", None);
        let by_process = format!("live, {name}: research, by the process");
        figures.add(&by_process, process / 1e6, "Mpps", None);
        figures.add(&format!("live, {name}: lost of it, by the process"), lost[3], "%", None);
        let part = research / bare;
        figures.add(&format!("live, {name}: part that research takes"), part, "", Some("0.85"));
    }
    Ok(())
}

/// Frames of one length, one behind the other.
fn frames() -> Vec<u8> {
    let (_, capture) = captures::all(MANY).into_iter().next().expect("there are some");
    let mut frames = Vec::with_capacity(MANY * LENGTH);
    let mut rest = &capture[captures::HEADER..];
    while let Some(length) = rest.get(8..12).and_then(|it| it.first_chunk()) {
        let (record, behind) = rest.split_at(16 + u32::from_le_bytes(*length) as usize);
        frames.extend(&record[16..]);
        frames.resize(frames.len().next_multiple_of(LENGTH), 0);
        rest = behind;
    }
    frames
}

fn run((policy, engine): Way, load: Load, frames: &[u8]) -> Result<Run, Failure> {
    let [host, talker] = ["bench-mask", "bench-talker"].map(Namespace::new);
    let (host, talker) = (host?, talker?);
    for each in [&host, &talker] {
        each.sysctl(&[("ipv6/conf/default/disable_ipv6", "1")])?;
    }
    link(
        End::new(&host, "eth0").address("192.0.2.1/30").mac("02:00:00:00:00:01"),
        End::new(&talker, "eth0").address("192.0.2.2/30").mac("02:00:00:00:00:02"),
    )?;
    let program = Policy::shipped(policy.unwrap_or("strict")).ok_or("none")?.compile()?;
    let (name, key) = (MappingName::CryptoPan, Zeroizing::new([7; 32]));
    let settings = live::settings(&program, name, Link::Ethernet)?;
    let (mut mask, _guard) = host.enter(|| -> Result<_, Failure> {
        let ifindex = if_nametoindex("eth0")?;
        let mut mask = Mask::open(&settings, engine)?;
        mask.set_key(0, 0, 1, &live::keys(&key, name))?;
        mask.attach(ifindex, Direction::In)?;
        Ok((mask, PassGuard::attach(ifindex)?))
    })?;
    let mut reader = mask.reader()?;
    let folder = crate::folder()?;
    let head = Head::new(String::new(), Link::Ethernet, settings.snap);
    let path = folder.path().join("out.pcapng");
    let files = Files::create(head, &path, Rotation::default(), SystemTime::now())?;
    let mut output = Output::Files(files);
    let masks = policy.is_some() && engine == Engine::Process;
    let secrets = masks.then(|| Secrets::new(&key, name)).transpose()?;
    let mut unit = secrets.map(|secrets| Unit::new(program, secrets));
    let over = AtomicBool::new(false);
    let (taken, elapsed) = thread::scope(|scope| -> Result<_, Failure> {
        let sender = scope.spawn(|| -> Result<(), Failure> {
            let sent = talker.enter(|| {
                pin(0)?;
                send(load, frames)
            });
            over.store(true, Ordering::Relaxed);
            sent
        });
        pin(1)?;
        let (begun, mut taken, mut failed) = (Instant::now(), 0, None);
        let mut room = Vec::new();
        loop {
            let was_over = over.load(Ordering::Relaxed);
            let pace = Pace {
                timeout: Duration::from_millis(10),
                gather: Duration::from_millis(1),
                most: 1 << 14,
            };
            let count = reader.read(pace, |masked| {
                let Masked { at_ns, length, mut bytes, .. } = masked;
                let direction = Direction::In;
                if let Some(unit) = &mut unit {
                    unit.mask(Link::Ethernet, bytes, 0, &mut room);
                    bytes = &room;
                }
                let packet = Packet { at_ns, length, direction, comment: None, bytes };
                failed = failed.take().or(output.packet(&packet).err());
            })?;
            if let Some(error) = failed.take() {
                return Err(error.into());
            }
            taken += count;
            if count == 0 && was_over {
                break;
            }
        }
        let elapsed = begun.elapsed();
        sender.join().map_err(|_| "the sender panicked")??;
        Ok((taken, elapsed))
    })?;
    mask.detach();
    let counts = mask.counts()?;
    let lost = counts.lost() as f64;
    Ok(Run {
        rate: taken as f64 / elapsed.as_secs_f64(),
        lost: 100.0 * lost / (counts.seen.max(1) as f64),
    })
}

fn send(load: Load, frames: &[u8]) -> Result<(), Failure> {
    let interface = if_nametoindex("eth0")?;
    let end = Instant::now() + SECONDS;
    if load == Load::Socket {
        let socket = Socket::packet(interface, Receive::Nothing)?;
        for batch in frames.chunks(BATCH * LENGTH).cycle().take_while(|_| Instant::now() < end) {
            socket.send(batch, LENGTH)?;
        }
        return Ok(());
    }
    let [from, to] = ["192.0.2.2", "192.0.2.1"].map(|it| it.parse::<IpAddr>());
    // For another station than that one, so that nobody answers.
    let payload = vec![0; LENGTH - 42];
    let frame = EchoFrame { payload, ..EchoFrame::request(from?, to?) };
    let request = Request::copies(&frame, blast::MAX_TOTAL)?;
    let sender = Sender::load(interface, &request, 0, monotonic_ns())?;
    while Instant::now() < end {
        sender.send(CALL)?;
    }
    Ok(())
}

fn pin(core: usize) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}
