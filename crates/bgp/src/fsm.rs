//! The session's state machine (RFC 4271 section 8), without sockets and without a clock.
//!
//! It takes events and a reading of the clock, and gives back [`Effect`]s, bytes to write
//! ([`Fsm::transmit`]) and the time at which it wants to be called again ([`Fsm::deadline`]).
//!
//! ```text
//!            retry             TCP is up          OPEN           KEEPALIVE
//!   Idle ------------> Connect ---------> OpenSent ----> OpenConfirm ----> Established
//!    ^                 |     ^               |               |                  |
//!    |         refused v     | retry         v               v                  v
//!    |                 Active-+        any error: NOTIFICATION, close, a pause
//!    +-----------------------------------------------------------------------------
//! ```
//!
//! It only ever connects and never listens, so there is one connection and no collision to resolve (RFC
//! 4271 section 6.8); the neighbour's own attempts are refused by the system. Routes go out when the
//! neighbour reads them: the desired routes are compared with the advertised ones each time there is
//! room.

mod timers;

use crate::{
    message::{
        self, Families, Family, Kind,
        notification::{self, Notification},
        open,
        update::{self, Terms},
    },
    observed::{Counters, State},
    rib::{Entry, RibOut},
    route::Routes,
    value::Asn,
};
use ipnet::IpNet;
use std::{
    collections::{BTreeMap, VecDeque},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};
use timers::Timers;

/// A session that lived as long as this was no failure.
const LASTING: Duration = Duration::from_secs(60);
/// How much is handed to the transport at a time.
const BATCH: usize = 16 * message::MAX;

/// What a session needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Our AS number.
    pub local_as: Asn,
    /// The neighbour's AS number.
    pub peer_as: Asn,
    /// Our BGP identifier; our IPv4 address of the connection when absent.
    pub router_id: Option<Ipv4Addr>,
    /// Next hop of IPv4 prefixes; our IPv4 address of the connection when absent.
    pub next_hop4: Option<Ipv4Addr>,
    /// Next hop of IPv6 prefixes; our IPv6 address of the connection when absent.
    pub next_hop6: Option<Ipv6Addr>,
    /// The hold time that we propose, in seconds, at least 3.
    pub hold_time: u16,
    /// What the session is for.
    pub purpose: Purpose,
}

/// What a session is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To announce prefixes. Nothing is learned.
    #[default]
    Announce,
    /// To learn a link-state database (RFC 9552). Nothing is announced.
    LearnLinkState,
}

