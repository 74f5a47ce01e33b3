//! Throughput by the program iperf3, for who wants its figures or has no station at the other end.
//!
//! The program runs as a client, or as a server for one test, and writes JSON (`-J`); no shell is in
//! between. Its output is bounded and its time is: what does not end is killed and reaped. It has no
//! notion of admission, so a server takes whoever comes first.

use super::context::{Context, Forbidden, Refusal};
use crate::record::{Moment, Throughput};
use config::Problem;
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    process::Stdio,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    time::{sleep, timeout},
};

/// The program, found by PATH.
const PROGRAM: &str = "iperf3";
/// Longest test.
const LONGEST: Duration = Duration::from_secs(600);
/// Most connections side by side.
const MOST_STREAMS: u16 = 16;
/// Most bits a second that can be asked for.
const MOST_RATE: u64 = super::throughput::MOST_RATE;
/// Longest output that is read, in bytes; a test of 10 minutes with 16 connections has a tenth of it.
const LONGEST_OUTPUT: u64 = 32 << 20;
/// Time beside the test itself for starting, connecting and ending.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long a client tries to reach a server that is being started.
const START: Duration = Duration::from_secs(5);
/// Time between two tries.
const AGAIN: Duration = Duration::from_millis(100);
/// Longest complaint of the program that is shown, in characters.
const LONGEST_COMPLAINT: usize = 300;
/// Most moments of a test; of more, some are skipped.
const MOST_MOMENTS: usize = super::throughput::MOST_MOMENTS;

/// A test with iperf3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Datagrams instead of TCP.
    pub udp: bool,
    /// From the other end to this one.
    pub reverse: bool,
    /// How long data are sent, in whole seconds.
    #[serde(with = "humantime_serde")]
    pub duration: Duration,
    /// Most bits a second of all connections together, such as 100M; UDP needs it.
    pub rate: Option<u64>,
    /// Connections side by side.
    pub streams: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            udp: false,
            reverse: false,
            duration: Duration::from_secs(10),
            rate: None,
            streams: 1,
        }
    }
}

impl Settings {
    /// What is wrong with the values.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: &str| problems.push(Problem::new(key, message));
        if self.duration.is_zero() || self.duration > LONGEST || self.duration.subsec_nanos() != 0 {
            wrong("duration", "must be 1s to 10m in whole seconds");
        }
        match self.rate {
            None if self.udp => {
                wrong("rate", "UDP has no congestion control: give a rate");
            }
            Some(rate) if !(1000..=MOST_RATE).contains(&rate) => {
                wrong("rate", "must be 1k to 400G");
            }
            _ => {}
        }
        if self.streams == 0 || self.streams > MOST_STREAMS {
            wrong("streams", "must be 1 to 16");
        }
        problems
    }

    /// How long it takes at most.
    pub fn longest(&self) -> Duration {
        self.duration + TIMEOUT
    }

    /// The words for a client.
    fn words(&self, to: SocketAddr) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        add("-c", to.ip().to_string());
        add("-p", to.port().to_string());
        add("-t", self.duration.as_secs().to_string());
        add("-P", self.streams.to_string());
        // A list of at most some hundred moments.
        add("-i", (self.duration.as_secs() / 100).max(1).to_string());
        add("--connect-timeout", START.as_millis().to_string());
        if let Some(rate) = self.rate {
            // iperf3 means each connection.
            add("-b", (rate / u64::from(self.streams)).max(1).to_string());
        }
        words.extend(self.udp.then(|| "-u".to_owned()));
        words.extend(self.reverse.then(|| "-R".to_owned()));
        words
    }
}

/// Nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value is out of its limits.
    #[error("{0}")]
    Settings(Problem),
    /// The address did not agree.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The program is not there.
    #[error("there is no program iperf3: install it (Debian: apt-get install iperf3)")]
    Missing,
    /// The program cannot be run.
    #[error("running iperf3: {0}")]
    Run(io::Error),
    /// No port for a server.
    #[error("finding a free port of {address} for iperf3: {source}")]
    Port {
        /// The address.
        address: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The program did not end.
    #[error("iperf3 did not end within {limit:?} and was killed")]
    Timeout {
        /// How long was waited.
        limit: Duration,
    },
    /// The program says what is wrong.
    #[error("iperf3 reports: {0}")]
    Reported(String),
    /// What it wrote is not understood.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// What iperf3 wrote cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// It is no JSON, or not of the form that is known.
    #[error("iperf3's output is not understood: {0}")]
    Malformed(String),
    /// It is too long.
    #[error("iperf3's output has more than {LONGEST_OUTPUT} bytes")]
    TooLong,
    /// There are no figures in it.
    #[error("iperf3's output has no figures of a receiver")]
    Empty,
}

/// Does a test with a server of iperf3, which may still be starting.
///
/// # Errors
/// When the program is missing, does not end, or complains.
pub async fn run(
    to: SocketAddr,
    settings: &Settings,
    context: &Context,
) -> Result<Throughput, Error> {
    if let Some(problem) = settings.problems().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    context.check(to.ip())?;
    let begin = Instant::now();
    loop {
        let limit = settings.longest();
        let output = finish(start(&settings.words(to))?, limit).await?;
        match read(&output, settings.reverse, context) {
            Err(Error::Reported(words))
                if words.contains("Connection refused") && begin.elapsed() < START =>
            {
                sleep(AGAIN).await;
            }
            read => return read,
        }
    }
}

