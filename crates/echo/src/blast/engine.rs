//! The engines that send from user space: raw sockets and packet sockets.
//!
//! Each thread sends its share with `sendmmsg`; one more thread receives and matches. Requests carry
//! the time of day; the kernel's receive timestamp is the other end of a round-trip time, so the time
//! that a reply waits in our socket does not count.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use datapath::{
    clock::unix_ns,
    socket::{BATCH, Buffer, Receive, Socket},
};
use wire::{EtherType, IpProtocol, ethernet, icmpv4, icmpv6, ipv4, ipv6};

use super::{
    BlastError,
    matcher::{Arrival, Indices, Matcher, count_second},
    outcome::{Outcome, Replies, Requests},
    pacer::Pacer,
    plan::{Kind, Plan},
    probe::Template,
};

/// The progress of a run, and its stop flag.
#[derive(Debug, Default)]
pub struct Live {
    /// Requests sent so far.
    pub sent: AtomicU64,
    /// Requests answered so far.
    pub received: AtomicU64,
    /// Set to stop sending.
    pub stop: AtomicBool,
}

/// How long a receive call waits, hence how soon the end is noticed.
const TIMEOUT: Duration = Duration::from_millis(10);
/// Errors in a row after which a thread gives up.
const GIVE_UP: u32 = 1000;

/// Opens a socket of the plan's kind.
fn open(plan: &Plan, receive: Receive) -> Result<Socket, BlastError> {
    Ok(match plan.engine {
        Kind::Raw => Socket::raw(plan.target, plan.ttl)?,
        Kind::Packet | Kind::Live => Socket::packet(plan.path.interface, receive)?,
    })
}

/// Sends and receives as planned.
///
/// # Errors
/// When sockets cannot be opened or the kernel accepts no packet at all.
pub fn run(plan: &Plan, live: &Live) -> Result<Outcome, BlastError> {
    let indices = Indices::new(plan.base, plan.total, plan.threads);
    let template = plan.template()?;
    let receiver = open(plan, Receive::Incoming)?;
    receiver.set_timeout(TIMEOUT).map_err(BlastError::Socket)?;
    let senders: Vec<Socket> =
        (0..plan.threads).map(|_| open(plan, Receive::Nothing)).collect::<Result<_, _>>()?;
    let drops = interface_drops(&plan.path.name);
    let (clock, start) = (Instant::now(), unix_ns());
    let matcher = Matcher::new(indices, plan.payload.clone(), start);
    let sending = AtomicBool::new(true);
    let (requests, replies) = thread::scope(|scope| {
        let (sending, receiver, template) = (&sending, &receiver, &template);
        let receiving = scope.spawn(move || receive(plan, live, receiver, matcher, sending));
        let threads: Vec<_> = (0u32..)
            .zip(&senders)
            .map(|(thread, socket)| {
                let pacer = Pacer::new(plan.rate, plan.total, thread, plan.threads);
                let numbers = indices.number(indices.first(thread));
                let sender = Sender { plan, live, socket, template, clock, start };
                scope.spawn(move || sender.send(pacer, numbers))
            })
            .collect();
        let sent: Vec<Requests> = threads.into_iter().map(join).collect();
        sending.store(false, Relaxed);
        (merge(sent), join(receiving))
    });
    let overruns = receiver.overruns().map_err(BlastError::Socket)?;
    if let (0, Some(reason)) = (requests.sent, &requests.refusal) {
        return Err(BlastError::Refused { target: plan.target, reason: reason.clone() });
    }
    let interface_drops = interface_drops(&plan.path.name).saturating_sub(drops);
    let interrupted = live.stop.load(Relaxed);
    Ok(Outcome { requests, replies, overruns, interface_drops, interrupted })
}

