//! Many records together: what is kept of an hour or a day.
//!
//! A summary claims nothing that the records do not bear out. Let the records `i` have a delay in
//! `[low_i, high_i]`, each for its own minimum, percentile or maximum. Of all packets together then
//!
//! ```text
//!   the smallest delay  is in  [min low_i, min high_i]
//!   a percentile        is in  [min low_i, max high_i]   (it lies between the smallest and the largest of
//!   the largest delay   is in  [max low_i, max high_i]    the records' own percentiles)
//! ```
//!
//! where a bound that is needed and not known makes the result's bound unknown. Counts add up. A
//! percentile's estimate is the median of the records' percentiles, each weighing as many packets as
//! arrived; that is no percentile of all packets, which is why the interval comes with it. Summaries
//! of summaries, a day of hours, follow the same rules, so the intervals stay true.

#[cfg(test)]
mod tests;

use crate::record::{Bounded, Clock, Delay, Figures, Kind, Series, Trace};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::IpAddr};

/// Most paths, and most reasons of failure, that a summary distinguishes.
const MOST: usize = 16;

/// Many records of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Where it begins, nanoseconds since 1970-01-01 UTC.
    pub at_ns: i64,
    /// How long it is, in nanoseconds.
    pub lasted_ns: u64,
    /// The station that measured.
    pub from: String,
    /// The station, or the address, that was measured.
    pub to: String,
    /// The test's name.
    pub test: String,
    /// How many records it stands for.
    pub records: u64,
    /// What they came to.
    pub figures: Summary,
}

/// What many records of a kind came to.
#[expect(clippy::large_enum_variant, reason = "most records are delays")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Summary {
    /// Delays. In each series `pdv_p99_ns` is the largest of the records' and `ipdv_mean_ns` their mean.
    Delay(Delay),
    /// Throughput.
    Throughput {
        /// `tcp`, `psock`, `udp` or `iperf3`, of the last.
        transport: String,
        /// What the receivers had, in bytes.
        bytes: u64,
        /// Bytes a second, over the tests.
        bytes_per_second: Spread,
        /// Datagrams lost, of those sent.
        lost: Option<(u64, u64)>,
    },
    /// Traces.
    Trace {
        /// How often the address itself answered.
        reached: u64,
        /// The paths that were seen and how often, the most frequent first; at most 16.
        paths: Vec<NetworkPath>,
        /// How often paths were seen that are not among them.
        other_paths: u64,
        /// Smallest and largest MTU in bytes.
        mtu_bytes: Option<(u32, u32)>,
    },
    /// Round trips of ICMP echo.
    Ping(Series),
    /// Pages.
    Http {
        /// How often each status code came.
        statuses: BTreeMap<String, u64>,
        /// From the request to the first byte of the answer, nanoseconds.
        first_byte_ns: Spread,
        /// From the request to the last byte, nanoseconds.
        whole_ns: Spread,
    },
    /// Answers of name servers.
    Dns {
        /// How often each response code came.
        codes: BTreeMap<String, u64>,
        /// Time until the answer, nanoseconds.
        took_ns: Spread,
    },
    /// Clocks.
    Clock(ClockSummary),
    /// Tests that could not be done.
    Failed {
        /// The reasons and how often each; at most 16, further ones count as `...`.
        reasons: BTreeMap<String, u64>,
    },
}

/// Smallest, middle and largest of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many there were.
    pub count: u64,
    /// The smallest.
    pub minimum: f64,
    /// The middle one; of summaries the middle one of their middles, each weighing its count.
    pub median: f64,
    /// The largest.
    pub maximum: f64,
}

/// A path through the network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkPath {
    /// Who answered, hop by hop.
    pub hops: Vec<Option<IpAddr>>,
    /// How often it was seen.
    pub times: u64,
}

/// How a clock was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockSummary {
    /// Where this is known from, of the last record.
    pub source: String,
    /// What the clock followed, of the last record.
    pub reference: Option<String>,
    /// Smallest and largest estimate of clock less true time, nanoseconds.
    pub offset_ns: Option<(i64, i64)>,
    /// The largest maximum error in nanoseconds; `None` when it was not known of one of the records.
    pub maximum_error_ns: Option<u64>,
    /// Records that promised no bound.
    pub unbounded: u64,
    /// Records in which the clock ran on by itself.
    pub holdover: u64,
    /// The highest stratum; `None` when it was not known of one of the records.
    pub stratum: Option<u8>,
}

