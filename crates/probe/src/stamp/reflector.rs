//! The Session-Reflector as a value (RFC 8762, section 4.3): stateful, for agreed senders only, and
//! never with more bytes than it got.
//!
//! A session is agreed on with its sender's address and, as far as they are agreed on, its port and SSID;
//! the one that says most about a packet is its session (RFC 8972, section 3). A packet is judged in this
//! order: agreed on, long enough, authentic, not corrupt, not a replay, within its rate.
//!
//! A packet that came before is refused as a replay where it is authenticated. Where it is not, whoever can
//! send it again could as well make a new one, and what is seen is rather the network's duplicate: it is
//! reflected, with a number of its own, by which the sender distinguishes duplicates of the forward path from those
//! of the reverse path.

use super::{
    Arrival, ErrorEstimate, Key, MAX_LENGTH, Reading, Reflected, Refusals, Refused, Test,
    Timestamp,
    packet::{authenticated_ssid, base_length, plain_ssid},
    time::Format,
    tlv::{self, Report},
};
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// What is agreed on with a sender.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Where its test packets come from.
    pub address: IpAddr,
    /// The port they come from; any without.
    pub port: Option<u16>,
    /// Their SSID; any without, as of TWAMP Light, which has padding there.
    pub ssid: Option<u16>,
    /// The key of authenticated mode; without one, packets are unauthenticated.
    pub key: Option<Key>,
    /// Whether what follows the base packet are extensions; for TWAMP Light it is padding.
    pub extensions: bool,
    /// Packets a second, and at once.
    pub rate: Rate,
}

/// How many packets a sender may have reflected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Packets a second, at least one.
    pub per_second: u32,
    /// Packets at once, at least one.
    pub burst: u32,
}

/// By what a session is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey {
    address: IpAddr,
    port: Option<u16>,
    ssid: Option<u16>,
}

impl SessionKey {
    /// The sender's address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The session's SSID, if it is agreed on.
    pub fn ssid(&self) -> Option<u16> {
        self.ssid
    }
}

impl SessionConfig {
    /// By what its session is found.
    pub fn session(&self) -> SessionKey {
        SessionKey { address: self.address.to_canonical(), port: self.port, ssid: self.ssid }
    }
}

/// A reply that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its session, for [`Reflector::left`].
    pub session: SessionKey,
    /// Its number in the session.
    pub sequence: u32,
    /// The byte for its IP header: DSCP as agreed or as it came, and no ECN.
    pub traffic_class: u8,
}

/// One agreed session.
#[derive(Debug)]
struct Session {
    config: SessionConfig,
    window: Window,
    received: u32,
    reflected: u32,
    /// When the last reflected packets left, as far as the kernel has reported.
    left: Option<(u32, Timestamp)>,
    /// When its bucket will be full again, nanoseconds since 1970.
    full_at_ns: u64,
}

/// The reflector.
#[derive(Debug, Default)]
pub struct Reflector {
    sessions: FxHashMap<SessionKey, Session>,
    refusals: Refusals,
    reflected: u64,
}

impl Reflector {
    /// Agrees on a session, or on it again: with other terms its counters stay.
    pub fn admit(&mut self, config: SessionConfig) {
        match self.sessions.get_mut(&config.session()) {
            Some(session) => session.config = config,
            None => {
                let session = Session {
                    window: Window::default(),
                    received: 0,
                    reflected: 0,
                    left: None,
                    full_at_ns: 0,
                    config,
                };
                self.sessions.insert(session.config.session(), session);
            }
        }
    }

    /// Ends a session; whether there was one.
    pub fn remove(&mut self, session: &SessionKey) -> bool {
        self.sessions.remove(session).is_some()
    }

    /// How many sessions are in force.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Packets refused, by reason.
    pub fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Packets reflected.
    pub fn reflected(&self) -> u64 {
        self.reflected
    }

    /// Judges a packet and writes the reply to it in place of whatever the buffer held; empty when there is
    /// none. `now` is read as late as can be: it is the packet's time of sending.
    ///
    /// # Errors
    /// Why the packet is refused, which is counted.
    pub fn answer(
        &mut self,
        arrival: &Arrival<'_>,
        now: impl FnOnce() -> Reading,
        reply: &mut Vec<u8>,
    ) -> Result<Reply, Refused> {
        reply.clear();
        let answered = match self.find(arrival) {
            Some(session) => session.answer(arrival, now, reply),
            None => Err(Refused::UnknownSession),
        };
        match answered {
            Ok(_) => self.reflected += 1,
            Err(reason) => self.refusals.add(reason),
        }
        answered
    }

    /// Says when the kernel sent a reply, nanoseconds since 1970.
    pub fn left(&mut self, session: &SessionKey, sequence: u32, at_ns: u64) {
        if let Some(session) = self.sessions.get_mut(session)
            && session.left.is_none_or(|(last, _)| sequence.wrapping_sub(last) as i32 > 0)
        {
            session.left = Some((sequence, Timestamp::from_unix_ns(at_ns)));
        }
    }