/// iperf3 as a server for one test.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    settings: Settings,
}

impl Server {
    /// Starts it at a free port of an address; it listens soon after.
    ///
    /// # Errors
    /// When the program is missing or cannot be run.
    pub fn start(address: IpAddr, settings: &Settings) -> Result<Self, Error> {
        if let Some(problem) = settings.problems().into_iter().next() {
            return Err(Error::Settings(problem));
        }
        // iperf3 cannot choose a port by itself and say which. Between this and its start somebody
        // else could take the port; it then says so.
        let free = TcpListener::bind((address, 0)).and_then(|listener| listener.local_addr());
        let at = free.map_err(|source| Error::Port { address, source })?;
        let words = ["-s", "-1", "-p", &at.port().to_string(), "-B", &address.to_string()];
        let child = start(&words.map(str::to_owned))?;
        Ok(Self { child, address: at, settings: settings.clone() })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the test's end and gives what this end knows: when it sent, what it sent.
    ///
    /// # Errors
    /// When nobody comes in time, or the program complains.
    pub async fn serve(self, context: &Context) -> Result<Throughput, Error> {
        let output = finish(self.child, self.settings.longest()).await?;
        read(&output, !self.settings.reverse, context)
    }
}

fn start(words: &[String]) -> Result<Child, Error> {
    Command::new(PROGRAM)
        .args(words)
        .arg("-J")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Missing,
            _ => Error::Run(error),
        })
}

/// Waits for the program's end and gives what it wrote; kills it when it takes too long or writes too
/// much.
async fn finish(mut child: Child, limit: Duration) -> Result<Vec<u8>, Error> {
    let (output, complaint) = (child.stdout.take(), child.stderr.take());
    let work = async {
        let (output, complaint) = tokio::join!(take(output), take(complaint));
        let (output, complaint) = (output?, complaint?);
        child.wait().await.map_err(Error::Run)?;
        // Wrong options are complained of without JSON.
        if output.is_empty() && !complaint.is_empty() {
            return Err(Error::Reported(words(&String::from_utf8_lossy(&complaint))));
        }
        Ok(output)
    };
    let done = timeout(limit, work).await;
    // Dead already if all went well.
    let _ = child.kill().await;
    done.unwrap_or(Err(Error::Timeout { limit }))
}

async fn take(pipe: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(LONGEST_OUTPUT + 1).read_to_end(&mut bytes).await.map_err(Error::Run)?;
    }
    if bytes.len() as u64 > LONGEST_OUTPUT { Err(OutputError::TooLong.into()) } else { Ok(bytes) }
}

fn read(output: &[u8], received: bool, context: &Context) -> Result<Throughput, Error> {
    match parse(output, received) {
        Ok(Ok(figures)) => Ok(figures),
        Ok(Err(complaint)) => Err(Error::Reported(complaint)),
        Err(error) => {
            context.counters.refuse(Refusal::Iperf3);
            Err(error.into())
        }
    }
}

/// What iperf3 writes, as far as it is of use.
#[derive(Deserialize)]
struct Output {
    error: Option<String>,
    #[serde(default)]
    intervals: Vec<Interval>,
    #[serde(default)]
    end: End,
}

