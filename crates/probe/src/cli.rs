//! The sub-commands of `nigh probe`: requests over the control socket, and what reads the archive.

use crate::{
    archive::ExportArgs,
    config::{Config, Family, Transport, What},
    control::{ON_REQUEST, Order, Request},
    record::{Bounded, Figures, Kind, Record, Series},
    show::cli::ShowArgs,
    status::{Status, duration},
};
use clap::{Args, Subcommand};
use config::Bandwidth;
use job::command::{AnswerError, ControlCommand, Exit, read};
use serde_json::Value;
use std::{
    any::Any,
    fmt::Write,
    io::{IsTerminal, stderr},
    time::Duration,
};
use terminal::progress::{ProgressBar, styled};

/// `nigh probe ...`
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// A request to the daemon over its control socket.
    #[command(flatten)]
    Operation(Operation),
    /// Show measurements: delay and throughput over time, the mesh, clocks, traces
    ///
    /// Reads the archive directly, so it also works without a daemon.
    #[command(
        after_help = "Examples:\n  nigh probe show mesh\n  nigh probe show delay --from prague --to brno --since 6h\n  nigh probe show delay --svg delay.svg"
    )]
    Show(ShowArgs),
    /// Write measurements into Parquet files, one a day and kind
    ///
    /// Reads the archive directly, so it also works without a daemon; today is written up to now. An
    /// existing file is never overwritten. `[probe.archive.parquet]` lets the daemon write each day
    /// when it is over.
    #[command(
        after_help = "Examples:\n  nigh probe export /srv/measurements\n  nigh probe export /tmp/january --day 2026-01-30 --day 2026-01-31"
    )]
    Export(ExportArgs),
}

/// The request to the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Operation {
    /// Measure something now, and print the result
    ///
    /// The test has the same limits as scheduled tests and waits until it conflicts with none of them; the
    /// result is also in the archive, as test `request`.
    #[command(subcommand_required = true, arg_required_else_help = true)]
    #[command(
        after_help = "Examples:\n  nigh probe run owd brno\n  nigh probe run throughput brno --duration 20s --json"
    )]
    Run {
        /// What is measured.
        #[command(subcommand)]
        test: Test,
    },
}

