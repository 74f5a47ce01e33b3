//! What was measured: the values that tests give, the archive keeps and people look at.
//!
//! Every delay comes with the interval in which the true value lies. The interval follows from both
//! clocks' maximum errors and is unbounded where one of them is not known; the estimate alone is never
//! stored.

use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, str::FromStr};

/// One finished measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When it began, nanoseconds since 1970-01-01 UTC by this station's clock.
    pub at_ns: i64,
    /// How long it took, in nanoseconds.
    pub lasted_ns: u64,
    /// The station that measured.
    pub from: String,
    /// The station, or the address, that was measured.
    pub to: String,
    /// The test's name in the schedule, or `request` for what was asked for.
    pub test: String,
    /// What came of it.
    pub figures: Figures,
}

/// What a measurement came to.
#[expect(clippy::large_enum_variant, reason = "most records are delays")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Figures {
    /// One-way and two-way delay, loss, reordering, duplication (STAMP, TWAMP-Light).
    Delay(Delay),
    /// Bytes a second.
    Throughput(Throughput),
    /// The routers on the path, and the path's MTU.
    Trace(Trace),
    /// Round trips of ICMP echo.
    Ping(Series),
    /// A page over HTTP.
    Http(Http),
    /// An answer of a name server.
    Dns(Dns),
    /// A clock's state: of this station (`to` = `from`) or of an NTP server.
    Clock(Clock),
    /// Nothing: the test could not be done.
    Failed {
        /// The reason, a sentence.
        reason: String,
    },
}

impl Figures {
    /// What kind of measurement it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Delay(_) => Kind::Delay,
            Self::Throughput(_) => Kind::Throughput,
            Self::Trace(_) => Kind::Trace,
            Self::Ping(_) => Kind::Ping,
            Self::Http(_) => Kind::Http,
            Self::Dns(_) => Kind::Dns,
            Self::Clock(_) => Kind::Clock,
            Self::Failed { .. } => Kind::Failed,
        }
    }
}

/// The kinds of measurements, named as in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// [`Figures::Delay`].
    Delay,
    /// [`Figures::Throughput`].
    Throughput,
    /// [`Figures::Trace`].
    Trace,
    /// [`Figures::Ping`].
    Ping,
    /// [`Figures::Http`].
    Http,
    /// [`Figures::Dns`].
    Dns,
    /// [`Figures::Clock`].
    Clock,
    /// [`Figures::Failed`].
    Failed,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Delay,
        Self::Throughput,
        Self::Trace,
        Self::Ping,
        Self::Http,
        Self::Dns,
        Self::Clock,
        Self::Failed,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Throughput => "throughput",
            Self::Trace => "trace",
            Self::Ping => "ping",
            Self::Http => "http",
            Self::Dns => "dns",
            Self::Clock => "clock",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No kind has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no kind {0:?}: delay, throughput, trace, ping, http, dns, clock or failed")]
pub struct KindError(pub String);

impl FromStr for Kind {
    type Err = KindError;

    fn from_str(text: &str) -> Result<Self, KindError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| KindError(text.to_owned()))
    }
}

/// A duration and where its true value lies, in nanoseconds. A one-way delay's estimate may be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounded {
    /// The clock readings.
    pub estimate_ns: i64,
    /// The true value is not below this; `None`: nothing is known.
    pub low_ns: Option<i64>,
    /// The true value is not above this; `None`: nothing is known.
    pub high_ns: Option<i64>,
}

/// The outcome of a series of packets in one direction, or of round trips.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Packets sent.
    pub sent: u64,
    /// Packets that did not arrive within the time limit (RFC 7680).
    pub lost: u64,
    /// Packets that arrived after the time limit: they count as lost, and are counted here too.
    #[serde(default)]
    pub late: u64,
    /// Further copies of packets that had arrived (RFC 5560).
    pub duplicated: u64,
    /// Packets that arrived after one that was sent later (RFC 4737, section 3).
    pub reordered: u64,
    /// Packets that arrived earlier than both clocks' errors allow: one of the clocks is worse than it reported.
    /// Nothing is promised of their delays.
    #[serde(default)]
    pub contradicted: u64,
    /// Smallest delay; `None` when no packet arrived, here and below.
    pub minimum: Option<Bounded>,
    /// Median (RFC 7679, section 5.2): p50.
    pub median: Option<Bounded>,
    /// 95th percentile.
    pub p95: Option<Bounded>,
    /// 99th percentile.
    pub p99: Option<Bounded>,
    /// Largest delay.
    pub maximum: Option<Bounded>,
    /// Delay variation against the smallest delay, 99th percentile, nanoseconds (PDV, RFC 5481, section 4.2).
    /// The clocks' offset is not in it.
    pub pdv_p99_ns: Option<u64>,
    /// Mean of the absolute differences of successive delays, nanoseconds (IPDV, RFC 5481, section 4.1).
    pub ipdv_mean_ns: Option<u64>,
}

