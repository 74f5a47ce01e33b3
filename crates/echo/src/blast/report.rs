//! The result of a run, as JSON and as text.

use std::{
    fmt::{self, Write},
    net::IpAddr,
};

use serde::Serialize;
use terminal::screen::curve;

use super::{
    line::{self, FCS},
    loss::Loss,
    outcome::Outcome,
    plan::{Kind, Plan},
    search::{Found, Limit, Step},
};

/// The settings.
#[derive(Clone, Debug, Serialize)]
pub struct Setup {
    /// The target.
    pub target: IpAddr,
    /// The source address.
    pub source: IpAddr,
    /// The outgoing interface.
    pub interface: String,
    /// The engine.
    pub engine: Kind,
    /// Threads that sent.
    pub threads: u32,
    /// Bytes of a frame, check sequence included.
    pub frame_bytes: usize,
    /// Speed of the link in bits a second.
    #[serde(rename = "link_bits_per_second")]
    pub link_speed: u64,
    /// Frames of this size that the link carries in a second.
    #[serde(rename = "line_packets_per_second")]
    pub line_rate: f64,
}

impl Setup {
    /// Of a plan.
    pub fn of(plan: &Plan, link_speed: u64) -> Self {
        let frame_bytes = plan.frame + FCS;
        Self {
            target: plan.target,
            source: plan.path.source,
            interface: plan.path.name.clone(),
            engine: plan.engine,
            threads: plan.threads,
            frame_bytes,
            link_speed,
            line_rate: line::frames_per_second(link_speed, frame_bytes),
        }
    }
}

/// Round-trip times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rtt {
    /// The shortest.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// Median (p50).
    pub p50: u64,
    /// 90th percentile (p90).
    pub p90: u64,
    /// 99th percentile (p99).
    pub p99: u64,
    /// 99.9th percentile (p99.9).
    #[serde(rename = "p99.9")]
    pub p999: u64,
    /// The longest.
    pub max: u64,
}

/// One second of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Second {
    /// Requests sent in it.
    pub sent: u64,
    /// Of those, how many got no reply.
    pub lost: u64,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The settings.
    #[serde(flatten)]
    pub setup: Setup,
    /// Requested packets a second; none for as fast as possible.
    #[serde(rename = "requested_packets_per_second")]
    pub requested_rate: Option<u64>,
    /// Packets a second that were sent.
    #[serde(rename = "packets_per_second")]
    pub rate: f64,
    /// Whether the rate was kept, to one in a thousand and a late wake-up.
    pub kept_rate: bool,
    /// Requests that the kernel or the driver accepted.
    pub sent: u64,
    /// Requests that it refused.
    pub not_sent: u64,
    /// Why not.
    pub not_sent_reason: Option<String>,
    /// Requests that were answered, undamaged.
    pub received: u64,
    /// Requests sent that were not answered.
    pub lost: u64,
    /// Replies beyond the first.
    pub duplicated: u64,
    /// Replies after one to a later request.
    pub reordered: u64,
    /// Replies with a wrong checksum or payload.
    pub corrupt: u64,
    /// Replies that were dropped here because the receive buffer was full; they count as lost.
    pub overruns: u64,
    /// Round-trip times, if anything came back.
    pub rtt_ns: Option<Rtt>,
    /// Each second of the run, by the time of sending.
    pub seconds: Vec<Second>,
    /// Where packets were lost, if the responder's ledger was read.
    pub loss: Option<Loss>,
    /// Why the ledger could not be read after the run.
    pub peer_error: Option<String>,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
}

