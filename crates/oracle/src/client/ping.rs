//! `nigh oracle ping`: reads like ping, with rankings for echoes.

use super::{
    ClientError, RandomArgs,
    exchange::{Answer, Exchange},
    interrupt::Interrupt,
    summary::{Summary, Tally},
};
use job::command::{Exit, print};
use serde::Serialize;
use std::{
    num::NonZeroU64,
    thread,
    time::{Duration, Instant},
};

/// Arguments of `nigh oracle ping`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The exit code is 0 if at least one ranking was received, else 1.

Examples:
  nigh oracle ping
  nigh oracle ping --server 192.0.2.53 --count 5 --candidates 363")]
pub struct Args {
    /// Which oracle is asked, and for how much.
    #[command(flatten)]
    pub random: RandomArgs,
    /// Requests to send [default: until Ctrl-C]
    #[arg(short = 'n', long, value_name = "REQUESTS")]
    pub count: Option<NonZeroU64>,
    /// Time between two requests
    #[arg(short, long, value_name = "TIME", default_value = "1s",
          value_parser = config::duration)]
    pub interval: Duration,
    /// How long to wait for each reply
    #[arg(short, long, value_name = "TIME", default_value = "500ms",
          value_parser = config::duration)]
    pub timeout: Duration,
    /// Print one JSON object a line: each reply, then the summary
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Line {
    sequence: u64,
    /// `lost` when no reply came.
    result: &'static str,
    bytes: Option<usize>,
    rtt_ms: Option<f64>,
}

/// Asks until the count is reached or Ctrl-C is pressed, then prints the summary.
///
/// # Errors
/// See [`ClientError`]; a lost request is none.
pub fn run(args: &Args) -> Result<Exit, ClientError> {
    let server = args.random.server.server()?;
    let interrupt = Interrupt::listen()?;
    let mut questions = args.random.questions(&server)?;
    let mut exchange = Exchange::open(&server)?;
    if !args.json {
        print(&format!(
            "PROXIDOR {} ({}): {} candidates, {} bytes of data\n",
            args.random.server.server,
            server.address,
            args.random.candidates,
            questions.bytes(),
        ))?;
    }
    let (begin, mut tally, base) = (Instant::now(), Tally::default(), rand::random::<u32>());
    let count = args.count.map_or(u64::MAX, u64::from);
    for sequence in 1..=count {
        let sent = Instant::now();
        let request = questions.next(base.wrapping_add(sequence as u32));
        let answer = exchange.ask(request, args.timeout)?;
        tally.count(answer.as_ref());
        print(&line(args, &server.address.ip().to_string(), sequence, answer.as_ref()))?;
        if sequence < count {
            wait(&interrupt, args.interval.saturating_sub(sent.elapsed()));
        }
        if interrupt.pressed() {
            break;
        }
    }
    print(&summarize(args, &tally.summary(), begin.elapsed()))?;
    Ok(Exit::of(tally.replies > 0))
}

/// Waits until the time is over or Ctrl-C is pressed.
fn wait(interrupt: &Interrupt, time: Duration) {
    let end = Instant::now() + time;
    while !interrupt.pressed() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(Duration::from_millis(20)));
    }
}

fn line(args: &Args, server: &str, sequence: u64, answer: Option<&Answer>) -> String {
    let time = answer.map(|answer| answer.round_trip.as_secs_f64() * 1e3);
    let result = answer.map_or("lost", |answer| answer.reply.header.rcode.name());
    if args.json {
        let bytes = answer.map(|answer| answer.bytes);
        let line = Line { sequence, result, bytes, rtt_ms: time };
        return serde_json::to_string(&line).unwrap_or_default() + "\n";
    }
    match answer {
        None => format!("no reply from {server}: seq={sequence}\n"),
        Some(Answer { reply, bytes, .. }) => {
            let time = time.unwrap_or_default();
            let ttl = reply.header.ttl;
            let note = match reply.header.rcode.has_ranking() {
                true => String::new(),
                false => format!(" {result}"),
            };
            format!(
                "{bytes} bytes from {server}: seq={sequence} ttl={ttl} time={time:.3} ms{note}\n"
            )
        }
    }
}

fn summarize(args: &Args, summary: &Summary, elapsed: Duration) -> String {
    if args.json {
        return serde_json::to_string(summary).unwrap_or_default() + "\n";
    }
    let Summary { sent, replies, errors, .. } = summary;
    let errors = if *errors > 0 { format!(", {errors} errors") } else { String::new() };
    let mut text = format!(
        "\n--- {} oracle statistics ---\n\
         {sent} requests sent, {replies} rankings received{errors}, {:.0}% loss, time {} ms\n",
        args.random.server.server,
        summary.loss(),
        elapsed.as_millis(),
    );
    if summary.lost > 0 {
        text += &format!("no reply to {}: {}\n", summary.lost, super::NO_REPLY);
    }
    if let Some(times) = &summary.rtt_ms {
        text += &format!(
            "rtt min/avg/max/mdev = {:.3}/{:.3}/{:.3}/{:.3} ms\n",
            times.min, times.mean, times.max, times.deviation
        );
    }
    text
}