impl Span {
    /// What kind of records it stands for.
    pub fn kind(&self) -> Kind {
        self.figures.kind()
    }
}

impl Summary {
    /// Of a single record.
    pub fn of(figures: &Figures) -> Self {
        match figures {
            Figures::Delay(delay) => Self::Delay(delay.clone()),
            Figures::Throughput(it) => Self::Throughput {
                transport: it.transport.clone(),
                bytes: it.bytes,
                bytes_per_second: Spread::one(it.bytes_per_second),
                lost: it.lost,
            },
            Figures::Trace(trace) => Self::trace(trace),
            Figures::Ping(series) => Self::Ping(series.clone()),
            Figures::Http(http) => Self::Http {
                statuses: BTreeMap::from([(http.status.to_string(), 1)]),
                first_byte_ns: Spread::one(http.first_byte_ns as f64),
                whole_ns: Spread::one(http.whole_ns as f64),
            },
            Figures::Dns(dns) => Self::Dns {
                codes: BTreeMap::from([(dns.code.clone(), 1)]),
                took_ns: Spread::one(dns.took_ns as f64),
            },
            Figures::Clock(clock) => Self::Clock(ClockSummary::of(clock)),
            Figures::Failed { reason } => {
                Self::Failed { reasons: BTreeMap::from([(reason.clone(), 1)]) }
            }
        }
    }

    fn trace(trace: &Trace) -> Self {
        let hops = trace.hops.iter().map(|hop| hop.address).collect();
        Self::Trace {
            reached: u64::from(trace.reached),
            paths: vec![NetworkPath { hops, times: 1 }],
            other_paths: 0,
            mtu_bytes: trace.mtu_bytes.map(|mtu| (mtu, mtu)),
        }
    }

    /// What kind of records it stands for.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Delay(_) => Kind::Delay,
            Self::Throughput { .. } => Kind::Throughput,
            Self::Trace { .. } => Kind::Trace,
            Self::Ping(_) => Kind::Ping,
            Self::Http { .. } => Kind::Http,
            Self::Dns { .. } => Kind::Dns,
            Self::Clock(_) => Kind::Clock,
            Self::Failed { .. } => Kind::Failed,
        }
    }

    /// Of all of them together, which are of one kind and in the order of time; those of another kind
    /// than the first are skipped. `None` of nothing.
    pub fn join(parts: &[Self]) -> Option<Self> {
        /// The parts of one kind.
        macro_rules! of {
            ($pattern:pat => $value:expr) => {
                || {
                    parts
                        .iter()
                        .filter_map(|part| if let $pattern = part { Some($value) } else { None })
                }
            };
        }
        Some(match parts.first()? {
            Self::Delay(_) => {
                let delays = of!(Self::Delay(delay) => delay);
                Self::Delay(Delay {
                    forward: join_series(delays().filter_map(|delay| delay.forward.as_ref())),
                    reverse: join_series(delays().filter_map(|delay| delay.reverse.as_ref())),
                    counted: delays().all(|delay| delay.counted),
                    round_trip: join_series(delays().map(|delay| &delay.round_trip))
                        .unwrap_or_default(),
                })
            }
            Self::Ping(_) => {
                Self::Ping(join_series(of!(Self::Ping(it) => it)()).unwrap_or_default())
            }
            Self::Throughput { .. } => Self::Throughput {
                transport: of!(Self::Throughput { transport, .. } => transport)()
                    .next_back()?
                    .clone(),
                bytes: sum(of!(Self::Throughput { bytes, .. } => *bytes)()),
                bytes_per_second: Spread::join(
                    of!(Self::Throughput { bytes_per_second, .. } => *bytes_per_second)(),
                )?,
                lost: of!(Self::Throughput { lost, .. } => *lost)()
                    .flatten()
                    .reduce(|a, b| (a.0.saturating_add(b.0), a.1.saturating_add(b.1))),
            },
            Self::Trace { .. } => {
                let (paths, beyond) =
                    join_paths(of!(Self::Trace { paths, .. } => paths)().flatten());
                Self::Trace {
                    reached: sum(of!(Self::Trace { reached, .. } => *reached)()),
                    paths,
                    other_paths: beyond
                        + sum(of!(Self::Trace { other_paths, .. } => *other_paths)()),
                    mtu_bytes: hull(of!(Self::Trace { mtu_bytes, .. } => *mtu_bytes)().flatten()),
                }
            }
            Self::Http { .. } => Self::Http {
                statuses: counts(of!(Self::Http { statuses, .. } => statuses)()),
                first_byte_ns: Spread::join(
                    of!(Self::Http { first_byte_ns, .. } => *first_byte_ns)(),
                )?,
                whole_ns: Spread::join(of!(Self::Http { whole_ns, .. } => *whole_ns)())?,
            },
            Self::Dns { .. } => Self::Dns {
                codes: counts(of!(Self::Dns { codes, .. } => codes)()),
                took_ns: Spread::join(of!(Self::Dns { took_ns, .. } => *took_ns)())?,
            },
            Self::Clock(_) => Self::Clock(ClockSummary::join(of!(Self::Clock(it) => it)())),
            Self::Failed { .. } => {
                let all = counts(of!(Self::Failed { reasons } => reasons)());
                let mut reasons = BTreeMap::new();
                for (reason, times) in all {
                    let room = reasons.len() < MOST || reasons.contains_key(&reason);
                    let name = if room { reason } else { "...".to_owned() };
                    *reasons.entry(name).or_default() += times;
                }
                Self::Failed { reasons }
            }
        })
    }
}

