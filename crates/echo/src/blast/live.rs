//! The engine that sends and receives in the kernel: see [`datapath::blast`].

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use datapath::{
    blast::{Receiver, Request, Sender, Tally, Transmissions},
    clock::monotonic_ns,
};

use super::{
    BlastError,
    engine::{Live, join, merge, nap},
    matcher::Indices,
    outcome::{Outcome, Replies, Requests},
    pacer::Pacer,
    plan::Plan,
};

/// Most frames of a call: some milliseconds. The kernel sends them 64 at a time.
const CALL: u64 = 8_192;
/// Frames of a call at a rate that leaves time for many calls. What was due while the thread was
/// delayed goes out in several: Linux answers each call's frames before it returns, and its ICMP
/// socket has room for 58 replies of 1,518 bytes.
const PACED_CALL: u64 = 16;
/// Above this rate only every 16th frame reads the clock, at 25 nanoseconds each time.
const STAMP_ALL: u64 = 200_000;
/// How often the counters are read.
const LOOK: Duration = Duration::from_millis(20);

/// Sends and receives as planned.
///
/// # Errors
/// When the kernel refuses the programs, or the interface has no native XDP.
pub fn run(plan: &Plan, live: &Live) -> Result<Outcome, BlastError> {
    let indices = Indices::new(plan.base, plan.total, plan.threads);
    let paced = plan.rate.is_some_and(|rate| rate <= STAMP_ALL);
    let request = Request {
        frame: plan.request()?,
        icmp: plan.icmp_offset(),
        ipv6: plan.target.is_ipv6(),
        base: plan.base,
        total: indices.span(),
        per_stream: indices.each,
        stamp_every: if paced { 1 } else { 16 },
    };
    let interface = plan.path.interface;
    // Loading takes some 100 ms, and second 0 of the run should begin after it: the programs get
    // a start time in the future, and sending waits for it.
    let start = monotonic_ns() + START_AFTER * u64::from(plan.threads) + START_AFTER;
    let receiver = Receiver::attach(interface, &request, start)?;
    let watch = Transmissions::watch(interface)?;
    let senders: Vec<Sender> = (0..plan.threads)
        .map(|thread| Sender::load(interface, &request, indices.first(thread), start))
        .collect::<Result<_, _>>()?;
    thread::sleep(Duration::from_nanos(start.saturating_sub(monotonic_ns())));
    let clock = Instant::now();
    let sending = AtomicBool::new(true);
    let mut requests = thread::scope(|scope| {
        let (sending, receiver, watch) = (&sending, &receiver, &watch);
        let looking = scope.spawn(move || -> Result<(), BlastError> {
            let mut ended: Option<Instant> = None;
            loop {
                let (sent, _) = watch.counts();
                let received = receiver.received()?;
                live.sent.store(sent, Relaxed);
                live.received.store(received, Relaxed);
                if !sending.load(Relaxed) {
                    let ended = ended.get_or_insert_with(Instant::now);
                    if received >= watch.counts().0 || ended.elapsed() >= plan.wait {
                        return Ok(());
                    }
                }
                thread::sleep(LOOK);
            }
        });
        let threads: Vec<_> = (0u32..)
            .zip(senders)
            .map(|(thread, sender)| {
                let pacer = Pacer::new(plan.rate, plan.total, thread, plan.threads);
                scope.spawn(move || send(plan, live, &sender, pacer, clock))
            })
            .collect();
        let sent: Result<Vec<Requests>, BlastError> = threads.into_iter().map(join).collect();
        sending.store(false, Relaxed);
        join(looking)?;
        sent.map(merge)
    })?;
    let (sent, refused) = watch.counts();
    requests.sent = sent;
    if refused > 0 {
        requests.refusal = Some("the driver's ring was full".to_owned());
    }
    if sent == 0 && requests.made > 0 {
        return Err(BlastError::NotTransmitted { interface: plan.path.name.clone() });
    }
    let replies = replies(receiver.tally()?);
    let interrupted = live.stop.load(Relaxed);
    Ok(Outcome { requests, replies, overruns: 0, interface_drops: 0, interrupted })
}

/// Most nanoseconds that loading takes, for the receiver and for each sender.
const START_AFTER: u64 = 150_000_000;

fn send(
    plan: &Plan,
    live: &Live,
    sender: &Sender,
    pacer: Pacer,
    clock: Instant,
) -> Result<Requests, BlastError> {
    let paced = plan.rate.is_some_and(|rate| rate <= STAMP_ALL);
    let call = if paced { PACED_CALL } else { CALL };
    let mut made = 0;
    let mut span = Duration::ZERO;
    while made < pacer.total() && !live.stop.load(Relaxed) {
        let elapsed = clock.elapsed();
        if plan.deadline.is_some_and(|deadline| elapsed >= deadline) {
            break;
        }
        let due = pacer.due(elapsed);
        if due <= made {
            thread::sleep(nap(pacer.when(made).saturating_sub(elapsed)));
            continue;
        }
        let count = (due - made).min(call);
        sender.send(count as u32)?;
        made += count;
        span = clock.elapsed();
    }
    let by_second = sender.by_second();
    Ok(Requests { made: sender.made(), sent: 0, by_second, span, refusal: None })
}

/// The program's counters, in the form of the other engines.
fn replies(tally: Tally) -> Replies {
    let mut replies = Replies {
        received: tally.received,
        duplicated: tally.duplicated,
        reordered: tally.reordered,
        corrupt: tally.corrupt,
        by_second: tally.by_second,
        ..Replies::default()
    };
    // The ends are exact; between them the middles of the program's buckets.
    for (rtt, count) in tally.rtt {
        replies.rtt.saturating_record_n(rtt.clamp(tally.rtt_min, tally.rtt_max), count);
    }
    replies
}