/// What happens to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The operator wants the session.
    Start,
    /// The operator wants it to end, with a text for the neighbour (RFC 9003).
    Stop(&'a str),
    /// The connection is open; our address of it.
    Connected(IpAddr),
    /// The connection could not be opened; why.
    Refused(&'a str),
    /// Bytes have arrived.
    Received(&'a [u8]),
    /// The neighbour has closed the connection, or it broke; why.
    Closed(&'a str),
    /// BFD has lost the neighbour.
    BfdDown,
    /// Everything that [`Fsm::transmit`] gave has been written.
    Written,
    /// The deadline has come.
    Tick,
}

/// What is to be done about the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Open a connection; give up one that is being opened.
    Connect,
    /// Close it, after these last bytes if they can be written without waiting long.
    Close(Vec<u8>),
}

/// One session.
#[derive(Clone, Debug)]
pub struct Fsm {
    config: Config,
    state: State,
    terms: Option<Terms>,
    rib: RibOut,
    counters: Counters,
    problem: Option<String>,
    /// The last NOTIFICATION since a session was established: the cause of the problems after it.
    notification: Option<String>,
    effects: VecDeque<Effect>,
    /// Received and not yet a whole message: less than [`message::MAX`].
    input: Vec<u8>,
    /// OPEN and KEEPALIVE messages that wait for the transport: one of each at most.
    queue: Vec<u8>,
    keepalive_due: bool,
    established: Option<Instant>,
    timers: Timers,
    /// Our address of the connection.
    local: Option<IpAddr>,
    /// An UPDATE is in flight.
    updating: bool,
    updated: Option<Instant>,
    /// Bodies of UPDATEs that wait to be taken by [`Fsm::learned`].
    learned: Vec<Vec<u8>>,
}

impl Fsm {
    /// A session in the state Idle. `seed` drives the jitter of its timers.
    pub fn new(config: Config, seed: u64) -> Self {
        Self {
            config,
            state: State::Idle,
            terms: None,
            rib: RibOut::default(),
            counters: Counters::default(),
            problem: Some("the session has not been started".into()),
            notification: None,
            effects: VecDeque::new(),
            input: Vec::new(),
            queue: Vec::new(),
            keepalive_due: false,
            established: None,
            timers: Timers::new(seed),
            local: None,
            updating: false,
            updated: None,
            learned: Vec::new(),
        }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Why the session is not up, or what it cannot announce.
    pub fn problem(&self) -> Option<String> {
        let (State::Established, Some(terms)) = (self.state, self.terms) else {
            return match (&self.problem, &self.notification) {
                (Some(problem), Some(notification)) if problem != notification => {
                    Some(format!("{problem}; before that {notification}"))
                }
                (problem, _) => problem.clone(),
            };
        };
        let wanted = self.rib.families();
        let lacks = |family| wanted.has(family) && !terms.carry(family);
        let lacking = match (lacks(Family::Ipv4), lacks(Family::Ipv6)) {
            (false, false) => return None,
            (true, false) => "IPv4",
            (false, true) => "IPv6",
            (true, true) => "IPv4 and IPv6",
        };
        Some(format!(
            "{lacking} prefixes are not advertised; enable {lacking} unicast on the neighbour, and configure a next hop for it"
        ))
    }

    /// The bodies of the UPDATEs received since the last call, on a session that learns. Taken after each
    /// event, they are never more than that event brought.
    pub fn learned(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.learned)
    }

    /// When the last UPDATE was written.
    pub fn updated(&self) -> Option<Instant> {
        self.updated
    }

    /// The routes that have been advertised to the neighbour.
    pub fn advertised(&self) -> &BTreeMap<IpNet, Entry> {
        self.rib.advertised()
    }

    /// Sets the routes that are to be advertised to the neighbour.
    pub fn want(&mut self, routes: Routes) {
        self.rib.want(routes);
    }

    /// The next thing to do about the connection.
    pub fn effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When [`Event::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Takes an event.
    pub fn handle(&mut self, event: Event<'_>, now: Instant) {
        match event {
            Event::Start => {
                if self.state == State::Idle && self.timers.retry.is_none() {
                    self.problem = Some("the session is being opened".into());
                    self.connect(now);
                }
            }
            Event::Stop(text) => self.stop(text),
            Event::Connected(local) => self.connected(local, now),
            Event::Refused(why) => {
                if self.state == State::Connect {
                    self.problem = Some(why.to_owned());
                    self.state = State::Active;
                    self.timers.pause(now);
                }
            }
            Event::Received(bytes) => self.received(bytes, now),
            Event::Closed(why) => {
                if self.has_connection() {
                    self.fail(why.to_owned(), None, now);
                }
            }
            // RFC 5882 section 10.2: the session is ended, whatever its own timers say.
            Event::BfdDown => {
                if self.has_connection() {
                    self.reject(Notification::bfd_down(), now);
                }
            }
            Event::Written => {
                self.timers.send = None;
                self.rib.written(now);
                if std::mem::take(&mut self.updating) {
                    self.updated = Some(now);
                }
            }
            Event::Tick => self.tick(now),
        }
    }

    /// Appends what is to be written next. After that [`Event::Written`] is owed if anything was
    /// appended, and this is not called again before.
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) {
        let start = out.len();
        out.append(&mut self.queue);
        if let (State::Established, Some(terms)) = (self.state, self.terms) {
            while out.len() - start < BATCH && self.rib.next(&terms, out) {
                self.counters.messages_out += 1;
                self.counters.updates_out += 1;
                self.updating = true;
                // RFC 4271 section 8.2.2: an UPDATE restarts the KeepaliveTimer too.
                self.keepalive_due = false;
                self.timers.restart_keepalive(now);
            }
        }
        if std::mem::take(&mut self.keepalive_due) {
            message::keepalive(out);
            self.counters.messages_out += 1;
        }
        if out.len() > start && self.state == State::Established {
            self.timers.restart_send(now);
        }
    }

    fn has_connection(&self) -> bool {
        matches!(self.state, State::OpenSent | State::OpenConfirm | State::Established)
    }

    fn connect(&mut self, now: Instant) {
        self.state = State::Connect;
        self.timers.connecting(now);
        self.effects.push_back(Effect::Connect);
    }

    fn connected(&mut self, local: IpAddr, now: Instant) {
        if self.state != State::Connect {
            return;
        }
        // An IPv4 address that a dual-stack socket shows in IPv6 form is an IPv4 address.
        let local = local.to_canonical();
        let v4 = match local {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        };
        let Some(identifier) = self.config.router_id.or(v4) else {
            let why = "there is no IPv4 address to be the BGP identifier; set router_id".to_owned();
            self.fail(why, None, now);
            return;
        };
        self.local = Some(local);
        self.state = State::OpenSent;
        self.timers.connected(now);
        let (hop4, hop6) = self.next_hops();
        open::Ours {
            asn: self.config.local_as,
            hold_time: self.config.hold_time,
            identifier,
            families: Families { ipv4: hop4.is_some(), ipv6: hop6.is_some() },
            link_state: self.learns(),
        }
        .encode(&mut self.queue);
        self.counters.messages_out += 1;
    }

    fn learns(&self) -> bool {
        self.config.purpose == Purpose::LearnLinkState
    }

    /// The next hops of both families: as configured, else our own address (RFC 4271 section 5.1.3);
    /// none where nothing is announced.
    fn next_hops(&self) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
        if self.learns() {
            return (None, None);
        }
        let (own4, own6) = match self.local {
            Some(IpAddr::V4(address)) => (Some(address), None),
            Some(IpAddr::V6(address)) => (None, Some(address)),
            None => (None, None),
        };
        (self.config.next_hop4.or(own4), self.config.next_hop6.or(own6))
    }

    fn received(&mut self, bytes: &[u8], now: Instant) {
        if !self.has_connection() {
            return;
        }
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut used = 0;
        while self.has_connection() {
            match message::split(&input[used..]) {
                Ok(Some((kind, body))) => {
                    self.counters.messages_in += 1;
                    self.message(kind, body, now);
                    used += message::HEADER + body.len();
                }
                Ok(None) => {
                    input.drain(..used);
                    self.input = input;
                    return;
                }
                Err(error) => self.reject(error, now),
            }
        }
    }

    fn message(&mut self, kind: Kind, body: &[u8], now: Instant) {
        match (self.state, kind) {
            (_, Kind::Notification) => {
                self.counters.notifications_in += 1;
                let why =
                    format!("the neighbour closed the session: {}", Notification::decode(body));
                self.notification = Some(why.clone());
                self.fail(why, None, now);
            }
            (State::OpenSent, Kind::Open) => match self.accept(body) {
                Ok(()) => {
                    self.state = State::OpenConfirm;
                    message::keepalive(&mut self.queue);
                    self.counters.messages_out += 1;
                    self.timers.restart_hold(now);
                    self.timers.restart_keepalive(now);
                }
                Err(error) => self.reject(error, now),
            },
            (State::OpenConfirm, Kind::Keepalive) => {
                self.state = State::Established;
                self.established = Some(now);
                self.counters.established += 1;
                self.notification = None;
                self.timers.restart_hold(now);
                let terms = self.terms.expect("settled when OPEN was accepted");
                self.rib.begin(Families {
                    ipv4: terms.carry(Family::Ipv4),
                    ipv6: terms.carry(Family::Ipv6),
                });
            }
            (State::Established, Kind::Keepalive) => self.timers.restart_hold(now),
            (State::Established, Kind::Update) => match self.check(body) {
                Ok(()) if self.learns() => {
                    self.learned.push(body.to_vec());
                    self.timers.restart_hold(now);
                }
                Ok(()) => {
                    self.counters.updates_discarded += 1;
                    self.timers.restart_hold(now);
                }
                Err(error) => self.reject(error, now),
            },
            (State::Established, Kind::RouteRefresh) => {
                // AFI of two bytes, one reserved, SAFI (RFC 2918 section 3).
                if let [high, low, _, safi] = *body
                    && let Some(family) = Family::from_codes(u16::from_be_bytes([high, low]), safi)
                {
                    self.rib.again(family);
                }
            }
            (state, kind) => {
                let subcode = match state {
                    State::OpenSent => 1,
                    State::OpenConfirm => 2,
                    _ => 3,
                };
                self.reject(Notification::unexpected(subcode, kind as u8), now);
            }
        }
    }

    /// Checks whether an UPDATE can be parsed.
    fn check(&self, body: &[u8]) -> Result<(), Notification> {
        update::check(body)?;
        if self.learns() {
            let error = |_| Notification::update(notification::OPTIONAL_ATTRIBUTE);
            message::link_state::check(body).map_err(error)?;
        }
        Ok(())
    }

    /// Judges the neighbour's OPEN and settles the terms (RFC 4271 section 6.2).
    fn accept(&mut self, body: &[u8]) -> Result<(), Notification> {
        let theirs = open::Theirs::decode(body)?;
        if theirs.asn != self.config.peer_as {
            let data = theirs.asn.two_octets().unwrap_or(Asn::TRANS.0 as u16).to_be_bytes();
            return Err(Notification::open(notification::BAD_PEER_AS, &data));
        }
        let internal = self.config.local_as == self.config.peer_as;
        let ours = self.config.router_id.or(match self.local {
            Some(IpAddr::V4(address)) => Some(address),
            _ => None,
        });
        // RFC 6286 section 2.1: inside an AS identifiers differ.
        if internal && Some(theirs.identifier) == ours {
            let data = theirs.identifier.octets();
            return Err(Notification::open(notification::BAD_IDENTIFIER, &data));
        }
        if self.learns() && !theirs.link_state {
            return Err(Notification::open(
                notification::UNSUPPORTED_CAPABILITY,
                &open::LINK_STATE,
            ));
        }
        // RFC 4271 section 4.2 lets either side refuse a hold time. Without one a neighbour that is gone would keep
        // its session, and ours would go on announcing a node that hangs.
        if theirs.hold_time == 0 {
            return Err(Notification::open(notification::BAD_HOLD_TIME, &[0, 0]));
        }
        self.timers.hold = Duration::from_secs(self.config.hold_time.min(theirs.hold_time).into());
        let (hop4, hop6) = self.next_hops();
        let terms = Terms {
            local_as: self.config.local_as,
            internal,
            four_octets: theirs.four_octets,
            next_hop4: hop4.filter(|_| theirs.families.ipv4),
            next_hop6: hop6.filter(|_| theirs.families.ipv6),
        };
        self.terms = Some(terms);
        Ok(())
    }

    fn tick(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.timers.hold_at) {
            self.reject(Notification::hold_timer(), now);
        }
        if due(self.timers.send) {
            let why = "Send Hold Timer Expired (8/0): the neighbour has stopped reading";
            self.fail(why.into(), None, now);
        }
        if due(self.timers.keepalive) {
            self.keepalive_due = true;
            self.timers.restart_keepalive(now);
        }
        if due(self.timers.retry) {
            if self.state == State::Connect {
                self.problem = Some(
                    "the neighbour does not answer; check peer, password and ttl_security on both sides"
                        .into(),
                );
            }
            self.connect(now);
        }
    }

    /// Answers an error with its NOTIFICATION and closes.
    fn reject(&mut self, error: Notification, now: Instant) {
        let why = format!("we closed the session: {error}");
        self.notification = Some(why.clone());
        self.fail(why, Some(error), now);
    }

    /// The attempt or the session is over; another follows after a pause.
    fn fail(&mut self, why: String, last_words: Option<Notification>, now: Instant) {
        let lasted = self.established.is_some_and(|since| now.duration_since(since) >= LASTING);
        if lasted {
            self.timers.failures = 0;
        }
        self.problem = Some(why);
        self.close(last_words);
        self.timers.pause(now);
    }

    fn stop(&mut self, text: &str) {
        let last_words = self.has_connection().then(|| Notification::shutdown(text));
        self.problem = Some("the session is stopped".into());
        self.close(last_words);
        self.timers.retry = None;
        self.timers.failures = 0;
    }

    /// Back to Idle: nothing of the connection is left.
    fn close(&mut self, last_words: Option<Notification>) {
        let mut bytes = std::mem::take(&mut self.queue);
        match last_words {
            Some(notification) => {
                notification.encode(&mut bytes);
                self.counters.messages_out += 1;
                self.counters.notifications_out += 1;
            }
            None => bytes.clear(),
        }
        if self.established.take().is_some() {
            self.counters.lost += 1;
        }
        self.effects.push_back(Effect::Close(bytes));
        self.state = State::Idle;
        self.terms = None;
        self.local = None;
        self.input = Vec::new();
        self.keepalive_due = false;
        self.updating = false;
        self.timers.closed();
        self.rib.end();
    }
}