impl Spread {
    fn one(value: f64) -> Self {
        Self { count: 1, minimum: value, median: value, maximum: value }
    }

    fn join(parts: impl Iterator<Item = Self> + Clone) -> Option<Self> {
        let medians = parts.clone().map(|part| (part.median, part.count)).collect();
        Some(Self {
            count: sum(parts.clone().map(|part| part.count)),
            minimum: parts.clone().map(|part| part.minimum).reduce(f64::min)?,
            median: middle(medians, f64::total_cmp)?,
            maximum: parts.map(|part| part.maximum).reduce(f64::max)?,
        })
    }
}

impl ClockSummary {
    fn of(clock: &Clock) -> Self {
        Self {
            source: clock.source.clone(),
            reference: clock.reference.clone(),
            offset_ns: clock.offset_ns.map(|offset| (offset, offset)),
            maximum_error_ns: clock.maximum_error_ns,
            unbounded: u64::from(clock.maximum_error_ns.is_none()),
            holdover: u64::from(clock.holdover),
            stratum: clock.stratum,
        }
    }

    fn join<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let parts: Vec<_> = parts.collect();
        let last = parts.last();
        let whole = |values: Option<Vec<u64>>| values.and_then(|values| values.into_iter().max());
        Self {
            source: last.map(|part| part.source.clone()).unwrap_or_default(),
            reference: last.and_then(|part| part.reference.clone()),
            offset_ns: hull(parts.iter().filter_map(|part| part.offset_ns)),
            maximum_error_ns: whole(parts.iter().map(|part| part.maximum_error_ns).collect()),
            unbounded: sum(parts.iter().map(|part| part.unbounded)),
            holdover: sum(parts.iter().map(|part| part.holdover)),
            stratum: parts
                .iter()
                .map(|part| part.stratum)
                .collect::<Option<Vec<_>>>()
                .and_then(|strata| strata.into_iter().max()),
        }
    }
}

/// Series of packets together; `None` of nothing.
fn join_series<'a>(parts: impl Iterator<Item = &'a Series>) -> Option<Series> {
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() {
        return None;
    }
    let arrived = |part: &Series| part.sent.saturating_sub(part.lost);
    // If one part has no value for packets that arrived, the whole has none.
    let of = |value: fn(&Series) -> Option<Bounded>| {
        let some = parts.iter().filter(|part| arrived(part) > 0 || value(part).is_some());
        let values = some.map(|part| Some((value(part)?, arrived(part))));
        values.collect::<Option<Vec<_>>>().unwrap_or_default()
    };
    let differences =
        parts.iter().filter_map(|part| Some((part.ipdv_mean_ns?, arrived(part).saturating_sub(1))));
    Some(Series {
        sent: sum(parts.iter().map(|part| part.sent)),
        lost: sum(parts.iter().map(|part| part.lost)),
        late: sum(parts.iter().map(|part| part.late)),
        duplicated: sum(parts.iter().map(|part| part.duplicated)),
        reordered: sum(parts.iter().map(|part| part.reordered)),
        contradicted: sum(parts.iter().map(|part| part.contradicted)),
        minimum: smallest(&of(|part| part.minimum)),
        median: percentile(of(|part| part.median)),
        p95: percentile(of(|part| part.p95)),
        p99: percentile(of(|part| part.p99)),
        maximum: largest(&of(|part| part.maximum)),
        pdv_p99_ns: parts.iter().filter_map(|part| part.pdv_p99_ns).max(),
        ipdv_mean_ns: mean(differences),
    })
}