/// `nigh probe run ...`
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Test {
    /// Measure one-way delay, loss, reordering and duplication, to a station or a STAMP reflector
    #[command(
        after_help = "Examples:\n  nigh probe run owd brno --duration 5s --rate 100\n  nigh probe run owd 192.0.2.7:862"
    )]
    Owd {
        /// A station, or an address of the allow list with or without a port
        #[arg(value_name = "STATION|ADDRESS")]
        to: String,
        /// How long packets are sent [default: 10s]
        #[arg(short, long, value_name = "TIME", value_parser = config::duration)]
        duration: Option<Duration>,
        /// The old name.
        #[command(flatten)]
        renamed: RenamedLength,
        /// Packets a second [default: 10]
        #[arg(short, long, value_name = "PACKETS")]
        rate: Option<u32>,
        /// Do not authenticate, so that the other station can reflect in the driver
        #[arg(long)]
        plain: bool,
        /// Which addresses are used.
        #[command(flatten)]
        family: FamilyArg,
    },
    /// Measure round trips of ICMP echo
    #[command(after_help = "Example:\n  nigh probe run ping brno --duration 5s")]
    Ping {
        /// A station, or an address of the allow list
        #[arg(value_name = "STATION|ADDRESS")]
        to: String,
        /// How long requests are sent [default: 2s]
        #[arg(short, long, value_name = "TIME", value_parser = config::duration)]
        duration: Option<Duration>,
        /// The old name.
        #[command(flatten)]
        renamed: RenamedLength,
        /// Requests a second [default: 5]
        #[arg(short, long, value_name = "PACKETS")]
        rate: Option<u32>,
        /// Which addresses are used.
        #[command(flatten)]
        family: FamilyArg,
    },
    /// Find the routers on the path, and the path's MTU
    #[command(after_help = "Example:\n  nigh probe run trace brno --family ipv6")]
    Trace {
        /// A station, or an address of the allow list
        #[arg(value_name = "STATION|ADDRESS")]
        to: String,
        /// Which addresses are used.
        #[command(flatten)]
        family: FamilyArg,
    },
    /// Measure the throughput to a station
    #[command(
        after_help = "Examples:\n  nigh probe run throughput brno --duration 20s\n  nigh probe run throughput brno --transport udp --bandwidth 100Mbit"
    )]
    Throughput {
        /// A station
        #[arg(value_name = "STATION")]
        to: String,
        /// How long data is sent [default: 10s]
        #[arg(short, long, value_name = "TIME", value_parser = config::duration)]
        duration: Option<Duration>,
        /// The old name.
        #[command(flatten)]
        renamed: RenamedLength,
        /// The transport
        #[arg(short, long, value_enum, default_value = "tcp")]
        transport: Transport,
        /// The old name.
        #[command(flatten)]
        renamed_means: RenamedMeans,
        /// The rate over UDP, such as 100Mbit
        #[arg(short, long, value_name = "RATE")]
        bandwidth: Option<Bandwidth>,
        /// Which addresses are used.
        #[command(flatten)]
        family: FamilyArg,
    },
    /// Measure the load time of a page
    #[command(after_help = "Example:\n  nigh probe run http https://www.example.com/")]
    Http {
        /// The page; its server's address must be on the allow list
        #[arg(value_name = "URL")]
        page: String,
    },
    /// Measure the response time of a name server
    #[command(after_help = "Example:\n  nigh probe run dns www.example.com@192.0.2.53")]
    Dns {
        /// The name, and the server to query for its addresses
        #[arg(value_name = "NAME@SERVER")]
        question: String,
    },
    /// Query the state of an NTP server's clock
    #[command(after_help = "Example:\n  nigh probe run clock 192.0.2.123")]
    Clock {
        /// The server: one of probe.clock, or on the allow list
        #[arg(value_name = "ADDRESS")]
        server: String,
    },
}

/// The old name of `--duration`, refused.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RenamedLength {
    #[arg(long, hide = true, value_parser = config::renamed_flag("--duration"))]
    length: Option<String>,
}

/// The old name of `--transport`, refused.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RenamedMeans {
    #[arg(long, hide = true, value_parser = config::renamed_flag("--transport"))]
    means: Option<String>,
}

/// Which addresses are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct FamilyArg {
    /// Address family of the station to use [default: that of its first address]
    #[arg(long, value_enum)]
    family: Option<Family>,
}

impl Test {
    /// What is asked for.
    pub fn order(&self) -> Order {
        let plain = |what, to: &String| Order {
            what,
            to: to.clone(),
            duration: None,
            rate: None,
            bandwidth: None,
            transport: Transport::Tcp,
            plain: false,
            family: None,
        };
        match self {
            Self::Owd { to, duration, rate, plain: unauthenticated, family, .. } => Order {
                duration: *duration,
                rate: *rate,
                plain: *unauthenticated,
                family: family.family,
                ..plain(What::Owd, to)
            },
            Self::Ping { to, duration, rate, family, .. } => Order {
                duration: *duration,
                rate: *rate,
                family: family.family,
                ..plain(What::Ping, to)
            },
            Self::Trace { to, family } => Order { family: family.family, ..plain(What::Trace, to) },
            Self::Throughput { to, duration, transport, bandwidth, family, .. } => Order {
                duration: *duration,
                transport: *transport,
                bandwidth: *bandwidth,
                family: family.family,
                ..plain(What::Throughput, to)
            },
            Self::Http { page } => plain(What::Http, page),
            Self::Dns { question } => plain(What::Dns, question),
            Self::Clock { server } => plain(What::Clock, server),
        }
    }
}

impl ControlCommand for Operation {
    type Request = Request;

    fn request(&self) -> Result<Request, job::Error> {
        let Self::Run { test } = self;
        Ok(Request::Run(test.order()))
    }

