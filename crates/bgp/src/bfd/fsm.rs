//! A session's state machine (RFC 5880 section 6), without sockets and without a clock.
//!
//! It takes packets and readings of the clock, gives packets to send ([`Fsm::transmit`]), and says when it wants to be
//! called again ([`Fsm::deadline`]).

use super::{BfdConfig, Diagnostic, Observed, State, packet::Packet};
use splitmix::Random;
use std::time::{Duration, Instant};

/// The least interval of a session that is not up (RFC 5880 section 6.8.3).
const SLOW: Duration = Duration::from_secs(1);

/// What the neighbour's last packet said.
#[derive(Clone, Copy, Debug)]
struct Remote {
    packet: Packet,
    at: Instant,
}

/// A session.
#[derive(Clone, Debug)]
pub struct Fsm {
    config: BfdConfig,
    random: Random,
    state: State,
    diagnostic: Diagnostic,
    failures: u64,
    /// Our discriminator.
    discriminator: u32,
    /// None when the neighbour has been silent for a detection time.
    remote: Option<Remote>,
    /// A poll sequence is under way.
    polling: bool,
    /// A poll of the neighbour's is to be answered.
    polled: bool,
    /// Something has changed that the neighbour should hear at once.
    changed: bool,
    sent: Instant,
    /// By which part the current interval is shorter, of 1,000.
    jitter: u32,
}

impl Fsm {
    /// A session that begins `now`. `seed` drives the jitter, and is what others cannot guess of the discriminator.
    pub fn new(config: BfdConfig, seed: u64, now: Instant) -> Self {
        let mut random = Random::new(seed);
        let discriminator = (random.bits() >> 32) as u32 | 1;
        Self {
            config,
            random,
            state: State::Down,
            diagnostic: Diagnostic::default(),
            failures: 0,
            discriminator,
            remote: None,
            polling: false,
            polled: false,
            changed: true,
            sent: now,
            jitter: 0,
        }
    }

    /// What is known of the session.
    pub fn observed(&self) -> Observed {
        Observed {
            state: self.state,
            diagnostic: self.diagnostic,
            detection_time: self.remote.map(|remote| self.detection_time(&remote.packet)),
            failures: self.failures,
        }
    }

    /// When [`Fsm::tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        let expiry = self.remote.map(|remote| remote.at + self.detection_time(&remote.packet));
        self.next_packet()
            .into_iter()
            .chain(expiry)
            .filter(|_| self.state != State::AdminDown)
            .min()
    }

    /// Takes a packet from the neighbour (RFC 5880 section 6.8.6); returns whether it is of this session.
    pub fn receive(&mut self, packet: Packet, now: Instant) -> bool {
        if self.state == State::AdminDown
            || ![0, self.discriminator].contains(&packet.your_discriminator)
        {
            return false;
        }
        self.remote = Some(Remote { packet, at: now });
        self.polling &= !packet.is_final;
        self.polled |= packet.poll;
        match (self.state, packet.state) {
            (State::Init | State::Up, State::AdminDown) => {
                self.go(State::Down, Diagnostic::NEIGHBOUR_DOWN)
            }
            (State::Up, State::Down) => {
                self.failures += 1;
                self.go(State::Down, Diagnostic::NEIGHBOUR_DOWN);
            }
            (State::Down, State::Down) => self.go(State::Init, self.diagnostic),
            (State::Down, State::Init) | (State::Init, State::Init | State::Up) => {
                self.go(State::Up, Diagnostic::default());
            }
            _ => {}
        }
        true
    }

    /// Lets time pass: a neighbour that has been silent for its detection time is lost.
    pub fn tick(&mut self, now: Instant) {
        let silent = |remote: Remote| now >= remote.at + self.detection_time(&remote.packet);
        if !self.remote.is_some_and(silent) {
            return;
        }
        self.remote = None;
        if let State::Init | State::Up = self.state {
            self.failures += u64::from(self.state == State::Up);
            self.go(State::Down, Diagnostic::TIME_EXPIRED);
        }
    }

    /// The next packet to send now; none if none is due.
    pub fn transmit(&mut self, now: Instant) -> Option<Packet> {
        if std::mem::take(&mut self.polled) {
            return Some(Packet { is_final: true, poll: false, ..self.packet() });
        }
        let due = self.next_packet().is_some_and(|at| at <= now);
        if !std::mem::take(&mut self.changed) && !due {
            return None;
        }
        self.sent = now;
        self.jitter = self.random.below(251) as u32;
        Some(self.packet())
    }

    /// Takes the session out of service for good; one more packet says so.
    pub fn disable(&mut self) {
        self.go(State::AdminDown, Diagnostic::ADMIN_DOWN);
    }

    fn go(&mut self, state: State, diagnostic: Diagnostic) {
        let before = self.desired_tx();
        self.state = state;
        self.diagnostic = diagnostic;
        self.changed = true;
        // RFC 5880 section 6.8.3: the neighbour acknowledges another interval.
        self.polling |= before != self.desired_tx();
    }

    fn packet(&self) -> Packet {
        Packet {
            diagnostic: self.diagnostic,
            state: self.state,
            poll: self.polling,
            is_final: false,
            demand: false,
            detect_mult: self.config.multiplier,
            my_discriminator: self.discriminator,
            your_discriminator: self.remote.map_or(0, |remote| remote.packet.my_discriminator),
            desired_min_tx: microseconds(self.desired_tx()),
            required_min_rx: microseconds(self.config.interval),
        }
    }

    /// When the next periodic packet is due (RFC 5880 section 6.8.7).
    fn next_packet(&self) -> Option<Instant> {
        if self.state == State::AdminDown {
            return None;
        }
        // Before it is heard the neighbour takes any rate.
        let mut interval = self.desired_tx();
        if let Some(Remote { packet, .. }) = self.remote {
            let both_up = self.state == State::Up && packet.state == State::Up;
            if packet.required_min_rx == 0 || packet.demand && both_up && !self.polling {
                return None;
            }
            interval = interval.max(Duration::from_micros(packet.required_min_rx.into()));
        }
        Some(self.sent + interval - interval * self.jitter / 1000)
    }

    fn desired_tx(&self) -> Duration {
        match self.state {
            State::Up => self.config.interval,
            _ => self.config.interval.max(SLOW),
        }
    }

    /// How long the neighbour may be silent (RFC 5880 section 6.8.4).
    fn detection_time(&self, last: &Packet) -> Duration {
        let theirs = Duration::from_micros(last.desired_min_tx.into());
        self.config.interval.max(theirs) * u32::from(last.detect_mult)
    }
}

fn microseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
