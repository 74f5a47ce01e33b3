//! The largest packet that passes a path whole: RFC 1191 and RFC 8201, and where ICMP is filtered by
//! search, as RFC 8899 does it.
//!
//! Packets of a length are sent that no router may cut. One that is answered (by "no such port", or an
//! echo reply) has passed. One that a router finds too big says which length the next link takes. One
//! that is not answered by anybody although a small one is, is too long as well: some routers do not
//! say so, or what they say is filtered. Between a length that passed and one that did not it is
//! searched, first among the lengths that links have.
//!
//! An echo reply is as long as its request, so what is found by echo is the least MTU of both directions.

use super::{
    apart::{Stop, apart},
    context::{Context, Forbidden, Refusal},
    icmp::{self, Cause, Family},
    socket::{Hearing, Message, Transport},
};
use config::Problem;
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

/// Longest packet that is tried, in bytes with the IP header.
const MOST: u32 = 65_535;
/// What every path of IPv4 takes (RFC 791, section 3.2), and our own header and mark.
const LEAST_V4: u32 = 68;
/// What every path of IPv6 takes (RFC 8200, section 5).
const LEAST_V6: u32 = 1280;
/// Most packets of one length.
const MOST_ATTEMPTS: u8 = 10;
/// Longest wait for an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Lengths that links have, longest first: RFC 1191, section 7.1, and Ethernet's of today with what
/// tunnels leave of them.
const PLATEAUS: [u32; 22] = [
    65_535, 32_000, 17_914, 9216, 9000, 8166, 4352, 2002, 1500, 1492, 1480, 1472, 1460, 1450, 1420,
    1400, 1360, 1280, 1006, 576, 508, 296,
];
/// Bytes that identify the sender of a packet.
const MARK: usize = 8;

/// How an MTU is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What is sent.
    pub transport: Transport,
    /// Packets of a length that are not answered before it counts as too long.
    pub attempts: u8,
    /// An answer that takes longer does not come.
    #[serde(with = "humantime_serde")]
    pub wait: Duration,
    /// Destination port (UDP), one that nobody uses.
    pub port: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self { transport: Transport::Udp, attempts: 3, wait: Duration::from_secs(1), port: 33_434 }
    }
}

impl Settings {
    /// What is wrong with the values.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.attempts == 0 || self.attempts > MOST_ATTEMPTS {
            wrong("attempts", format!("must be 1 to {MOST_ATTEMPTS}"));
        }
        if self.wait.is_zero() || self.wait > LONGEST_WAIT {
            wrong("wait", format!("must be more than 0 and at most {LONGEST_WAIT:?}"));
        }
        if self.port == 0 {
            wrong("port", "must not be 0".to_owned());
        }
        problems
    }

    /// How long it takes at most.
    pub fn longest(&self) -> Duration {
        // The plateaus, and 15 halvings of the widest gap between two.
        self.wait * u32::from(self.attempts) * (PLATEAUS.len() as u32 + 15 + 1)
    }
}

/// No MTU could be looked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value is out of its limits.
    #[error("{0}")]
    Settings(Problem),
    /// The address did not agree.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// No socket, or no route.
    #[error("opening a socket to find the MTU of the path to {to}: {source}")]
    Open {
        /// The destination.
        to: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// A packet could not be sent, or the socket failed.
    #[error("finding the MTU of the path to {to}: {source}")]
    Socket {
        /// The destination.
        to: IpAddr,
        /// The system's answer.
        source: io::Error,
    },
}

/// Finds the path's MTU in bytes with the IP header; `None` when not even the smallest packet is
/// answered, so that nothing is known.
///
/// # Errors
/// When nothing can be sent.
pub async fn run(to: IpAddr, settings: &Settings, context: &Context) -> Result<Option<u32>, Error> {
    if let Some(problem) = settings.problems().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    context.check(to)?;
    let identifier = rand::random();
    let open = || {
        let socket = match settings.transport {
            Transport::Udp => Hearing::udp(SocketAddr::new(to, settings.port))?,
            Transport::Icmp => Hearing::echo(to, identifier)?,
        };
        socket.never_fragment()?;
        Ok(socket)
    };
    let socket = open().map_err(|source| Error::Open { to, source })?;
    let (settings, context, mark) = (settings.clone(), context.clone(), rand::random());
    let test = Test { socket, to, settings, mark, context, sent: 0 };
    apart(|stop| test.run(stop)).await.map_err(|source| Error::Socket { to, source })
}

/// What is known of the length that passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Search {
    /// The longest that passed; `None` before one did.
    passed: Option<u32>,
    /// The shortest that did not pass.
    failed: u32,
    least: u32,
    /// What a router reported that its link takes; it is tried before anything else.
    reported: Option<u32>,
}

impl Search {
    fn new(family: Family) -> Self {
        let least = match family {
            Family::V4 => LEAST_V4,
            Family::V6 => LEAST_V6,
        };
        Self { passed: None, failed: MOST + 1, least, reported: None }
    }