/// Delays between two stations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// From the measuring station to the other; `None` of a reflector that does not say when it received.
    pub forward: Option<Series>,
    /// The reverse path.
    pub reverse: Option<Series>,
    /// Whether loss, duplicates and reordering of one direction are known: of a reflector that counts
    /// (RFC 8762, stateful), and answers soon enough after what was lost. Else `forward` and `reverse` report delays only: their `sent` are the packets that
    /// came back, and what was lost of `round_trip` was lost in one direction or the other.
    #[serde(default)]
    pub counted: bool,
    /// Both directions, without the reflector's own time; free of clock offsets.
    pub round_trip: Series,
}

/// What a throughput test moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// `tcp`, `psock`, `udp` or `iperf3`.
    pub transport: String,
    /// What the receiver had, in bytes.
    pub bytes: u64,
    /// The receiver's bytes a second over the whole test.
    pub bytes_per_second: f64,
    /// Datagrams lost, of those sent (UDP only).
    pub lost: Option<(u64, u64)>,
    /// Datagrams that arrived after one that was sent later (UDP only; RFC 4737, section 3).
    #[serde(default)]
    pub reordered: Option<u64>,
    /// Further copies of datagrams that had arrived (UDP only).
    #[serde(default)]
    pub duplicated: Option<u64>,
    /// The test over time.
    pub samples: Vec<Moment>,
}

/// A moment of a throughput test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Since the beginning, in nanoseconds.
    pub at_ns: u64,
    /// Bytes that were acknowledged, or received, until then.
    pub bytes: u64,
    /// Congestion window in bytes (tcp_info); zero where there is none, here and below.
    pub window_bytes: u64,
    /// Smoothed round-trip time in nanoseconds.
    pub srtt_ns: u64,
    /// Segments sent again until then.
    pub retransmits: u64,
}

/// The path to an address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Hop by hop, the first at distance 1.
    pub hops: Vec<Hop>,
    /// Whether the address itself answered.
    pub reached: bool,
    /// Largest packet that passes whole, in bytes with the IP header.
    pub mtu_bytes: Option<u32>,
}

/// A hop of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Who answered; `None` when nobody did.
    pub address: Option<IpAddr>,
    /// Who else answered at this distance, where routers spread the packets of one flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<IpAddr>,
    /// Time until the answers, in nanoseconds.
    pub round_trips_ns: Vec<u64>,
    /// What it answered, where that is not "time exceeded": such as `net unreachable`.
    pub answer: Option<String>,
    /// What routers add to their answers (RFC 4884): MPLS labels (RFC 4950), interfaces (RFC 5837).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
}

/// Times of fetching a page, nanoseconds, each from the beginning of the step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http {
    /// Status code.
    pub status: u16,
    /// Resolving the name.
    pub resolve_ns: u64,
    /// The TCP handshake.
    pub connect_ns: u64,
    /// The TLS handshake, if any.
    pub tls_ns: Option<u64>,
    /// From the request to the first byte of the answer.
    pub first_byte_ns: u64,
    /// From the request to the last byte of the answer.
    pub whole_ns: u64,
    /// Bytes of the body.
    pub bytes: u64,
}

/// An answer of a name server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dns {
    /// Response code by name, such as `NOERROR`.
    pub code: String,
    /// Records in the answer section.
    pub answers: u16,
    /// Time until the answer, in nanoseconds.
    pub took_ns: u64,
}

/// A clock's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Where this is known from: `kernel`, `chrony` or `ntp`.
    pub source: String,
    /// Clock less true time, as estimated, in nanoseconds.
    pub offset_ns: Option<i64>,
    /// Estimated error in nanoseconds.
    pub estimated_error_ns: Option<u64>,
    /// Maximum error in nanoseconds; `None`: not known, so no bound is promised.
    pub maximum_error_ns: Option<u64>,
    /// Stratum (RFC 5905); `None` when not synchronised or not known.
    pub stratum: Option<u8>,
    /// What the clock follows, such as `GPS` or an address.
    pub reference: Option<String>,
    /// Reach register, the last eight polls as bits (RFC 5905).
    pub reach: Option<u8>,
    /// Frequency correction in parts per thousand million.
    pub frequency_ppb: Option<i64>,
    /// Seconds since the clock was last set by its reference.
    // Archives of older versions have the old name.
    #[serde(alias = "since_update_s")]
    pub since_update_seconds: Option<f64>,
    /// Whether the clock runs on by itself, its reference being gone.
    pub holdover: bool,
}