/// Sends one request before the run, not counted, so that the kernels on the path resolve their neighbours:
/// requests that wait for the next hop's MAC address would be dropped (RFC 2544,
/// section 23, has learning frames for this). No answer is no error: the run will show it.
///
/// # Errors
/// When the socket cannot be opened or used.
pub fn learn(plan: &Plan) -> Result<(), BlastError> {
    let socket = open(plan, Receive::Incoming)?;
    socket.set_timeout(TIMEOUT).map_err(BlastError::Socket)?;
    let template = plan.template()?;
    // None of the numbers of the run.
    let number = plan.base.wrapping_sub(1);
    let mut request = template.copies(1);
    template.write(&mut request, number, unix_ns());
    let mut buffer = Buffer::new(plan.frame + 64);
    for _ in 0..LEARNING.0 {
        // What the kernel refuses now, it refuses in the run, which reports it.
        let _ = socket.send(&request, template.size());
        let asked = Instant::now();
        while asked.elapsed() < LEARNING.1 {
            let Ok(packets) = socket.receive(&mut buffer) else { continue };
            if packets.filter_map(|p| read(plan, p.bytes)).any(|reply| reply.number == number) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// How many requests go before the run, and how long each answer is waited for.
const LEARNING: (u32, Duration) = (4, Duration::from_millis(250));

/// The result of a thread; its panic continues here.
pub fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What all threads sent together.
pub fn merge(parts: Vec<Requests>) -> Requests {
    let mut all = Requests::default();
    for part in parts {
        all.made += part.made;
        all.sent += part.sent;
        all.span = all.span.max(part.span);
        all.refusal = part.refusal.or(all.refusal);
        for (second, count) in part.by_second.into_iter().enumerate() {
            count_second(&mut all.by_second, second, count);
        }
    }
    all
}

/// A thread that sends.
struct Sender<'a> {
    plan: &'a Plan,
    live: &'a Live,
    socket: &'a Socket,
    template: &'a Template,
    clock: Instant,
    start: u64,
}

impl Sender<'_> {
    fn send(&self, pacer: Pacer, first: u32) -> Requests {
        let length = self.template.size();
        let mut batch = self.template.copies(BATCH);
        let mut out = Requests::default();
        let mut errors = 0;
        while out.made < pacer.total() && !self.live.stop.load(Relaxed) {
            let elapsed = self.clock.elapsed();
            if self.plan.deadline.is_some_and(|deadline| elapsed >= deadline) {
                break;
            }
            let due = pacer.due(elapsed);
            if due <= out.made {
                thread::sleep(nap(pacer.when(out.made).saturating_sub(elapsed)));
                continue;
            }
            let count = (due - out.made).min(BATCH as u64) as usize;
            let stamp = unix_ns();
            for (copy, number) in batch.chunks_exact_mut(length).take(count).zip(out.made as u32..)
            {
                self.template.write(copy, first.wrapping_add(number), stamp);
            }
            // A request that the kernel refuses is not retried: it would be late.
            let (made, sent) = match self.socket.send(&batch[..count * length], length) {
                Ok(sent) => {
                    errors = 0;
                    (sent, sent)
                }
                Err(error) => {
                    out.refusal = Some(error.to_string());
                    errors += 1;
                    if errors > GIVE_UP {
                        break;
                    }
                    (1, 0)
                }
            };
            out.made += made as u64;
            out.sent += sent as u64;
            out.span = self.clock.elapsed();
            let second = (stamp.saturating_sub(self.start) / 1_000_000_000) as usize;
            count_second(&mut out.by_second, second, sent as u64);
            self.live.sent.fetch_add(sent as u64, Relaxed);
        }
        out
    }
}

/// How long to sleep when the next packet is due after `wait`: not so long that a stop is missed.
pub fn nap(wait: Duration) -> Duration {
    wait.min(Duration::from_millis(50))
}

/// Receives until all replies are in, or none can be waited for any more.
fn receive(
    plan: &Plan,
    live: &Live,
    socket: &Socket,
    mut matcher: Matcher,
    sending: &AtomicBool,
) -> Replies {
    let mut buffer = Buffer::new(plan.frame + 64);
    let mut ended: Option<Instant> = None;
    let mut errors = 0;
    loop {
        match socket.receive(&mut buffer) {
            Ok(packets) => {
                errors = 0;
                for packet in packets {
                    let at = packet.stamp.unwrap_or_else(unix_ns);
                    if let Some(reply) = read(plan, packet.bytes) {
                        matcher.take(Arrival { at, ..reply });
                    }
                }
                live.received.store(matcher.replies().received, Relaxed);
            }
            // Errors of the path, as reported by ICMP, show up here; they end nothing.
            Err(_) if errors < GIVE_UP => errors += 1,
            Err(_) => break,
        }
        if !sending.load(Relaxed) {
            let ended = ended.get_or_insert_with(Instant::now);
            let replies = matcher.replies();
            let all = replies.received >= live.sent.load(Relaxed);
            if all || ended.elapsed() >= plan.wait {
                break;
            }
        }
    }
    matcher.into_replies()
}

/// Reads a packet; none if it is no echo reply from the target.
fn read<'a>(plan: &Plan, bytes: &'a [u8]) -> Option<Arrival<'a>> {
    let (ip, tagged) = match plan.engine {
        Kind::Raw => (bytes, false),
        Kind::Packet | Kind::Live => {
            let frame = ethernet::Packet::new(bytes).ok()?;
            let right = match frame.ether_type() {
                EtherType::IPV4 => plan.target.is_ipv4(),
                EtherType::IPV6 => plan.target.is_ipv6(),
                _ => false,
            };
            (right.then(|| &bytes[frame.header_len()..])?, true)
        }
    };
    match (plan.target, plan.path.source) {
        (IpAddr::V4(target), IpAddr::V4(source)) => {
            let packet = ipv4::Packet::new(ip).ok()?;
            if packet.source() != target
                || packet.destination() != source
                || packet.protocol() != IpProtocol::ICMP
                || packet.is_fragment()
            {
                return None;
            }
            let message = &ip[packet.header_len()..packet.total_len()];
            let icmp = icmpv4::Packet::new(message).ok()?;
            if icmp.kind() != icmpv4::Type::ECHO_REPLY {
                return None;
            }
            let checksum_ok = packet.checksum_ok() && icmp.checksum_ok() && icmp.code() == 0;
            Some(arrival(message, checksum_ok))
        }
        (IpAddr::V6(target), IpAddr::V6(source)) => {
            // A raw socket for ICMPv6 delivers the message alone, its checksum verified (RFC 3542,
            // section 3.1).
            let message = if tagged {
                let packet = ipv6::Packet::new(ip).ok()?;
                if packet.source() != target
                    || packet.destination() != source
                    || packet.next_header() != IpProtocol::ICMPV6
                {
                    return None;
                }
                &ip[ipv6::HEADER..ipv6::HEADER + packet.payload_len()]
            } else {
                ip
            };
            let icmp = icmpv6::Packet::new(message).ok()?;
            if icmp.kind() != icmpv6::Type::ECHO_REPLY {
                return None;
            }
            let checksum_ok = !tagged || icmp.checksum_ok(target, source);
            Some(arrival(message, checksum_ok && icmp.code() == 0))
        }
        _ => None,
    }
}

/// An echo reply whose header is there.
fn arrival(message: &[u8], checksum_ok: bool) -> Arrival<'_> {
    let number = u32::from_be_bytes([message[4], message[5], message[6], message[7]]);
    Arrival { number, payload: &message[icmpv4::HEADER..], checksum_ok, at: 0 }
}

/// Packets that an interface dropped instead of sending them; 0 if the kernel does not report it.
fn interface_drops(name: &str) -> u64 {
    // Column 4 of the transmit half: bytes, packets, errs, drop (proc(5)).
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let drops = |line: &str| {
        let (interface, numbers) = line.split_once(':')?;
        let right = interface.trim() == name;
        right.then(|| numbers.split_whitespace().nth(11)?.parse().ok()).flatten()
    };
    table.lines().find_map(drops).unwrap_or(0)
}