    fn render(&self, answer: &Value) -> Result<String, AnswerError> {
        Ok(render(&read(answer)?))
    }

    /// Fails where nothing was measured: the record says why.
    fn exit(&self, answer: &Value) -> Exit {
        Exit::of(answer["figures"]["kind"] != Kind::Failed.name())
    }

    fn progress(&self) -> Box<dyn Any> {
        let Self::Run { test } = self;
        if !stderr().is_terminal() {
            return Box::new(());
        }
        let order = test.order();
        let bar = styled(ProgressBar::new_spinner(), "{spinner} {msg} {elapsed_precise}");
        let takes = humantime::format_duration(order.takes());
        bar.set_message(format!("{} to {}, about {takes}:", order.what, order.to));
        bar.enable_steady_tick(Duration::from_millis(100));
        Box::new(Progress(bar))
    }
}

/// A line on the terminal; removed when dropped.
struct Progress(ProgressBar);

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The names of stations, for a shell: of the mesh in `configured`, else of those that the running
/// station asks something; `status` is its state.
pub fn stations(
    configured: Option<&Config>,
    status: impl FnOnce() -> Option<Value>,
) -> Vec<String> {
    if let Some(config) = configured {
        return config.probe.stations.iter().map(|station| station.name.clone()).collect();
    }
    let status = status().and_then(|it| serde_json::from_value::<Status>(it).ok());
    status.into_iter().flat_map(|status| status.peers).map(|peer| peer.name).collect()
}

/// The names of tests, for a shell: those in `configured`, else those of the running station, and that
/// of tests on request; `status` is its state.
pub fn test_names(
    configured: Option<&Config>,
    status: impl FnOnce() -> Option<Value>,
) -> Vec<String> {
    let mut names: Vec<String> = match configured {
        Some(config) => config.probe.tests.iter().map(|test| test.name.clone()).collect(),
        None => {
            let status = status().and_then(|it| serde_json::from_value::<Status>(it).ok());
            status.into_iter().flat_map(|status| status.tests).map(|run| run.test).collect()
        }
    };
    if !names.iter().any(|name| name == ON_REQUEST) {
        names.push(ON_REQUEST.to_owned());
    }
    names
}

/// A record as text for people.
pub fn render(record: &Record) -> String {
    let mut text = format!("{} to {}: ", record.from, record.to);
    // Writing to a string cannot fail.
    let _ = match &record.figures {
        Figures::Failed { reason } => writeln!(text, "nothing was measured: {reason}"),
        Figures::Delay(delay) => {
            let _ = writeln!(text, "delay");
            for (name, series) in [("forward", &delay.forward), ("reverse", &delay.reverse)] {
                if let Some(one) = series {
                    let _ = write!(text, "{}", series_text(name, one));
                }
            }
            write!(text, "{}", series_text("round trip", &delay.round_trip))
        }
        Figures::Ping(series) => write!(text, "ping\n{}", series_text("round trip", series)),
        Figures::Throughput(throughput) => {
            let mbit = throughput.bytes_per_second * 8.0 / 1e6;
            let _ = write!(text, "{mbit:.1} Mbit/s over {}", throughput.transport);
            match throughput.lost {
                Some((lost, sent)) => writeln!(text, ", {lost} of {sent} datagrams lost"),
                None => writeln!(text),
            }
        }
        Figures::Trace(trace) => {
            let reached = if trace.reached { "reached" } else { "not reached" };
            let hops = if trace.hops.len() == 1 { "hop" } else { "hops" };
            let _ = writeln!(text, "{reached} after {} {hops}", trace.hops.len());
            for (number, hop) in trace.hops.iter().enumerate() {
                let who = hop.address.map_or("*".to_owned(), |address| address.to_string());
                let times: Vec<String> =
                    hop.round_trips_ns.iter().map(|ns| duration(*ns)).collect();
                let answer = hop.answer.as_deref().unwrap_or_default();
                let _ =
                    writeln!(text, "  {:>2}  {who}  {}  {answer}", number + 1, times.join("  "));
            }
            match trace.mtu_bytes {
                Some(mtu) => writeln!(text, "  path MTU {mtu} bytes"),
                None => Ok(()),
            }
        }
        Figures::Http(http) => writeln!(
            text,
            "status {}, {} bytes: connected in {}, first byte in {}, whole in {}",
            http.status,
            http.bytes,
            duration(http.connect_ns),
            duration(http.first_byte_ns),
            duration(http.whole_ns),
        ),
        Figures::Dns(dns) => {
            writeln!(text, "{}, {} answers in {}", dns.code, dns.answers, duration(dns.took_ns))
        }
        Figures::Clock(clock) => {
            let offset = clock.offset_ns.map_or("unknown".to_owned(), signed);
            let error = clock.maximum_error_ns.map_or("unknown".to_owned(), duration);
            writeln!(text, "offset {offset}, maximum error {error} ({})", clock.source)
        }
    };
    text
}