/// The smallest of delays: each upper bound is one of the smallest, too.
fn smallest(parts: &[(Bounded, u64)]) -> Option<Bounded> {
    let parts = || parts.iter().map(|(part, _)| part);
    let lows: Option<Vec<_>> = parts().map(|part| part.low_ns).collect();
    Some(Bounded {
        estimate_ns: parts().map(|part| part.estimate_ns).min()?,
        low_ns: lows.and_then(|lows| lows.into_iter().min()),
        high_ns: parts().filter_map(|part| part.high_ns).min(),
    })
}

/// The largest of delays: each lower bound is one of the largest, too.
fn largest(parts: &[(Bounded, u64)]) -> Option<Bounded> {
    let parts = || parts.iter().map(|(part, _)| part);
    let highs: Option<Vec<_>> = parts().map(|part| part.high_ns).collect();
    Some(Bounded {
        estimate_ns: parts().map(|part| part.estimate_ns).max()?,
        low_ns: parts().filter_map(|part| part.low_ns).max(),
        high_ns: highs.and_then(|highs| highs.into_iter().max()),
    })
}

/// A percentile of all packets lies between the smallest and the largest of the parts'.
fn percentile(parts: Vec<(Bounded, u64)>) -> Option<Bounded> {
    let lows: Option<Vec<_>> = parts.iter().map(|(part, _)| part.low_ns).collect();
    let highs: Option<Vec<_>> = parts.iter().map(|(part, _)| part.high_ns).collect();
    let estimates = parts.into_iter().map(|(part, weight)| (part.estimate_ns, weight)).collect();
    Some(Bounded {
        estimate_ns: middle(estimates, i64::cmp)?,
        low_ns: lows.and_then(|lows| lows.into_iter().min()),
        high_ns: highs.and_then(|highs| highs.into_iter().max()),
    })
}

/// The value at which half of the weight is reached.
fn middle<T: Copy>(
    mut values: Vec<(T, u64)>,
    order: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> Option<T> {
    values.sort_by(|a, b| order(&a.0, &b.0));
    let weight = |weight: u64| u128::from(weight.max(1));
    let all: u128 = values.iter().map(|value| weight(value.1)).sum();
    let mut below = 0;
    let reached = values.iter().find(|value| {
        below += weight(value.1);
        below * 2 >= all
    });
    reached.map(|value| value.0)
}

/// The mean of numbers with their weights; `None` where there is no weight.
fn mean(values: impl Iterator<Item = (u64, u64)>) -> Option<u64> {
    let (mut total, mut weights) = (0, 0);
    for (value, weight) in values {
        total += u128::from(value) * u128::from(weight);
        weights += u128::from(weight);
    }
    total.checked_div(weights).and_then(|mean| u64::try_from(mean).ok())
}

/// The sum, or the largest number where it is larger.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// The smallest and the largest.
fn hull<T: Copy + Ord>(parts: impl Iterator<Item = (T, T)>) -> Option<(T, T)> {
    parts.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// The sum of each count.
fn counts<'a, K: Clone + Ord + 'a>(
    parts: impl Iterator<Item = &'a BTreeMap<K, u64>>,
) -> BTreeMap<K, u64> {
    let mut all = BTreeMap::new();
    for (key, count) in parts.flatten() {
        let sum: &mut u64 = all.entry(key.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
    all
}

/// The most frequent paths, and how often others were seen.
fn join_paths<'a>(parts: impl Iterator<Item = &'a NetworkPath>) -> (Vec<NetworkPath>, u64) {
    let mut times: BTreeMap<&[Option<IpAddr>], u64> = BTreeMap::new();
    for path in parts {
        let sum = times.entry(&path.hops).or_default();
        *sum = sum.saturating_add(path.times);
    }
    let all = times.into_iter().map(|(hops, times)| NetworkPath { hops: hops.to_vec(), times });
    let mut paths: Vec<_> = all.collect();
    paths.sort_by_key(|path| std::cmp::Reverse(path.times));
    let others = sum(paths.iter().skip(MOST).map(|path| path.times));
    paths.truncate(MOST);
    (paths, others)
}