    /// The session that says most about where a packet comes from.
    fn find(&mut self, arrival: &Arrival<'_>) -> Option<&mut Session> {
        let (address, port) = (arrival.from.ip().to_canonical(), Some(arrival.from.port()));
        let mut keys = [None; 6];
        // The SSID is at another place in authenticated mode, so what it is depends on the session.
        let ssids = [plain_ssid(arrival.bytes), authenticated_ssid(arrival.bytes), None];
        let all = [port, None].into_iter().flat_map(|port| ssids.map(|ssid| (port, ssid)));
        for (key, (port, ssid)) in keys.iter_mut().zip(all) {
            *key = Some(SessionKey { address, port, ssid });
        }
        let authenticated = [false, true, false, false, true, false];
        let found = keys.into_iter().flatten().zip(authenticated).find_map(|(key, has_key)| {
            let session = self.sessions.get(&key)?;
            let fits = key.ssid.is_none() || session.config.key.is_some() == has_key;
            fits.then_some(key)
        })?;
        self.sessions.get_mut(&found)
    }
}

impl Session {
    fn answer(
        &mut self,
        arrival: &Arrival<'_>,
        now: impl FnOnce() -> Reading,
        reply: &mut Vec<u8>,
    ) -> Result<Reply, Refused> {
        let key = self.config.key.as_ref();
        let bytes = &arrival.bytes[..arrival.bytes.len().min(MAX_LENGTH)];
        let test = Test::parse(bytes, key)?;
        let fresh = self.window.take(&test);
        if fresh == Fresh::Seen && key.is_some() {
            return Err(Refused::Replayed);
        }
        if fresh == Fresh::Restart {
            // The sender began again: so does the count of what is reflected to it.
            (self.received, self.reflected, self.left) = (0, 0, None);
        }
        self.received = self.received.wrapping_add(1);
        if !take_one(&mut self.full_at_ns, self.config.rate, arrival.at_ns) {
            return Err(Refused::OverRate);
        }
        let (sequence, base) = (self.reflected, base_length(key.is_some()));
        let reported = Report {
            traffic_class: arrival.traffic_class,
            synchronised: false,
            received: self.received,
            reflected: self.reflected,
            left: self.left,
        };
        let now = now();
        let reflected = Reflected {
            sequence,
            timestamp: Timestamp::from_unix_ns(now.ns),
            error: ErrorEstimate::from_ns(now.error.nanoseconds),
            ssid: test.ssid,
            received: Timestamp::from_unix_ns(arrival.at_ns),
            sender_sequence: test.sequence,
            sender_timestamp: test.timestamp,
            sender_error: test.error,
            sender_ttl: arrival.ttl,
        };
        reflected.emit(key, reply);
        reply.truncate(bytes.len());
        let rest = bytes.get(base..).unwrap_or_default();
        reply.extend_from_slice(rest);
        let mut dscp = arrival.traffic_class >> 2;
        if self.config.extensions && !rest.is_empty() {
            let reported = Report { synchronised: now.error.nanoseconds.is_some(), ..reported };
            let tail = &mut reply[base..];
            let answered =
                tlv::answer(tail, (test.sequence, sequence), key, key.is_some(), &reported);
            dscp = answered.dscp.unwrap_or(dscp);
        }
        self.reflected = self.reflected.wrapping_add(1);
        Ok(Reply { session: self.config.session(), sequence, traffic_class: dscp << 2 })
    }
}

/// Takes one packet from a session's bucket, which is full again at this time (ITU-T I.371, annex A). A clock
/// that was set back far finds it full.
fn take_one(full_at_ns: &mut u64, Rate { per_second, burst }: Rate, now_ns: u64) -> bool {
    let interval = 1_000_000_000 / u64::from(per_second.max(1));
    let tolerance = interval.saturating_mul(u64::from(burst.max(1)));
    let ahead = full_at_ns.saturating_sub(now_ns);
    let ahead = if ahead > tolerance { 0 } else { ahead };
    if ahead + interval > tolerance {
        return false;
    }
    *full_at_ns = now_ns + ahead + interval;
    true
}

/// Which of the last packets of a session came: a bit for each of [`Window::WIDTH`] numbers.
#[derive(Debug, Default)]
struct Window {
    /// The number after the highest one; `None` before any packet.
    next: Option<u32>,
    /// Bit n: whether `next - 1 - n` came.
    came: u128,
    /// The sender's time of the packet that was sent last.
    newest: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fresh {
    /// It has not come before.
    New,
    /// It came before, or is so old that this is no longer known.
    Seen,
    /// An old number in a packet that was sent after all others: the sender began again.
    Restart,
}

impl Window {
    const WIDTH: u32 = u128::BITS;

    fn take(&mut self, test: &Test) -> Fresh {
        let later = test.timestamp.since(self.newest, Format::Ntp) > 0;
        let Some(next) = self.next else {
            self.begin(test);
            return Fresh::New;
        };
        let ahead = test.sequence.wrapping_sub(next) as i32;
        if ahead >= 0 {
            let shift = ahead as u32 + 1;
            self.came = self.came.checked_shl(shift).unwrap_or(0) | 1;
            self.next = Some(test.sequence.wrapping_add(1));
            if later {
                self.newest = test.timestamp;
            }
            return Fresh::New;
        }
        let back = ahead.unsigned_abs() - 1;
        if back < Self::WIDTH && self.came & 1 << back == 0 {
            self.came |= 1 << back;
            return Fresh::New;
        }
        if later {
            self.begin(test);
            return Fresh::Restart;
        }
        Fresh::Seen
    }

    fn begin(&mut self, test: &Test) {
        *self = Self { next: Some(test.sequence.wrapping_add(1)), came: 1, newest: test.timestamp };
    }
}

#[cfg(test)]
mod tests;
