//! `nigh blast`: how much a responder can answer, and where packets are lost.
//!
//! The core works on numbers and bytes: [`pacer`] (when a packet is due), [`probe`] (its content),
//! [`matcher`] (which reply belongs to it), [`search`] (RFC 2544's search), [`loss`] (where it was
//! lost) and [`mod@line`]. The shell moves packets: [`engine`] with sockets, [`live`]
//! inside the kernel; [`route`] finds the path. [`run`] joins them for the command line.

pub mod args;
pub mod engine;
pub mod line;
pub mod live;
pub mod loss;
pub mod matcher;
pub mod outcome;
pub mod pacer;
pub mod plan;
pub mod probe;
pub mod report;
pub mod route;
pub mod search;

pub use args::{Args, Rate};

use std::{
    future::Future,
    io::{self, IsTerminal},
    net::IpAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use job::command::{Exit, PrintError, print_result};
use terminal::progress::{ProgressBar, styled};
use tokio::sync::oneshot;

use crate::status::{Count, LedgerStatus};
use engine::{Live, join};
use loss::Loss;
use outcome::Outcome;
use plan::{Kind, MAX_TOTAL, Plan, TTL};
use report::{Report, SearchReport, Setup, Trial};
use search::{Search, Step};

/// `nigh blast` could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum BlastError {
    /// The target is not allowed.
    #[error(transparent)]
    Target(#[from] config::target::Refused),
    /// There is no route to it.
    #[error(transparent)]
    Route(#[from] route::RouteError),
    /// An engine that sends frames, for an address of this machine.
    #[error("{target} is this machine itself: only --engine raw can send to it")]
    Loopback {
        /// The target.
        target: IpAddr,
    },
    /// The size does not fit.
    #[error(
        "a frame of {size} bytes does not fit {interface}: choose --size from {least} to {most}"
    )]
    Size {
        /// As requested.
        size: usize,
        /// Name of the interface.
        interface: String,
        /// The smallest that holds a probe.
        least: usize,
        /// The largest that fits the MTU.
        most: usize,
    },
    /// More packets than a run can have.
    #[error(
        "{packets} packets are too many for one run: the most are {MAX_TOTAL}; lower --count, --rate or --duration"
    )]
    TooMany {
        /// As requested.
        packets: u64,
    },
    /// Time without which nothing can be sent.
    #[error("--{option} must be longer than 0s")]
    NoTime {
        /// Name of the option.
        option: &'static str,
    },
    /// A frame could not be built.
    #[error("building the request: {0}")]
    Frame(#[from] wire::EmitError),
    /// A socket could not be opened.
    #[error(transparent)]
    Open(#[from] datapath::socket::OpenError),
    /// A socket could not be used.
    #[error("using a socket: {0}")]
    Socket(#[source] io::Error),
    /// The in-kernel engine could not be used.
    #[error(transparent)]
    Live(#[from] datapath::blast::LiveError),
    /// The kernel accepted no packet.
    #[error("nothing could be sent to {target}: {reason}")]
    Refused {
        /// The target.
        target: IpAddr,
        /// The kernel's last error.
        reason: String,
    },
    /// The driver accepted no packet.
    #[error(
        "{interface} took none of the live frames; a veth takes them only while its peer has an \
         XDP program, or GRO on (ethtool -K PEER gro on)"
    )]
    NotTransmitted {
        /// Name of the interface.
        interface: String,
    },
    /// The responder's ledger could not be read.
    #[error(
        "reading the ledger of {url}: {reason}; give --peer the responder's HTTP address, such as http://192.0.2.1:9160"
    )]
    Peer {
        /// The URL.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// A thread or runtime could not be started.
    #[error("starting the runtime: {0}")]
    Runtime(#[source] io::Error),
    /// The result could not be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
}

/// Runs the command line and prints the result; fails where no undamaged reply came or no rate was found.
///
/// Blocks until the run is over; acts in the network namespace of the calling thread.
///
/// # Errors
/// When nothing could be sent, or something that was asked for could not be done.
pub fn run(args: &Args) -> Result<Exit, BlastError> {
    config::target::check(args.target, &args.allow)?;
    let plan = plan(args)?;
    let live = Arc::new(Live::default());
    let _stopper = stop_on_interrupt(Arc::clone(&live))?;
    let setup = Setup::of(&plan, args.link_speed);
    if args.find_max {
        let report = find_max(args, &plan, setup, &live)?;
        print_result(args.json, &report)?;
        Ok(Exit::of(report.found.rate.is_some()))
    } else {
        let report = blast(args, &plan, setup, &live)?;
        print_result(args.json, &report)?;
        Ok(Exit::of(report.received > 0))
    }
}

/// Evaluates the command line.
fn plan(args: &Args) -> Result<Plan, BlastError> {
    for (option, time) in [("wait", args.wait), ("trial", args.trial)] {
        if time.is_zero() {
            return Err(BlastError::NoTime { option });
        }
    }
    if args.duration.is_some_and(|duration| duration.is_zero()) {
        return Err(BlastError::NoTime { option: "duration" });
    }
    let target = args.target;
    let path = in_runtime(move || route::find(target))??;
    let sizes = plan::sizes(target, path.mtu);
    let size = args.size.unwrap_or(sizes.least);
    if !(sizes.least..=sizes.most).contains(&size) {
        let (least, most) = (sizes.least, sizes.most);
        return Err(BlastError::Size { size, interface: path.name, least, most });
    }
    let rate = match args.rate {
        None => Some(DEFAULT_RATE),
        Some(Rate::PerSecond(rate)) => Some(rate),
        Some(Rate::Max) => None,
    };
    let total = total(args.count.map(u64::from), rate, args.duration)?;
    let next_mac = match args.engine {
        Kind::Raw => wire::Mac::default(),
        Kind::Packet | Kind::Live if path.loopback => {
            return Err(BlastError::Loopback { target });
        }
        Kind::Packet | Kind::Live => route::resolve(&path)?,
    };
    let payload = probe::payload(rand::random(), plan::payload_len(target, size));
    let plan = Plan {
        target,
        path,
        next_mac,
        engine: args.engine,
        total,
        rate,
        deadline: args.duration.filter(|_| rate.is_none()),
        threads: args.threads.min(u32::try_from(total).unwrap_or(u32::MAX)),
        frame: size - line::FCS,
        ttl: TTL,
        wait: args.wait,
        base: rand::random(),
        payload,
    };
    if plan.engine == Kind::Raw {
        engine::learn(&plan)?;
    }
    Ok(plan)
}

/// Packets a second where none are asked for.
const DEFAULT_RATE: u64 = 1000;
/// Packets where neither count nor time is given.
const DEFAULT_COUNT: u64 = 1000;

/// Packets of a run: bounded by count, by rate and time, or by what can be held.
fn total(
    count: Option<u64>,
    rate: Option<u64>,
    duration: Option<Duration>,
) -> Result<u64, BlastError> {
    let timed = match (rate, duration) {
        (Some(rate), Some(duration)) => {
            let packets = duration.as_nanos() * u128::from(rate) / 1_000_000_000;
            Some(u64::try_from(packets).unwrap_or(u64::MAX).max(1))
        }
        (None, Some(_)) => Some(MAX_TOTAL),
        (_, None) => None,
    };
    let packets = match (count, timed) {
        (Some(count), Some(timed)) => count.min(timed),
        (Some(packets), None) | (None, Some(packets)) => packets,
        (None, None) => DEFAULT_COUNT,
    };
    if packets > MAX_TOTAL { Err(BlastError::TooMany { packets }) } else { Ok(packets) }
}

/// A single run, with the responder's ledger before and after if that is asked for.
fn blast(args: &Args, plan: &Plan, setup: Setup, live: &Arc<Live>) -> Result<Report, BlastError> {
    let before = args.peer.as_deref().map(|peer| ledger(peer, plan.target)).transpose()?;
    let bar = progress(plan.total, String::new());
    let outcome = watched(plan, live, &bar)?;
    bar.finish_and_clear();
    let mut report = Report::new(setup, plan.rate, &outcome);
    if let (Some(peer), Some(before)) = (&args.peer, before) {
        match ledger(peer, plan.target) {
            Ok(after) => report.loss = Some(Loss::find(&outcome, &before, &after)),
            Err(error) => report.peer_error = Some(error.to_string()),
        }
    }
    Ok(report)
}

/// The search for the highest rate without loss.
fn find_max(
    args: &Args,
    plan: &Plan,
    setup: Setup,
    live: &Arc<Live>,
) -> Result<SearchReport, BlastError> {
    let ceiling = match args.rate {
        Some(Rate::PerSecond(rate)) => rate,
        None | Some(Rate::Max) => setup.line_rate as u64,
    };
    let mut search = Search::new(ceiling);
    let (mut trials, mut peer_error) = (Vec::new(), None);
    while let Some(rate) = search.next_rate() {
        let total = total(None, Some(rate), Some(args.trial))?;
        let base = rand::random();
        // A sender that is slower than requested still stops in time.
        let deadline = Some(args.trial);
        let trial = Plan { rate: Some(rate), total, base, deadline, ..plan.clone() };
        // A responder that does not answer before the first trial is an error, later it is reported.
        let before = match (&args.peer, &peer_error) {
            (Some(peer), None) => match ledger(peer, plan.target) {
                Ok(count) => Some(count),
                Err(error) if trials.is_empty() => return Err(error),
                Err(error) => {
                    peer_error = Some(error.to_string());
                    None
                }
            },
            _ => None,
        };
        let bar = progress(total, format!("trial {} at {rate}/s: ", trials.len() + 1));
        let outcome = watched(&trial, live, &bar)?;
        bar.finish_and_clear();
        if outcome.interrupted {
            break;
        }
        let lost = outcome.requests.made.saturating_sub(outcome.replies.received);
        let step =
            Step { rate, offered: offered(&outcome, rate), sent: outcome.requests.sent, lost };
        let mut loss = None;
        if let (Some(peer), Some(before)) = (&args.peer, before) {
            match ledger(peer, plan.target) {
                Ok(after) => loss = Some(Loss::find(&outcome, &before, &after)),
                Err(error) => peer_error = Some(error.to_string()),
            }
        }
        trials.push(Trial { step, loss });
        search.record(&step);
        if search.next_rate().is_some() && !sleep_unless_stopped(args.settle, live) {
            break;
        }
    }
    let interrupted = live.stop.load(Relaxed);
    Ok(SearchReport::new(setup, trials, search.found(), peer_error, interrupted))
}

/// The rate of a trial; that asked for where a single packet has none.
fn offered(outcome: &Outcome, rate: u64) -> f64 {
    if outcome.requests.made < 2 { rate as f64 } else { outcome.rate() }
}

/// Rests between trials; false if the run is to stop.
fn sleep_unless_stopped(time: Duration, live: &Live) -> bool {
    let end = Instant::now() + time;
    while !live.stop.load(Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(engine::nap(left));
    }
    false
}

/// Runs a plan while the progress is shown.
fn watched(plan: &Plan, live: &Live, bar: &ProgressBar) -> Result<Outcome, BlastError> {
    live.sent.store(0, Relaxed);
    live.received.store(0, Relaxed);
    thread::scope(|scope| {
        let running = scope.spawn(|| match plan.engine {
            Kind::Raw | Kind::Packet => engine::run(plan, live),
            Kind::Live => live::run(plan, live),
        });
        while !bar.is_hidden() && !running.is_finished() {
            let (sent, received) = (live.sent.load(Relaxed), live.received.load(Relaxed));
            bar.set_position(sent);
            bar.set_message(answered(received));
            thread::sleep(Duration::from_millis(100));
        }
        join(running)
    })
}

/// The text of a progress bar on the replies.
fn answered(replies: u64) -> String {
    format!("{replies} answered")
}

/// A progress bar on stderr, if that is a terminal; `label` is in front of it.
fn progress(total: u64, label: String) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = "{prefix}{bar:40} {human_pos}/{human_len} sent, {msg}, {per_sec}, {eta} left";
    // Everything that it shows is set before it is first drawn.
    styled(ProgressBar::new(total), template).with_prefix(label).with_message(answered(0))
}

