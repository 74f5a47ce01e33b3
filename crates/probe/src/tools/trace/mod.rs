//! The routers on the path to an address: Paris traceroute (Augustin et al., 2006).
//!
//! Routers that spread flows over several links choose by addresses, protocol, and the first four bytes
//! behind the IP header: ports of UDP, type, code and checksum of ICMP. All packets of a test are equal
//! in those, so that all take one path: over UDP both ports stay, over ICMP two bytes of the payload
//! make up for the number that changes. A number in the payload distinguishes the packets that
//! errors quote, or ICMP's own. Which packet leaves when is in `tracer`.
//!
//! Nothing here takes rights: see `socket` and docs/decisions/158-errors-from-the-queue.md.

mod tracer;

pub use super::socket::Transport;
use super::{
    apart::{Stop, apart},
    context::{Context, Forbidden, Refusal},
    icmp::{self, Cause, Family},
    pmtu,
    socket::{Hearing, Message, Sent},
};
use crate::record::Trace;
use config::Problem;
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};
use tracer::{Answer, Meaning, Step, Tracer};

/// Most hops that can be asked for.
const MOST_HOPS: u8 = 64;
/// Most packets to each hop.
const MOST_ATTEMPTS: u8 = 10;
/// Longest wait for an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Bytes that identify the sender of a packet.
const MARK: usize = 8;

/// How a path is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What is sent.
    pub transport: Transport,
    /// Most hops.
    pub hops: u8,
    /// Packets to each hop.
    pub attempts: u8,
    /// A hop that does not answer for so long is silent.
    #[serde(with = "humantime_serde")]
    pub wait: Duration,
    /// After so many silent hops there is no path to be seen.
    pub silent: u8,
    /// Destination port (UDP); another one may be another path where routers spread flows.
    pub port: u16,
    /// Find the path's MTU as well.
    pub mtu: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transport: Transport::Udp,
            hops: 30,
            attempts: 3,
            wait: Duration::from_secs(1),
            silent: 5,
            port: 33_434,
            mtu: false,
        }
    }
}

impl Settings {
    /// What is wrong with the values.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.hops == 0 || self.hops > MOST_HOPS {
            wrong("hops", format!("must be 1 to {MOST_HOPS}"));
        }
        if self.attempts == 0 || self.attempts > MOST_ATTEMPTS {
            wrong("attempts", format!("must be 1 to {MOST_ATTEMPTS}"));
        }
        if self.wait.is_zero() || self.wait > LONGEST_WAIT {
            wrong("wait", format!("must be more than 0 and at most {LONGEST_WAIT:?}"));
        }
        if self.silent == 0 {
            wrong("silent", "must be at least 1".to_owned());
        }
        if self.port == 0 {
            wrong("port", "must not be 0".to_owned());
        }
        problems
    }

    /// How long it takes at most.
    pub fn longest(&self) -> Duration {
        // Twice: what could not be distinguished is sent again, one after the other.
        let trace = self.wait * 2 * u32::from(self.hops) * u32::from(self.attempts);
        if self.mtu { trace + self.mtu_settings().longest() } else { trace }
    }

    fn mtu_settings(&self) -> pmtu::Settings {
        pmtu::Settings {
            transport: self.transport,
            wait: self.wait,
            port: self.port,
            ..pmtu::Settings::default()
        }
    }
}