impl Report {
    /// Of a run.
    pub fn new(setup: Setup, requested_rate: Option<u64>, outcome: &Outcome) -> Self {
        let (requests, replies) = (&outcome.requests, &outcome.replies);
        let rate = outcome.rate();
        let rtt = &replies.rtt;
        let rtt_ns = (!rtt.is_empty()).then(|| Rtt {
            min: rtt.min(),
            mean: rtt.mean(),
            p50: rtt.value_at_quantile(0.5),
            p90: rtt.value_at_quantile(0.9),
            p99: rtt.value_at_quantile(0.99),
            p999: rtt.value_at_quantile(0.999),
            max: rtt.max(),
        });
        let answered = replies.by_second.iter().copied().chain(std::iter::repeat(0));
        let seconds = requests
            .by_second
            .iter()
            .zip(answered)
            .map(|(&sent, answered)| Second { sent, lost: sent.saturating_sub(answered) })
            .collect();
        Self {
            setup,
            requested_rate,
            rate,
            kept_rate: requested_rate.is_none_or(|asked| outcome.kept(asked)),
            sent: requests.sent,
            not_sent: requests.made - requests.sent,
            not_sent_reason: requests.refusal.clone().filter(|_| requests.made > requests.sent),
            received: replies.received,
            lost: outcome.lost(),
            duplicated: replies.duplicated,
            reordered: replies.reordered,
            corrupt: replies.corrupt,
            overruns: outcome.overruns,
            rtt_ns,
            seconds,
            loss: None,
            peer_error: None,
            interrupted: outcome.interrupted,
        }
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = match self.engine {
            Kind::Raw => "raw sockets",
            Kind::Packet => "packet sockets",
            Kind::Live => "in-kernel live frames",
        };
        write!(
            f,
            "{} from {} on {}: {} bytes a frame, {engine}, {} thread{}",
            self.target,
            self.source,
            self.interface,
            self.frame_bytes,
            self.threads,
            if self.threads == 1 { "" } else { "s" }
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.setup)?;
        let part = |count: u64| match self.sent {
            0 => String::new(),
            sent => format!(" ({:.3} %)", count as f64 * 100.0 / sent as f64),
        };
        let share = self.rate * 100.0 / self.setup.line_rate;
        write!(f, "sent        {} at {:.2}/s", self.sent, self.rate)?;
        writeln!(f, ", {share:.3} % of the line rate")?;
        if let Some(asked) = self.requested_rate.filter(|_| !self.kept_rate) {
            writeln!(f, "            the sender did not reach the rate of {asked}/s")?;
        }
        if self.not_sent > 0 {
            let reason = self.not_sent_reason.as_deref().unwrap_or("stopped");
            writeln!(f, "not sent    {}: {reason}", self.not_sent)?;
        }
        writeln!(f, "received    {}{}", self.received, part(self.received))?;
        writeln!(f, "lost        {}{}", self.lost, part(self.lost))?;
        writeln!(f, "duplicated  {}", self.duplicated)?;
        writeln!(f, "reordered   {}", self.reordered)?;
        writeln!(f, "corrupt     {}", self.corrupt)?;
        if self.overruns > 0 {
            writeln!(f, "overruns    {} replies were not read in time here", self.overruns)?;
        }
        if let Some(rtt) = self.rtt_ns {
            let head = ["min", "mean", "p50", "p90", "p99", "p99.9", "max"];
            let values = [rtt.min, rtt.mean as u64, rtt.p50, rtt.p90, rtt.p99, rtt.p999, rtt.max];
            let line = |cells: [String; 7]| {
                cells.iter().fold(String::new(), |mut line, cell| {
                    let _ = write!(line, "{cell:>10}");
                    line
                })
            };
            writeln!(f, "round trip{}", line(head.map(String::from)))?;
            writeln!(f, "microsec. {}", line(values.map(|ns| format!("{:.1}", ns as f64 / 1e3))))?;
        }
        if self.seconds.len() > 1 {
            let losses: Vec<u64> = self.seconds.iter().map(|second| second.lost).collect();
            let most = losses.iter().max().copied().unwrap_or(0);
            writeln!(f, "lost each s {}  (highest: {most})", bars(&losses))?;
        }
        if let Some(loss) = &self.loss {
            write!(f, "{loss}")?;
        }
        if let Some(error) = &self.peer_error {
            writeln!(f, "the responder's ledger could not be read after the run: {error}")?;
        }
        if self.interrupted {
            writeln!(f, "stopped before the end")?;
        }
        Ok(())
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "of {} that were lost:", self.total())?;
        writeln!(f, "  1 not sent                 {}", self.not_sent)?;
        writeln!(f, "  2 on the forward path      {}", self.lost_forward)?;
        let dropped: u64 = self.dropped.values().sum();
        write!(f, "  3 at the responder         {}", dropped + self.passed)?;
        let mut parts: Vec<String> =
            self.dropped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        if self.passed > 0 {
            parts.push(format!("passed to its kernel and not answered {}", self.passed));
        }
        if !parts.is_empty() {
            write!(f, ": {}", parts.join(", "))?;
        }
        writeln!(f)?;
        writeln!(f, "  4 on the reverse path      {}", self.lost_reverse + self.overruns)?;
        if self.overruns > 0 {
            writeln!(f, "    of those not read here   {}", self.overruns)?;
        }
        if self.others > 0 {
            writeln!(f, "  the responder received {} from others meanwhile", self.others)?;
        }
        Ok(())
    }
}

/// Widest line of bars.
const COLUMNS: usize = 60;

/// A bar for each second, or for each few where there are many.
fn bars(values: &[u64]) -> String {
    let each = values.len().div_ceil(COLUMNS).max(1);
    let sums: Vec<u64> = values.chunks(each).map(|chunk| chunk.iter().sum()).collect();
    curve(sums.iter(), sums.len())
}

/// A trial of a search.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Its result.
    #[serde(flatten)]
    pub step: Step,
    /// Where packets were lost, if the responder's ledger was read.
    pub loss: Option<Loss>,
}