    /// The next length to try; `None` when all is known, or that nothing can be.
    fn next(&self) -> Option<u32> {
        // Nothing is known of lengths as long as not even the least is answered.
        let Some(passed) = self.passed else {
            return (self.failed > self.least).then_some(self.least);
        };
        if passed + 1 >= self.failed {
            return None;
        }
        let within = |length: &u32| (passed + 1..self.failed).contains(length);
        if let Some(reported) = self.reported.filter(|reported| within(reported)) {
            return Some(reported);
        }
        // One longer than a plateau that passed: it fails, and then that is the MTU.
        let likely = passed > self.least && PLATEAUS.contains(&passed);
        if likely || self.reported == Some(passed) {
            return Some(passed + 1);
        }
        let plateau = PLATEAUS.into_iter().find(|length| within(length));
        Some(plateau.unwrap_or(passed + (self.failed - passed) / 2))
    }

    fn passed(&mut self, length: u32) {
        self.passed = self.passed.max(Some(length));
    }

    /// A length did not pass, and perhaps an error reported which does.
    fn failed(&mut self, length: u32, reported: Option<u32>) {
        self.failed = self.failed.min(length);
        // Zero (RFC 1191, section 5), or no less than what was sent, has no information.
        self.reported =
            reported.filter(|reported| (self.least..length).contains(reported)).or(self.reported);
    }
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    TooBig(Option<u32>),
    /// Neither it nor an error about it came back.
    Nothing,
}

/// A test in progress.
struct Test {
    socket: Hearing,
    to: IpAddr,
    settings: Settings,
    mark: [u8; MARK],
    context: Context,
    /// Packets so far; their numbers.
    sent: u16,
}

impl Test {
    fn run(mut self, stop: &Stop) -> io::Result<Option<u32>> {
        let mut search = Search::new(self.socket.family());
        while let Some(length) = search.next() {
            match self.attempts(length, stop)? {
                Outcome::Passed => search.passed(length),
                Outcome::TooBig(reported) => search.failed(length, reported),
                Outcome::Nothing => search.failed(length, None),
            }
            if stop.is_set() {
                return Ok(None);
            }
        }
        Ok(search.passed)
    }

