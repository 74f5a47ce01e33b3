//! `nigh oracle flood`: requests without waiting for replies, to see what a server does under them.

use super::{ClientError, RandomArgs, check_target, connect, interrupt::Interrupt};
use ipnet::IpNet;
use job::command::{Exit, print_result};
use serde::Serialize;
use std::{
    fmt,
    io::ErrorKind,
    num::NonZeroU64,
    thread,
    time::{Duration, Instant},
};

/// Requests between two readings of the clock.
const BATCH: u64 = 32;

/// Arguments of `nigh oracle flood`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nigh oracle flood --duration 5s
  nigh oracle flood --server 192.0.2.53 --rate 20000 --candidates 363 --duration 10s")]
pub struct Args {
    /// Which oracle is asked, and for how much.
    #[command(flatten)]
    pub random: RandomArgs,
    /// Requests a second [default: as many as this machine can send]
    #[arg(short, long, value_name = "REQUESTS")]
    pub rate: Option<NonZeroU64>,
    /// The old name of `--rate`, refused
    #[arg(long, hide = true, value_parser = config::renamed_flag("--rate"))]
    pub persec: Option<String>,
    /// How long to send
    #[arg(short, long, value_name = "TIME", default_value = "10s",
          value_parser = config::duration)]
    pub duration: Duration,
    /// Allow servers in this prefix, besides loopback, private and documentation space; repeatable
    #[arg(long, value_name = "PREFIX")]
    pub allow: Vec<IpNet>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// What was sent. Replies are not waited for, but what arrived meanwhile is counted.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Who was asked.
    pub server: String,
    /// Addresses in each request.
    pub candidates: u16,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Requests sent.
    pub sent: u64,
    /// Requests that the system refused.
    pub refused: u64,
    /// Datagrams that were received while sending; the system discards what is not read in time.
    pub seen: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} requests of {} candidates sent to {} in {:.2} s: {:.0} a second; at least {} replies were received",
            self.sent,
            self.candidates,
            self.server,
            self.seconds,
            self.sent as f64 / self.seconds,
            self.seen,
        )?;
        if self.refused > 0 {
            writeln!(f, "{} more were refused by this machine's network stack", self.refused)?;
        }
        Ok(())
    }
}

/// Sends for the time given and prints how much.
///
/// # Errors
/// See [`ClientError`].
pub fn run(args: &Args) -> Result<Exit, ClientError> {
    let report = flood(args)?;
    print_result(args.json, &report)?;
    Ok(Exit::of(report.sent > 0))
}

/// Sends for the time given.
///
/// # Errors
/// See [`ClientError`].
pub fn flood(args: &Args) -> Result<Report, ClientError> {
    let server = args.random.server.server()?;
    check_target(&server, &args.allow)?;
    let interrupt = Interrupt::listen()?;
    let mut questions = args.random.questions(&server)?;
    let failed = |source| ClientError::Socket { server: server.address, source };
    let socket = connect(&server)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let mut report = Report {
        server: server.address.to_string(),
        candidates: args.random.candidates,
        seconds: 0.0,
        sent: 0,
        refused: 0,
        seen: 0,
    };
    let (begin, mut identification) = (Instant::now(), 0u32);
    loop {
        let elapsed = begin.elapsed();
        if elapsed >= args.duration || interrupt.pressed() {
            break;
        }
        let asked = report.sent + report.refused;
        let due = args.rate.map_or(BATCH, |rate| {
            let due = elapsed.as_nanos() * u128::from(rate.get()) / 1_000_000_000 + 1;
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(asked).min(BATCH)
        });
        if due == 0 {
            thread::sleep(Duration::from_micros(50));
        }
        for _ in 0..due {
            identification = identification.wrapping_add(1);
            match socket.send(questions.next(identification)) {
                Ok(_) => report.sent += 1,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::ConnectionRefused => report.refused += 1,
                    ErrorKind::Interrupted => {}
                    _ if error.raw_os_error() == Some(nix::libc::ENOBUFS) => report.refused += 1,
                    _ => return Err(failed(error)),
                },
            }
        }
        // A byte of each is enough to count it.
        for _ in 0..2 * BATCH {
            if socket.recv(&mut [0; 1]).is_err() {
                break;
            }
            report.seen += 1;
        }
    }
    report.seconds = begin.elapsed().as_secs_f64();
    Ok(report)
}