/// A search for the highest rate without loss.
#[derive(Clone, Debug, Serialize)]
pub struct SearchReport {
    /// The settings.
    #[serde(flatten)]
    pub setup: Setup,
    /// The trials, in order.
    pub steps: Vec<Trial>,
    /// The result.
    #[serde(flatten)]
    pub found: Found,
    /// Why the responder dropped most packets, if most loss was there in the trial of the lowest rate
    /// with loss: then the search found this limit, and not the responder's capacity.
    pub limited_by: Option<String>,
    /// Why the responder's ledger could no longer be read.
    pub peer_error: Option<String>,
    /// The result as a share of the line rate.
    pub share_of_line_rate: Option<f64>,
    /// Whether the search was stopped before its end.
    pub interrupted: bool,
}

impl SearchReport {
    /// Of a search.
    pub fn new(
        setup: Setup,
        steps: Vec<Trial>,
        found: Found,
        peer_error: Option<String>,
        interrupted: bool,
    ) -> Self {
        let share_of_line_rate = found.rate.map(|rate| rate / setup.line_rate);
        let limited_by = limited_by(&steps);
        Self { setup, steps, found, limited_by, peer_error, share_of_line_rate, interrupted }
    }
}

/// Why the responder dropped most packets in the trial of the lowest rate with loss, if at
/// least half of what was lost in it was dropped there.
fn limited_by(trials: &[Trial]) -> Option<String> {
    let lossy = trials.iter().filter(|trial| trial.step.lost > 0);
    let loss = lossy.min_by_key(|trial| trial.step.rate)?.loss.as_ref()?;
    let dropped: u64 = loss.dropped.values().sum();
    let most = loss.dropped.iter().max_by_key(|(_, count)| **count);
    most.filter(|_| dropped * 2 >= loss.total()).map(|(reason, _)| reason.clone())
}

impl fmt::Display for SearchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.setup)?;
        writeln!(
            f,
            "{:>6}{:>14}{:>14}{:>12}{:>10}",
            "trial", "requested/s", "offered/s", "sent", "lost"
        )?;
        for (number, step) in (1..).zip(&self.steps) {
            let Step { rate, offered, sent, lost } = step.step;
            writeln!(f, "{number:>6}{rate:>14}{offered:>14.0}{sent:>12}{lost:>10}")?;
        }
        match self.found.rate {
            Some(rate) => {
                let share = rate * 100.0 / self.setup.line_rate;
                let limit = match self.found.limit {
                    Limit::Loss => "above it packets are lost",
                    Limit::Sender => "the sender cannot send more",
                    Limit::Ceiling => "the highest rate to try",
                };
                writeln!(
                    f,
                    "highest rate without loss: {rate:.0}/s, {share:.2} % of {:.2}/s; {limit}",
                    self.setup.line_rate
                )?;
            }
            None => writeln!(f, "no rate without loss was found")?,
        }
        if let Some(reason) = &self.limited_by {
            writeln!(
                f,
                "the responder dropped most of the lost packets: {reason}; this is that limit, not what it can answer"
            )?;
        }
        if let Some(error) = &self.peer_error {
            writeln!(f, "the responder's ledger could not be read for every trial: {error}")?;
        }
        if self.interrupted {
            writeln!(f, "stopped before the end")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_none_some_and_most() {
        assert_eq!(bars(&[0, 1, 50, 100]), " ▁▅█");
        assert_eq!(bars(&[0, 0]), "  ");
        assert_eq!(bars(&[1; 600]).chars().count(), 60);
    }

    #[test]
    fn a_limit_is_named_where_most_was_dropped_for_it() {
        let trial = |rate, lost, lost_forward, dropped: &[(&str, u64)]| {
            let dropped = dropped.iter().map(|&(reason, count)| (reason.to_owned(), count));
            Trial {
                step: Step { rate, offered: rate as f64, sent: 1000, lost },
                loss: Some(Loss { lost_forward, dropped: dropped.collect(), ..Loss::default() }),
            }
        };
        let drops = [("denied", 1), ("source_limit", 40)];
        let limit = Some("source_limit".to_owned());
        // Of the trials with loss the one of the lowest rate counts.
        let high = trial(2000, 900, 900, &[]);
        let low = trial(1000, 41, 0, &drops);
        assert_eq!(limited_by(&[high, low, trial(500, 0, 0, &[])]), limit);
        // Most was lost elsewhere, nothing was lost, or no ledger was read.
        assert_eq!(limited_by(&[trial(1000, 100, 59, &drops)]), None);
        assert_eq!(limited_by(&[trial(1000, 0, 0, &[])]), None);
        assert_eq!(limited_by(&[Trial { loss: None, ..trial(1000, 41, 0, &drops) }]), None);
    }
}