    /// Sends packets of a length until one is answered.
    fn attempts(&mut self, length: u32, stop: &Stop) -> io::Result<Outcome> {
        for _ in 0..self.settings.attempts {
            let outcome = self.attempt(length, stop)?;
            if outcome != Outcome::Nothing || stop.is_set() {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Nothing)
    }

    fn attempt(&mut self, length: u32, stop: &Stop) -> io::Result<Outcome> {
        let number = self.sent;
        self.sent = self.sent.wrapping_add(1);
        // What came about earlier packets must not be taken for an answer to this one.
        while self.socket.receive()?.is_some() {}
        match self.socket.send(&self.packet(length, number)) {
            Ok(_) => {}
            // Longer than the interface takes, whose MTU is in the error queue.
            Err(error) if error.raw_os_error() == Some(nix::libc::EMSGSIZE) => {
                return self.listen(Instant::now(), number, length, stop).map(
                    |outcome| match outcome {
                        Outcome::Nothing => Outcome::TooBig(None),
                        outcome => outcome,
                    },
                );
            }
            Err(error) => return Err(error),
        }
        self.listen(Instant::now() + self.settings.wait, number, length, stop)
    }

    /// A packet of this length with all headers.
    fn packet(&self, length: u32, number: u16) -> Vec<u8> {
        let family = self.socket.family();
        let header = match family {
            Family::V4 => 20 + 8,
            Family::V6 => 40 + 8,
        };
        let mut payload = [self.mark.as_slice(), &number.to_be_bytes()].concat();
        payload.resize((length as usize).saturating_sub(header), 0);
        match self.settings.transport {
            Transport::Udp => payload,
            Transport::Icmp => {
                icmp::request(family, self.socket.identifier().unwrap_or(0), number, &payload)
            }
        }
    }

    /// Waits for the outcome of the packet of this number.
    fn listen(
        &mut self,
        until: Instant,
        number: u16,
        length: u32,
        stop: &Stop,
    ) -> io::Result<Outcome> {
        let (family, identifier) = (self.socket.family(), self.socket.identifier());
        let whose = Whose {
            family,
            transport: self.settings.transport,
            identifier,
            mark: self.mark,
            to: self.to,
        };
        loop {
            while let Some(message) = self.socket.receive()? {
                match whose.outcome(number, length, &message) {
                    Ok(Some(outcome)) => return Ok(outcome),
                    Ok(None) => {}
                    Err(Malformed) => self.context.counters.refuse(Refusal::Icmp),
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || stop.is_set() {
                return Ok(Outcome::Nothing);
            }
            self.socket.wait(left)?;
        }
    }
}

/// An answer that nobody can have sent to us.
struct Malformed;

/// By what answers to a test are known.
struct Whose {
    family: Family,
    transport: Transport,
    identifier: Option<u16>,
    mark: [u8; MARK],
    to: IpAddr,
}

impl Whose {
    /// What a message says of the packet of this number and length; `None`: nothing.
    fn outcome(
        &self,
        number: u16,
        length: u32,
        message: &Message<'_>,
    ) -> Result<Option<Outcome>, Malformed> {
        let Some(error) = &message.error else { return self.reply(number, message.bytes) };
        if error.from.is_none() {
            // This machine says what its interface takes.
            return Ok(error.mtu.map(|mtu| Outcome::TooBig(Some(mtu))));
        }
        let quoted = match self.transport {
            Transport::Udp => match message.bytes.split_first_chunk::<MARK>() {
                Some((found, rest)) if *found == self.mark => {
                    rest.first_chunk().map(|number| u16::from_be_bytes(*number))
                }
                Some(_) => return Err(Malformed),
                None => None,
            },
            Transport::Icmp => icmp::quoted_sequence(self.family, message.bytes),
        };
        // What quotes too little is about the packet that is in flight.
        if quoted.is_some_and(|quoted| quoted != number) {
            return Ok(None);
        }
        match icmp::cause(self.family, error.kind, error.code) {
            // Whatever the destination has against it, it is there.
            Cause::NoPort | Cause::Unreachable(_) if error.from == Some(self.to) => {
                Ok(Some(Outcome::Passed))
            }
            Cause::TooBig => {
                // Who finds a packet too big for a link that takes it says nothing that can be used.
                let mtu = error.mtu.filter(|mtu| *mtu < length);
                Ok(Some(Outcome::TooBig(mtu)))
            }
            _ => Ok(None),
        }
    }

    fn reply(&self, number: u16, bytes: &[u8]) -> Result<Option<Outcome>, Malformed> {
        match self.transport {
            // Somebody uses the port and answers; which packet it was that passed is not known.
            Transport::Udp => Ok(None),
            Transport::Icmp => match icmp::reply(self.family, self.identifier.is_some(), bytes) {
                Ok(Some(echo)) => {
                    let theirs = self.identifier.is_some_and(|own| own != echo.identifier.0);
                    let ours = echo.sequence.0 == number && echo.payload.starts_with(&self.mark);
                    Ok((!theirs && ours).then_some(Outcome::Passed))
                }
                Ok(None) => Ok(None),
                Err(_) => Err(Malformed),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches a path of this MTU, whose routers say so or not, behind an interface that takes so much;
    /// the result and how many lengths were tried.
    fn find(family: Family, mtu: u32, interface: u32, routers_say: bool) -> (Option<u32>, usize) {
        let mut search = Search::new(family);
        let mut tried = 0;
        while let Some(length) = search.next() {
            tried += 1;
            assert!(tried < 100, "{search:?}");
            if length > interface {
                search.failed(length, Some(interface));
            } else if length > mtu {
                search.failed(length, routers_say.then_some(mtu));
            } else {
                search.passed(length);
            }
        }
        (search.passed, tried)
    }

    #[test]
    fn a_path_that_says_its_mtu_takes_few_packets() {
        for (mtu, most) in [(1500, 4), (1492, 5), (1400, 5), (1280, 5)] {
            for family in [Family::V4, Family::V6] {
                let (found, tried) = find(family, mtu, 1500, true);
                assert_eq!(found, Some(mtu));
                assert!(tried <= most, "{mtu}: {tried}");
            }
        }
        assert_eq!(find(Family::V4, 68, 1500, true).0, Some(68));
    }

    #[test]
    fn a_path_shorter_than_the_least_is_not_known() {
        assert_eq!(find(Family::V6, 1279, 1500, false).0, None);
        assert_eq!(find(Family::V4, 60, 1500, true).0, None);
    }

    #[test]
    fn a_router_that_lies_cannot_keep_the_search_from_its_end() {
        for reported in [0, 1, 1500, u32::MAX] {
            let mut search = Search::new(Family::V4);
            let mut tried = 0;
            while let Some(length) = search.next() {
                tried += 1;
                assert!(tried < 100, "{search:?}");
                if length > 1000 {
                    search.failed(length, Some(reported))
                } else {
                    search.passed(length)
                }
            }
            assert_eq!(search.passed, Some(1000), "reported {reported}");
        }
    }

    proptest! {
        #[test]
        fn every_mtu_is_found(mtu in 68..=9000u32, interface in 1280..=9000u32, say: bool) {
            let (found, tried) = find(Family::V4, mtu, interface, say);
            prop_assert_eq!(found, Some(mtu.min(interface)));
            prop_assert!(tried <= PLATEAUS.len() + 16, "{}", tried);
            let (found, _) = find(Family::V6, mtu, interface, say);
            prop_assert_eq!(found, Some(mtu.min(interface)).filter(|mtu| *mtu >= LEAST_V6));
        }
    }
}