/// The responder's counters for an address.
fn ledger(peer: &str, target: IpAddr) -> Result<Count, BlastError> {
    let url = format!("{}/api/v1/echo/ledger", peer.trim_end_matches('/'));
    let wrong = |reason: String| BlastError::Peer { url: url.clone(), reason };
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(5)));
    let agent = ureq::Agent::new_with_config(config.build());
    let mut answer = agent.get(&url).call().map_err(|error| wrong(error.to_string()))?;
    let ledger: LedgerStatus =
        answer.body_mut().read_json().map_err(|error| wrong(error.to_string()))?;
    if !ledger.counted {
        return Err(wrong(
            "the responder's kernel answers by itself and counts nothing".to_owned(),
        ));
    }
    let row = ledger.rows.into_iter().find(|row| row.address == target);
    row.map(|row| row.count).ok_or_else(|| wrong(format!("it has no row for {target}")))
}

/// Runs a future to its end on a thread of its own, as the caller may be in a runtime already.
fn in_runtime<F, T>(future: impl FnOnce() -> F + Send) -> Result<T, BlastError>
where
    F: Future<Output = T>,
    T: Send,
{
    thread::scope(|scope| {
        join(scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(BlastError::Runtime)?;
            Ok(runtime.block_on(future()))
        }))
    })
}

/// Sets the flag that ends a run at Ctrl-C, until what is returned is dropped.
fn stop_on_interrupt(live: Arc<Live>) -> Result<oneshot::Sender<()>, BlastError> {
    let (done, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BlastError::Runtime)?;
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => live.stop.store(true, Relaxed),
                _ = ended => {}
            }
        });
    });
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_is_bounded() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(total(None, Some(5000), None).unwrap(), DEFAULT_COUNT);
        assert_eq!(total(None, None, None).unwrap(), DEFAULT_COUNT);
        assert_eq!(total(Some(7), Some(5000), None).unwrap(), 7);
        assert_eq!(total(None, Some(5000), seconds(3)).unwrap(), 15_000);
        assert_eq!(total(Some(7), Some(5000), seconds(3)).unwrap(), 7);
        assert_eq!(total(Some(70_000), Some(5000), seconds(3)).unwrap(), 15_000);
        assert_eq!(total(None, None, seconds(3)).unwrap(), MAX_TOTAL);
        assert_eq!(total(Some(7), None, seconds(3)).unwrap(), 7);
        assert!(total(Some(MAX_TOTAL + 1), None, None).is_err());
        assert!(total(None, Some(1_000_000_000), seconds(1_000_000_000_000)).is_err());
    }
}
