//! `nigh oracle load`: many clients that wait for their answers (*The P2P-Oracle Server*, sections
//! 4.9.1 and 5.3.1).
//!
//! Each client is a thread with a socket of its own. After a reply, or after the timeout without one,
//! it waits the delay and asks again. So with `c` clients the rate lies between `c / (timeout + delay)`
//! when everything is lost and `c / (round trip + delay)`: an overloaded server gets fewer requests.

use super::{
    ClientError, RandomArgs, Server, check_target,
    exchange::Exchange,
    interrupt::Interrupt,
    questions::Questions,
    summary::{Summary, Tally, Times},
};
use comfy_table::{Cell, CellAlignment, Table, presets};
use ipnet::IpNet;
use job::command::{Exit, print_result};
use serde::Serialize;
use std::{
    fmt,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
use terminal::progress::{ProgressBar, styled};

/// Clients that are shown one by one.
const SHOWN: usize = 16;
/// A client's stack: its buffers are on the heap.
const STACK: usize = 128 << 10;

/// Arguments of `nigh oracle load`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The exit code is 0 if at least one ranking was received, else 1.

Examples:
  nigh oracle load --clients 20 --count 1000
  nigh oracle load --server 192.0.2.53 --clients 750 --delay 5ms --timeout 50ms --count 2500 \\
      --sync-start --sync-stop")]
pub struct Args {
    /// Which oracle is asked, and for how much.
    #[command(flatten)]
    pub random: RandomArgs,
    /// Clients at the same time, each with its own socket
    #[arg(long, value_name = "CLIENTS", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub clients: u16,
    /// Requests of each client
    #[arg(short = 'n', long, value_name = "REQUESTS", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Time between a reply and the next request
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = config::duration)]
    pub delay: Duration,
    /// How long to wait for a reply
    #[arg(short, long, value_name = "TIME", default_value = "500ms",
          value_parser = config::duration)]
    pub timeout: Duration,
    /// All clients begin at the same moment
    #[arg(long)]
    pub sync_start: bool,
    /// End all clients when the first has sent its requests
    #[arg(long)]
    pub sync_stop: bool,
    /// End after this time, even if requests are left to send
    #[arg(short, long, value_name = "TIME", default_value = "60s",
          value_parser = config::duration)]
    pub duration: Duration,
    /// The old name of `--duration`, refused
    #[arg(long, hide = true, value_parser = config::renamed_flag("--duration"))]
    pub limit: Option<String>,
    /// Allow servers in this prefix, besides loopback, private and documentation space; repeatable
    #[arg(long, value_name = "PREFIX")]
    pub allow: Vec<IpNet>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// What all clients saw.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Who was asked.
    pub server: String,
    /// Addresses in each request.
    pub candidates: u16,
    /// From the first request to the last answer, in seconds.
    pub seconds: f64,
    /// Rankings a second, of all clients.
    pub replies_per_second: f64,
    /// All clients together.
    pub total: Summary,
    /// Each client.
    pub clients: Vec<Summary>,
}

/// What the clients share.
struct Shared<'a> {
    args: &'a Args,
    server: &'a Server,
    start: Barrier,
    stop: AtomicBool,
    done: AtomicU64,
    interrupt: &'a Interrupt,
}

/// Runs the clients and prints the table.
///
/// # Errors
/// See [`ClientError`]; a lost request is none.
pub fn run(args: &Args) -> Result<Exit, ClientError> {
    let report = load(args)?;
    print_result(args.json, &report)?;
    Ok(Exit::of(report.total.replies > 0))
}

/// Runs the clients.
///
/// # Errors
/// See [`run`].
pub fn load(args: &Args) -> Result<Report, ClientError> {
    let server = args.random.server.server()?;
    check_target(&server, &args.allow)?;
    let interrupt = Interrupt::listen()?;
    let mut ready = Vec::new();
    for _ in 0..args.clients {
        let questions = args.random.questions(&server)?;
        ready.push((questions, Exchange::open(&server)?));
    }
    let parties = if args.sync_start { ready.len() + 1 } else { 1 };
    let shared = Shared {
        args,
        server: &server,
        start: Barrier::new(parties),
        stop: AtomicBool::new(false),
        done: AtomicU64::new(0),
        interrupt: &interrupt,
    };
    let bar = progress(args);
    let (tallies, elapsed) = thread::scope(|scope| {
        let (shared, mut clients) = (&shared, Vec::new());
        for (questions, exchange) in ready {
            let client = move || client(shared, questions, exchange);
            clients.push(thread::Builder::new().stack_size(STACK).spawn_scoped(scope, client));
        }
        // Clients that could not be started must not keep the others waiting.
        let missing = clients.iter().filter(|client| client.is_err()).count();
        if args.sync_start {
            thread::scope(|waiting| {
                for _ in 0..missing {
                    waiting.spawn(|| shared.start.wait());
                }
                shared.start.wait();
            });
        }
        let begin = Instant::now();
        watch(shared, &bar, begin, clients.len() - missing, &clients);
        let tallies: Result<Vec<_>, ClientError> = clients
            .into_iter()
            .map(|client| client?.join().map_err(|_| std::io::Error::other("a client died"))?)
            .collect();
        (tallies, begin.elapsed())
    });
    bar.finish_and_clear();
    let tallies = tallies?;
    let mut total = Tally::default();
    tallies.iter().for_each(|tally| total.add(tally));
    let seconds = elapsed.as_secs_f64();
    Ok(Report {
        server: shared.server.address.to_string(),
        candidates: args.random.candidates,
        seconds,
        replies_per_second: total.replies as f64 / seconds,
        total: total.summary(),
        clients: tallies.iter().map(Tally::summary).collect(),
    })
}