/// No path could be looked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value is out of its limits.
    #[error("{0}")]
    Settings(Problem),
    /// The address did not agree.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// No socket, or no route.
    #[error("opening a socket to trace the path to {to}: {source}")]
    Open {
        /// The destination.
        to: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// A packet could not be sent, or the socket failed.
    #[error("tracing the path to {to}: {source}")]
    Socket {
        /// The destination.
        to: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The path's MTU.
    #[error(transparent)]
    Mtu(#[from] pmtu::Error),
}

/// Traces the path.
///
/// # Errors
/// When nothing can be sent; that nobody answers is no error.
pub async fn run(to: IpAddr, settings: &Settings, context: &Context) -> Result<Trace, Error> {
    if let Some(problem) = settings.problems().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    context.check(to)?;
    let identifier = rand::random();
    let opened = match settings.transport {
        Transport::Udp => Hearing::udp(SocketAddr::new(to, settings.port)),
        Transport::Icmp => Hearing::echo(to, identifier),
    };
    let socket = opened.map_err(|source| Error::Open { to, source })?;
    let mark: [u8; MARK] = rand::random();
    let (work, counted) = (settings.clone(), context.clone());
    let test = Test { socket, to, settings: work, mark, context: counted, sent: Vec::new() };
    let traced = apart(|stop| test.run(stop)).await;
    let mut trace = traced.map_err(|source| Error::Socket { to, source })?;
    if settings.mtu && trace.reached {
        trace.mtu_bytes = pmtu::run(to, &settings.mtu_settings(), context).await?;
    }
    Ok(trace)
}

/// A test in progress.
struct Test {
    socket: Hearing,
    to: IpAddr,
    settings: Settings,
    mark: [u8; MARK],
    context: Context,
    /// By number.
    sent: Vec<Sent>,
}

impl Test {
    fn run(mut self, stop: &Stop) -> io::Result<Trace> {
        let mut tracer = Tracer::new(&self.settings);
        let begin = Instant::now();
        while !stop.is_set() {
            match tracer.step(begin.elapsed()) {
                Step::Send { number, distance } => {
                    self.socket.set_ttl(distance)?;
                    let packet = packet(&self.socket, self.settings.transport, &self.mark, number);
                    self.sent.push(self.socket.send(&packet)?);
                }
                Step::Wait { until } => {
                    self.socket.wait(until.saturating_sub(begin.elapsed()))?;
                    self.take(&mut tracer, begin)?;
                }
                Step::Done => break,
            }
        }
        Ok(Trace { hops: tracer.hops(), reached: tracer.reached(), mtu_bytes: None })
    }

    /// Takes what is there.
    fn take(&mut self, tracer: &mut Tracer, begin: Instant) -> io::Result<()> {
        let (family, identifier) = (self.socket.family(), self.socket.identifier());
        let transport = self.settings.transport;
        while let Some(message) = self.socket.receive()? {
            let read = read(family, transport, identifier, &self.mark, self.to, &message);
            let Read::Answer { number, from, meaning, extensions } = read else {
                if matches!(read, Read::Refused) {
                    self.context.counters.refuse(Refusal::Icmp);
                }
                continue;
            };
            let number = tracer.number(number);
            let Some(sent) = number.and_then(|number| self.sent.get(usize::from(number))) else {
                if number.is_some() {
                    self.context.counters.refuse(Refusal::Icmp);
                }
                // Nobody knows which packet it is about: from now on they leave one by one.
                tracer.confused(begin.elapsed());
                continue;
            };
            let round_trip_ns = sent.round_trip(&message.at).estimate_ns.unsigned_abs();
            let answer = Answer { from, meaning, round_trip_ns, extensions };
            tracer.answer(number.unwrap_or_default(), answer);
        }
        Ok(())
    }
}

/// A packet that differs from the others only where routers do not look.
fn packet(socket: &Hearing, transport: Transport, mark: &[u8; MARK], number: u16) -> Vec<u8> {
    match transport {
        Transport::Udp => [mark.as_slice(), &number.to_be_bytes()].concat(),
        Transport::Icmp => {
            // Number and complement add up to the same in every checksum (RFC 1071).
            let payload = [mark.as_slice(), &(!number).to_be_bytes()].concat();
            icmp::request(socket.family(), socket.identifier().unwrap_or(0), number, &payload)
        }
    }
}

/// The outcome of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Read {
    /// An answer, and to which packet if it says so.
    Answer { number: Option<u16>, from: IpAddr, meaning: Meaning, extensions: Vec<String> },
    /// Something that is for others, or carries no information.
    Nothing,
    /// Malformed, or not about what was sent.
    Refused,
}

fn read(
    family: Family,
    transport: Transport,
    identifier: Option<u16>,
    mark: &[u8; MARK],
    to: IpAddr,
    message: &Message<'_>,
) -> Read {
    let Some(error) = &message.error else {
        return arrived(family, transport, identifier, to, message.bytes);
    };
    // What this machine itself says is about its own interface.
    let Some(from) = error.from else { return Read::Nothing };
    let at = error.extensions.unwrap_or(message.bytes.len());
    let (quoted, rest) = message.bytes.split_at_checked(at).unwrap_or((message.bytes, &[]));
    let number = match transport {
        Transport::Udp => match quoted.split_first_chunk::<MARK>() {
            Some((found, rest)) if found == mark => {
                rest.first_chunk().map(|number| u16::from_be_bytes(*number))
            }
            Some(_) => return Read::Refused,
            None => None,
        },
        Transport::Icmp => {
            // A raw socket hears errors about packets of others as well.
            let theirs = quoted
                .get(4..6)
                .is_some_and(|found| identifier.is_some_and(|own| found != own.to_be_bytes()));
            if theirs {
                return Read::Nothing;
            }
            icmp::quoted_sequence(family, quoted)
        }
    };
    let extensions = match error.extensions.map(|_| icmp::extensions(rest)) {
        None => Vec::new(),
        Some(Ok(extensions)) => extensions,
        // The answer counts even if what was added to it cannot be read.
        Some(Err(_)) => vec!["extensions that cannot be read".to_owned()],
    };
    let meaning = match icmp::cause(family, error.kind, error.code) {
        Cause::TimeExceeded => Meaning::OnTheWay,
        Cause::NoPort if from == to => Meaning::Arrived,
        Cause::NoPort => Meaning::End("port unreachable".to_owned()),
        Cause::TooBig => Meaning::End("packet too big".to_owned()),
        Cause::Unreachable(words) => Meaning::End(words),
        Cause::Other(_) => return Read::Nothing,
    };
    Read::Answer { number, from, meaning, extensions }
}

/// Something that is no error.
fn arrived(
    family: Family,
    transport: Transport,
    identifier: Option<u16>,
    to: IpAddr,
    bytes: &[u8],
) -> Read {
    let answer = |number| Read::Answer {
        number,
        from: to,
        meaning: Meaning::Arrived,
        extensions: Vec::new(),
    };
    match transport {
        // Somebody uses the port and answers, whatever that is.
        Transport::Udp => answer(None),
        Transport::Icmp => match icmp::reply(family, identifier.is_some(), bytes) {
            Ok(Some(echo)) if identifier.is_none_or(|own| own == echo.identifier.0) => {
                answer(Some(echo.sequence.0))
            }
            Ok(_) => Read::Nothing,
            Err(_) => Read::Refused,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_their_limits_are_named() {
        assert_eq!(Settings::default().problems(), []);
        let settings = Settings {
            hops: 65,
            attempts: 0,
            wait: Duration::ZERO,
            silent: 0,
            port: 0,
            ..Settings::default()
        };
        let keys: Vec<_> = settings.problems().into_iter().map(|problem| problem.key).collect();
        assert_eq!(keys, ["hops", "attempts", "wait", "silent", "port"]);
    }

    #[test]
    fn all_echo_requests_have_one_checksum() {
        for family in [Family::V4, Family::V6] {
            let sums: std::collections::BTreeSet<_> = (0..2000u16)
                .map(|number| {
                    let payload = [[7; MARK].as_slice(), &(!number).to_be_bytes()].concat();
                    let bytes = icmp::request(family, 99, number, &payload);
                    u16::from_be_bytes([bytes[2], bytes[3]])
                })
                .collect();
            assert_eq!(sums.len(), 1, "{family:?}: {sums:?}");
        }
    }
}