fn series_text(name: &str, series: &Series) -> String {
    let mut text = format!(
        "  {name}: {} sent, {} lost, {} duplicated, {} reordered\n",
        series.sent, series.lost, series.duplicated, series.reordered
    );
    for (name, value) in [
        ("min", &series.minimum),
        ("median", &series.median),
        ("p95", &series.p95),
        ("p99", &series.p99),
        ("max", &series.maximum),
    ] {
        if let Some(value) = value {
            let _ = writeln!(text, "    {name:<7} {}", bounded(value));
        }
    }
    text
}

/// An estimate is never shown without the interval in which the true value lies.
fn bounded(value: &Bounded) -> String {
    let estimate = signed(value.estimate_ns);
    match (value.low_ns.map(signed), value.high_ns.map(signed)) {
        (Some(low), Some(high)) => format!("{estimate} (true value from {low} to {high})"),
        (Some(low), None) => format!("{estimate} (true value at least {low})"),
        (None, Some(high)) => format!("{estimate} (true value at most {high})"),
        (None, None) => format!("{estimate} (true value not bounded)"),
    }
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", duration(ns.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    #[test]
    fn old_options_are_refused_with_the_new_name() {
        for (line, new) in [
            ("probe run owd brno --length 5s", "--duration"),
            ("probe run ping brno --length 5s", "--duration"),
            ("probe run throughput brno --length=5s", "--duration"),
            ("probe run throughput brno --means udp", "--transport"),
            ("probe show delay --way forth", "--direction"),
        ] {
            let error = Line::try_parse_from(line.split(' ')).err().expect(line).to_string();
            assert!(error.contains(&format!("this option is now `{new}`")), "{line}: {error}");
        }
        let line = "probe run throughput brno --duration 5s --transport udp -b 9Mbit";
        let Line { command } = Line::try_parse_from(line.split(' ')).expect("it parses");
        let Command::Operation(operation) = command else { panic!("{command:?}") };
        let Request::Run(order) = operation.request().unwrap();
        assert_eq!(
            (order.duration, order.transport, order.bandwidth),
            (Some(Duration::from_secs(5)), Transport::Udp, Some(Bandwidth(9_000_000)))
        );
    }

    #[test]
    fn an_estimate_never_stands_alone() {
        let known =
            Bounded { estimate_ns: 1_500_000, low_ns: Some(-2000), high_ns: Some(3_000_000) };
        assert_eq!(bounded(&known), "1.5 ms (true value from -2.0 us to 3.0 ms)");
        let unknown = Bounded { estimate_ns: -5, low_ns: None, high_ns: None };
        assert_eq!(bounded(&unknown), "-5 ns (true value not bounded)");
    }

    #[test]
    fn what_failed_says_why() {
        let record = Record {
            at_ns: 0,
            lasted_ns: 0,
            from: "a".into(),
            to: "b".into(),
            test: "request".into(),
            figures: Figures::Failed { reason: "b refuses".into() },
        };
        assert_eq!(render(&record), "a to b: nothing was measured: b refuses\n");
    }
}