type Client<'scope> = std::io::Result<thread::ScopedJoinHandle<'scope, Result<Tally, ClientError>>>;

/// Shows progress and stops all clients when the time is over.
fn watch(
    shared: &Shared<'_>,
    bar: &ProgressBar,
    begin: Instant,
    started: usize,
    clients: &[Client<'_>],
) {
    if started < clients.len() {
        shared.stop.store(true, Relaxed);
    }
    let running = |client: &Client<'_>| client.as_ref().is_ok_and(|client| !client.is_finished());
    while clients.iter().any(running) {
        bar.set_position(shared.done.load(Relaxed));
        if begin.elapsed() >= shared.args.duration || shared.interrupt.pressed() {
            shared.stop.store(true, Relaxed);
        }
        thread::park_timeout(Duration::from_millis(10));
    }
}

/// One client, to its end.
fn client(
    shared: &Shared<'_>,
    mut questions: Questions,
    mut exchange: Exchange,
) -> Result<Tally, ClientError> {
    let args = shared.args;
    if args.sync_start {
        shared.start.wait();
    }
    let (mut tally, base) = (Tally::default(), rand::random::<u32>());
    for number in 0..args.count {
        if shared.stop.load(Relaxed) {
            return Ok(tally);
        }
        let request = questions.next(base.wrapping_add(number as u32));
        tally.count(exchange.ask(request, args.timeout)?.as_ref());
        shared.done.fetch_add(1, Relaxed);
        if !args.delay.is_zero() {
            thread::sleep(args.delay);
        }
    }
    if args.sync_stop {
        shared.stop.store(true, Relaxed);
    }
    Ok(tally)
}

fn progress(args: &Args) -> ProgressBar {
    if args.json {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(u64::from(args.clients) * args.count);
    styled(bar, "{bar:30} {human_pos}/{human_len} requests, {per_sec}, {eta} left")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let heads = [
            "client", "sent", "replies", "errors", "lost", "min", "mean", "dev", "p50", "p90",
            "p99", "max ms",
        ];
        table.set_header(heads.map(|head| Cell::new(head).set_alignment(CellAlignment::Right)));
        for (number, client) in self.clients.iter().enumerate().take(SHOWN) {
            table.add_row(row(&(number + 1).to_string(), client));
        }
        let hidden = self.clients.len().saturating_sub(SHOWN);
        if hidden > 0 {
            table.add_row([Cell::new(format!("... {hidden} more"))]);
        }
        table.add_row(row("all", &self.total));
        writeln!(f, "{}", table.trim_fmt())?;
        writeln!(
            f,
            "\n{} candidates a request: {:.0} replies a second over {:.2} s, {:.1}% lost",
            self.candidates,
            self.replies_per_second,
            self.seconds,
            self.total.loss(),
        )?;
        match self.total.lost {
            0 => Ok(()),
            lost => writeln!(f, "no reply to {lost} requests: {}", super::NO_REPLY),
        }
    }
}

fn row(name: &str, summary: &Summary) -> Vec<Cell> {
    let times = summary.rtt_ms;
    let counts =
        [summary.sent, summary.replies, summary.errors, summary.lost].map(|n| n.to_string());
    let times = times.map_or([const { String::new() }; 7], |times| {
        let Times { min, mean, deviation, p50, p90, p99, max } = times;
        [min, mean, deviation, p50, p90, p99, max].map(|ms| format!("{ms:.3}"))
    });
    let texts = std::iter::once(name.to_owned()).chain(counts).chain(times);
    texts.map(|text| Cell::new(text).set_alignment(CellAlignment::Right)).collect()
}
