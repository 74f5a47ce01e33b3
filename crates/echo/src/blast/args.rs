//! The command line of `nigh blast`.

use std::{net::IpAddr, num::NonZeroU64, str::FromStr, time::Duration};

use clap::Args as ClapArgs;
use ipnet::IpNet;

use super::{line, plan::Kind};

/// Examples and notes, shown below the options.
const AFTER_HELP: &str = "\
With --peer, the HTTP address of the responder, blast reports where requests were lost: \
not sent, lost on the forward path, dropped at the responder (with its reason), lost on the reverse path. \
A responder limits each source prefix to 100 a second by default: raise it with \
`nigh echo limit` for a load test, or read `source_limit` among its drops; with \
--peer, --find-max names the limit that it found.

The exit code is 0 if at least one intact reply was received, else 1.

Examples:
  nigh blast 192.0.2.1
  nigh blast 192.0.2.1 --rate 20000 --duration 10s --peer http://192.0.2.1:9160
  nigh blast 50.50.50.50 --allow 50.0.0.0/8 --engine live --rate max --count 1000000
  nigh blast 2001:db8::1 --engine live --find-max --link-speed 10Gbit --json";

/// Arguments of `nigh blast`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Address to send echo requests to
    #[arg(value_name = "ADDRESS")]
    pub target: IpAddr,
    /// Requests to send [default: 1000, or what --duration allows]
    #[arg(short = 'n', long, value_name = "PACKETS", conflicts_with = "find_max")]
    pub count: Option<NonZeroU64>,
    /// Requests a second, or `max` for as fast as the engine can [default: 1000]; with --find-max the
    /// highest rate to try [default: what the link can carry]
    #[arg(short, long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// Time to send for, such as 10s or 2m; with --count, whichever ends first
    #[arg(short, long, value_name = "TIME", value_parser = config::duration,
          conflicts_with = "find_max")]
    pub duration: Option<Duration>,
    /// Bytes of a frame, Ethernet header and check sequence included, as RFC 2544 counts them
    /// [default: 64, or 82 for IPv6]
    #[arg(short, long, value_name = "BYTES", value_parser = config::bytes::<usize>(0..=u64::MAX))]
    pub size: Option<usize>,
    /// Threads that send
    #[arg(short, long, value_name = "THREADS", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,
    /// How packets go out and come in
    #[arg(short, long, value_enum, value_name = "ENGINE", default_value = "raw")]
    pub engine: Kind,
    /// How long to wait for the last replies
    #[arg(short, long, value_name = "TIME", default_value = "1s",
          value_parser = config::duration)]
    pub wait: Duration,
    /// Allow targets in this prefix, in addition to loopback, private and documentation space; repeatable
    #[arg(long, value_name = "PREFIX")]
    pub allow: Vec<IpNet>,
    /// HTTP address of the responder, whose counters show where packets were lost
    #[arg(long, value_name = "URL")]
    pub peer: Option<String>,
    /// Search for the highest rate without loss (RFC 2544, section 26.1)
    #[arg(long)]
    pub find_max: bool,
    /// Time that each trial of --find-max sends for; RFC 2544 asks for 60s
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "find_max",
          value_parser = config::duration)]
    pub trial: Duration,
    /// Rest between two trials of --find-max; RFC 2544 asks for 5s
    #[arg(long, value_name = "TIME", default_value = "500ms", requires = "find_max",
          value_parser = config::duration)]
    pub settle: Duration,
    /// Speed of the link such as 1Gbit, to report the share of it that was used
    #[arg(long, value_name = "SPEED", default_value = "1Gbit", value_parser = line::parse_speed)]
    pub link_speed: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// A rate on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Packets a second.
    PerSecond(u64),
    /// As fast as the engine can.
    Max,
}

/// The highest rate: a packet each nanosecond.
const MAX_RATE: u64 = 1_000_000_000;

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse() {
            Ok(rate) if (1..=MAX_RATE).contains(&rate) => Ok(Self::PerSecond(rate)),
            _ => Err(format!("write packets a second, 1 to {MAX_RATE}, or `max`")),
        }
    }
}
