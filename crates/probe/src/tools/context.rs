//! What a test is given by its station: the permission to send, and counters.

use std::{
    fmt,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Where tests may send to.
pub trait Permission: Send + Sync {
    /// Whether this address agreed to it, or is on the allow list.
    fn allows(&self, to: IpAddr) -> bool;

    /// Whether this address is on the allow list: for what other stations have not agreed to by agreeing to a
    /// test.
    fn lists(&self, to: IpAddr) -> bool {
        self.allows(to)
    }
}

impl<F: Fn(IpAddr) -> bool + Send + Sync> Permission for F {
    fn allows(&self, to: IpAddr) -> bool {
        self(to)
    }
}

/// A test was to send where it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} has not agreed to tests of this station: let the other station know this one, or put the \
     address on the allow list"
)]
pub struct Forbidden(pub IpAddr);

/// What a test needs of its station; cheap to clone.
#[derive(Clone)]
pub struct Context {
    permission: Arc<dyn Permission>,
    /// What tests refused.
    pub counters: Arc<Counters>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl Context {
    /// A context in which tests may send where the permission allows.
    pub fn new(permission: Arc<dyn Permission>) -> Self {
        Self { permission, counters: Arc::default() }
    }

    /// Asks before anything is sent.
    ///
    /// # Errors
    /// When the address is not allowed.
    pub fn check(&self, to: IpAddr) -> Result<(), Forbidden> {
        // An IPv4 address in an IPv6 socket's clothes is the IPv4 address.
        let to = to.to_canonical();
        if self.permission.allows(to) { Ok(()) } else { Err(Forbidden(to)) }
    }

    /// Asks where only the allow list counts.
    ///
    /// # Errors
    /// When the address is not on it.
    pub fn check_listed(&self, to: IpAddr) -> Result<(), Forbidden> {
        let to = to.to_canonical();
        if self.permission.lists(to) { Ok(()) } else { Err(Forbidden(to)) }
    }
}

/// Input that a test refused, by what it was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// An ICMP message that is malformed, or answers nothing that was sent.
    Icmp,
    /// An answer of a name server that is malformed, or to another question.
    Dns,
    /// An answer of a web server that is not HTTP, or longer than is taken.
    Http,
    /// What came to the control connection of a throughput test and is not of its protocol.
    Control,
    /// A connection or datagram that is not of the throughput test that was agreed.
    UnknownPeer,
    /// What iperf3 wrote and is not understood.
    Iperf3,
}

impl Refusal {
    /// All of them, in the order of their counters.
    pub const ALL: [Self; 6] =
        [Self::Icmp, Self::Dns, Self::Http, Self::Control, Self::UnknownPeer, Self::Iperf3];

    /// The word for it, as in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Icmp => "icmp",
            Self::Dns => "dns",
            Self::Http => "http",
            Self::Control => "control",
            Self::UnknownPeer => "unknown-peer",
            Self::Iperf3 => "iperf3",
        }
    }
}

/// Counters of all tests of a station.
#[derive(Debug, Default)]
pub struct Counters {
    refused: [AtomicU64; Refusal::ALL.len()],
}

impl Counters {
    /// Counts what was refused.
    pub fn refuse(&self, what: Refusal) {
        self.refuse_many(what, 1);
    }

    /// Counts so many that were refused.
    pub fn refuse_many(&self, what: Refusal, count: u64) {
        self.counter(what).fetch_add(count, Ordering::Relaxed);
    }

    /// How many were refused so far.
    pub fn refused(&self, what: Refusal) -> u64 {
        self.counter(what).load(Ordering::Relaxed)
    }

    fn counter(&self, what: Refusal) -> &AtomicU64 {
        let [icmp, dns, http, control, unknown_peer, iperf3] = &self.refused;
        match what {
            Refusal::Icmp => icmp,
            Refusal::Dns => dns,
            Refusal::Http => http,
            Refusal::Control => control,
            Refusal::UnknownPeer => unknown_peer,
            Refusal::Iperf3 => iperf3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_asked_for_in_its_own_family() {
        let context = Context::new(Arc::new(|to: IpAddr| to == IpAddr::from([192, 0, 2, 1])));
        assert_eq!(context.check("192.0.2.1".parse().unwrap()), Ok(()));
        assert_eq!(context.check("::ffff:192.0.2.1".parse().unwrap()), Ok(()));
        let other = "2001:db8::1".parse().unwrap();
        assert_eq!(context.check(other), Err(Forbidden(other)));
    }

    #[test]
    fn each_refusal_has_a_counter_of_its_own() {
        let counters = Counters::default();
        for (count, what) in Refusal::ALL.into_iter().enumerate() {
            counters.refuse_many(what, count as u64);
        }
        for (count, what) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(counters.refused(what), count as u64, "{}", what.word());
        }
    }
}