#[derive(Deserialize)]
struct Interval {
    #[serde(default)]
    streams: Vec<Stream>,
    sum: Sum,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Stream {
    retransmits: f64,
    snd_cwnd: f64,
    /// Microseconds.
    rtt: f64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct End {
    /// UDP only.
    sum: Option<Sum>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

/// Numbers may be written with an exponent.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Sum {
    end: f64,
    bytes: f64,
    bits_per_second: f64,
    lost_packets: Option<f64>,
    packets: Option<f64>,
}

/// Reads the output of a client, or of a server; `received`: whether this end received. Its complaint
/// where it has one. A sender has the receiver's figures as a client only.
///
/// # Errors
/// When it is not understood.
pub fn parse(output: &[u8], received: bool) -> Result<Result<Throughput, String>, OutputError> {
    let malformed = |error: serde_json::Error| OutputError::Malformed(words(&error.to_string()));
    let output: Output = serde_json::from_slice(output).map_err(malformed)?;
    if let Some(complaint) = output.error {
        return Ok(Err(words(&complaint)));
    }
    let End { sum, sum_sent, sum_received } = output.end;
    // A server that sent has an empty sum of what was received.
    let had = sum_received.filter(|sum| received || sum.bytes > 0.0).or(sum_sent);
    let had = had.ok_or(OutputError::Empty)?;
    let lost = sum.as_ref().and_then(|sum| Some((sum.lost_packets?, sum.packets?)));
    Ok(Ok(Throughput {
        transport: "iperf3".to_owned(),
        bytes: whole(had.bytes),
        bytes_per_second: if had.bits_per_second.is_finite() {
            had.bits_per_second.max(0.0) / 8.0
        } else {
            0.0
        },
        lost: lost.map(|(lost, sent)| (whole(lost), whole(sent))),
        reordered: None,
        duplicated: None,
        samples: samples(&output.intervals),
    }))
}

fn samples(intervals: &[Interval]) -> Vec<Moment> {
    let (mut bytes, mut retransmits) = (0u64, 0u64);
    let every = intervals.len().div_ceil(MOST_MOMENTS).max(1);
    let mut samples = Vec::new();
    for (number, interval) in intervals.iter().enumerate() {
        bytes = bytes.saturating_add(whole(interval.sum.bytes));
        let total = |field: fn(&Stream) -> f64| interval.streams.iter().map(field).sum::<f64>();
        retransmits = retransmits.saturating_add(whole(total(|stream| stream.retransmits)));
        let count = interval.streams.len().max(1) as f64;
        if (number + 1) % every == 0 {
            samples.push(Moment {
                at_ns: whole(interval.sum.end * 1e9),
                bytes,
                window_bytes: whole(total(|stream| stream.snd_cwnd)),
                srtt_ns: whole(total(|stream| stream.rtt) / count * 1e3),
                retransmits,
            });
        }
    }
    samples
}

/// A number that cannot be negative; nonsense becomes 0 or the greatest there is.
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// What a program says, for a terminal or a log.
fn words(text: &str) -> String {
    config::printable(text.trim().chars().take(LONGEST_COMPLAINT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What iperf3 3.12 writes, shortened.
    const CLIENT: &str = r#"{"start": {"version": "iperf 3.12"}, "intervals": [
        {"streams": [{"bytes": 100, "retransmits": 2, "snd_cwnd": 1000, "rtt": 91},
                     {"bytes": 100, "retransmits": 1, "snd_cwnd": 500, "rtt": 109}],
         "sum": {"start": 0, "end": 0.5, "bytes": 200, "retransmits": 3}},
        {"streams": [{"retransmits": 1}], "sum": {"end": 1.0, "bytes": 3e2}}],
        "end": {"sum_sent": {"bytes": 600, "bits_per_second": 4800},
                "sum_received": {"bytes": 500, "bits_per_second": 4000.5}}}"#;

    #[test]
    fn the_receivers_figures_count() {
        let figures = parse(CLIENT.as_bytes(), false).unwrap().unwrap();
        assert_eq!((figures.bytes, figures.bytes_per_second), (500, 500.0625));
        let second = Moment {
            at_ns: 1_000_000_000,
            bytes: 500,
            window_bytes: 0,
            srtt_ns: 0,
            retransmits: 4,
        };
        let first = Moment {
            at_ns: 500_000_000,
            bytes: 200,
            window_bytes: 1500,
            srtt_ns: 100_000,
            retransmits: 3,
        };
        assert_eq!(figures.samples, [first, second]);
        let udp = r#"{"end": {"sum": {"lost_packets": 2, "packets": 41},
            "sum_sent": {"bytes": 41}, "sum_received": {"bytes": 39}}}"#;
        let figures = parse(udp.as_bytes(), true).unwrap().unwrap();
        assert_eq!((figures.bytes, figures.lost), (39, Some((2, 41))));
        let sender = r#"{"end": {"sum_sent": {"bytes": 41}, "sum_received": {"bytes": 0}}}"#;
        assert_eq!(parse(sender.as_bytes(), false).unwrap().unwrap().bytes, 41);
        assert_eq!(parse(sender.as_bytes(), true).unwrap().unwrap().bytes, 0);
    }

    #[test]
    fn complaints_and_nonsense_are_distinguished() {
        let refused = br#"{"end": {}, "error": "unable to connect\u001b[31m"}"#;
        assert_eq!(parse(refused, true).unwrap().unwrap_err(), "unable to connect\u{fffd}[31m");
        assert_eq!(parse(br#"{"end": {}}"#, true).unwrap_err(), OutputError::Empty);
        assert!(matches!(parse(b"iperf3: no", true), Err(OutputError::Malformed(_))));
        let odd = r#"{"end": {"sum_received": {"bytes": -5, "bits_per_second": -1e300}}}"#;
        let figures = parse(odd.as_bytes(), true).unwrap().unwrap();
        assert_eq!((figures.bytes, figures.bytes_per_second), (0, 0.0));
    }

    #[test]
    fn the_rate_is_that_of_all_connections() {
        let settings = Settings { udp: true, streams: 4, ..Settings::default() };
        assert_eq!(settings.problems()[0].key, "rate");
        let settings = Settings { rate: Some(100_000_000), reverse: true, ..settings };
        assert_eq!(settings.problems(), []);
        let words = settings.words("192.0.2.1:5201".parse().unwrap()).join(" ");
        let right = "-c 192.0.2.1 -p 5201 -t 10 -P 4 -i 1 --connect-timeout 5000 -b 25000000 -u -R";
        assert_eq!(words, right);
        let half = Settings { duration: Duration::from_millis(1500), ..Settings::default() };
        assert_eq!(half.problems()[0].key, "duration");
    }
}
