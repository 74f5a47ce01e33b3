//! What is known of hosts: which peer-to-peer applications they run, at which sockets they listen, and
//! who said so.
//!
//! An obfuscated connection shows nothing of its protocol, but it is seldom the first that is heard of
//! its two ends: a tracker, the DHT, another peer, a server or a hub named one of them to the other in
//! plain text before, or one of them speaks the application plainly elsewhere. Parsers tell ([`Hosts::learn`],
//! [`Hosts::speaks`]) and the classifier asks about the ends of flows that no parser knows.
//!
//! All of it is said by strangers, so it is never enough alone: it makes an application likely for a flow
//! that also has the shape of that application's obfuscation ([`crate::p2p`]). Both tables are bounded and
//! forget what was not heard of for longest; everything is forgotten after [`Bounds::lifetime_ns`].

mod lru;

use crate::p2p::Application;
use lru::Lru;
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Sockets at which peers were said to listen, some 150 bytes each.
    pub sockets: usize,
    /// Hosts of which something is known, 100 bytes each and up to 3 KB of calls that look random.
    pub hosts: usize,
    /// After that, what was said is not believed any more, nanoseconds.
    pub lifetime_ns: u64,
}

impl Default for Bounds {
    /// 65,536 sockets, 16,384 hosts, two hours: clients announce themselves anew every half hour.
    fn default() -> Self {
        Self { sockets: 65_536, hosts: 16_384, lifetime_ns: 2 * 3600 * 1_000_000_000 }
    }
}

/// Where a socket was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A BitTorrent tracker's answer.
    Tracker,
    /// Values or nodes of a DHT message (BEP 5).
    Dht,
    /// A peer exchange message (BEP 11).
    PeerExchange,
    /// Local service discovery (BEP 14).
    LocalDiscovery,
    /// An eDonkey server or client that names sources.
    Edonkey,
    /// A contact in a Kad message.
    Kad,
    /// A pong, `X-Try` or query hit of Gnutella.
    Gnutella,
    /// A command to connect that went through a hub of Direct Connect.
    Hub,
    /// Soulseek's server.
    Soulseek,
    /// The host itself: it told others that it listens there.
    Announced,
    /// It answered there in plain text.
    Spoken,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tracker => "the tracker",
            Self::Dht => "the DHT node",
            Self::PeerExchange => "peer exchange with",
            Self::LocalDiscovery => "local discovery by",
            Self::Edonkey => "the eDonkey host",
            Self::Kad => "the Kad node",
            Self::Gnutella => "the Gnutella host",
            Self::Hub => "the hub",
            Self::Soulseek => "the Soulseek server",
            Self::Announced => "the host itself to",
            Self::Spoken => "plain text with",
        })
    }
}

/// A socket at which a peer was said to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What runs there.
    pub application: Application,
    /// Where it was named.
    pub source: Source,
    /// The other end of the flow in which it was named, for people.
    pub told_by: SocketAddr,
    /// The host that was told.
    pub learnt_by: IpAddr,
    /// When, nanoseconds of [`crate::packet::Packet::at_ns`].
    pub at_ns: u64,
}

/// `port named by the tracker 192.0.2.1:6969`
impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "named by {} {}", self.source, self.told_by)
    }
}

/// Flows that look random, kept of each host.
const CALLS: usize = 48;

/// What is known of a host.
#[derive(Clone, Debug, Default)]
struct Host {
    /// When it last spoke each application in plain text.
    spoke_ns: [Option<u64>; Application::ALL.len()],
    /// Calls in which both ends sent what looks random: a ring.
    calls: Vec<Call>,
    /// Where the ring is written next.
    turn: usize,
}

/// A call between a host and a socket.
#[derive(Clone, Copy, Debug)]
struct Call {
    socket: SocketAddr,
    at_ns: u64,
    /// Whether its first messages had the lengths of an obfuscated handshake.
    shaped: bool,
}

/// The evidence of hosts.
#[derive(Clone, Debug)]
pub struct Hosts {
    sockets: Lru<SocketAddr, Listed>,
    hosts: Lru<IpAddr, Host>,
    lifetime_ns: u64,
}

impl Default for Hosts {
    fn default() -> Self {
        Self::new(Bounds::default())
    }
}

impl Hosts {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            sockets: Lru::new(bounds.sockets),
            hosts: Lru::new(bounds.hosts),
            lifetime_ns: bounds.lifetime_ns,
        }
    }

    /// A peer was named. What cannot be a peer's socket is not taken.
    pub fn learn(&mut self, socket: SocketAddr, listed: Listed) {
        let socket = canonical(socket);
        let ip = socket.ip();
        let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast() || ip.octets()[0] == 0);
        if socket.port() == 0 || ip.is_unspecified() || ip.is_multicast() || broadcast {
            return;
        }
        *self.sockets.touch(socket, || listed) = listed;
    }

    /// A host spoke an application in plain text.
    pub fn speaks(&mut self, host: IpAddr, application: Application, at_ns: u64) {
        let host = self.hosts.touch(host.to_canonical(), Host::default);
        host.spoke_ns[application as usize] = Some(at_ns);
    }

    /// Who listens at a socket, if that was said within the lifetime.
    #[must_use]
    pub fn listed(&self, socket: SocketAddr, now_ns: u64) -> Option<&Listed> {
        let listed = self.sockets.get(&canonical(socket))?;
        self.fresh(listed.at_ns, now_ns).then_some(listed)
    }

    /// Whether a host spoke an application within the lifetime.
    #[must_use]
    pub fn spoke(&self, host: IpAddr, application: Application, now_ns: u64) -> bool {
        let host = self.hosts.get(&host.to_canonical());
        let at = host.and_then(|host| host.spoke_ns[application as usize]);
        at.is_some_and(|at_ns| self.fresh(at_ns, now_ns))
    }

    /// A host and a socket exchanged first messages that look random, in the lengths of an obfuscated
    /// handshake or not; what is known of the host's calls before.
    pub fn called(&mut self, host: IpAddr, socket: SocketAddr, shaped: bool, now_ns: u64) -> Calls {
        let socket = canonical(socket);
        let lifetime_ns = self.lifetime_ns;
        let host = self.hosts.touch(host.to_canonical(), Host::default);
        let recent =
            host.calls.iter().filter(|call| now_ns.saturating_sub(call.at_ns) <= lifetime_ns);
        let others = |shaped| {
            let others = recent.clone().filter(|call| call.shaped == shaped);
            let others = others.map(|call| call.socket.ip()).filter(|ip| *ip != socket.ip());
            others.collect::<std::collections::BTreeSet<_>>().len()
        };
        let again = recent.clone().filter(|call| call.socket == socket).count();
        let calls = Calls { others: others(true), otherwise: others(false), again };
        let call = Call { socket, at_ns: now_ns, shaped };
        if host.calls.len() < CALLS {
            host.calls.push(call);
        } else if let Some(oldest) = host.calls.get_mut(host.turn) {
            *oldest = call;
            host.turn = (host.turn + 1) % CALLS;
        }
        calls
    }

    /// Sockets and hosts that are kept.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.sockets.len(), self.hosts.len())
    }

    fn fresh(&self, at_ns: u64, now_ns: u64) -> bool {
        now_ns.saturating_sub(at_ns) <= self.lifetime_ns
    }
}

/// Calls of a host with first messages that look random, before the one that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Other hosts, in the lengths of an obfuscated handshake.
    pub others: usize,
    /// Other hosts, in other lengths.
    pub otherwise: usize,
    /// How often with the same socket.
    pub again: usize,
}

/// IPv4 in IPv6 as IPv4.
fn canonical(socket: SocketAddr) -> SocketAddr {
    SocketAddr::new(socket.ip().to_canonical(), socket.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000_000;

    fn listed(at_ns: u64) -> Listed {
        Listed {
            application: Application::BitTorrent,
            source: Source::Tracker,
            told_by: "192.0.2.1:6969".parse().unwrap(),
            learnt_by: "10.0.0.5".parse().unwrap(),
            at_ns,
        }
    }

    #[test]
    fn what_was_said_is_forgotten_in_time() {
        let mut hosts = Hosts::default();
        let peer: SocketAddr = "198.51.100.7:51413".parse().unwrap();
        hosts.learn("[::ffff:198.51.100.7]:51413".parse().unwrap(), listed(MINUTE));
        assert_eq!(hosts.listed(peer, 0), Some(&listed(MINUTE)));
        assert!(hosts.listed(peer, 121 * MINUTE).is_some());
        assert_eq!(hosts.listed(peer, 122 * MINUTE), None);
        hosts.speaks(peer.ip(), Application::Edonkey, MINUTE);
        assert!(hosts.spoke(peer.ip(), Application::Edonkey, 2 * MINUTE));
        assert!(!hosts.spoke(peer.ip(), Application::BitTorrent, 2 * MINUTE));
        assert!(!hosts.spoke(peer.ip(), Application::Edonkey, 122 * MINUTE));
        let reason = hosts.listed(peer, 0).unwrap().to_string();
        assert_eq!(reason, "named by the tracker 192.0.2.1:6969");
    }

    #[test]
    fn what_no_peer_can_have_is_not_taken() {
        let mut hosts = Hosts::default();
        for socket in ["0.1.2.3:1", "198.51.100.7:0", "224.0.0.1:6771", "[ff02::1]:1", "[::]:5"] {
            hosts.learn(socket.parse().unwrap(), listed(0));
        }
        hosts.learn("255.255.255.255:5".parse().unwrap(), listed(0));
        assert_eq!(hosts.counts(), (0, 0));
    }

    #[test]
    fn a_flood_of_names_stays_bounded() {
        let mut hosts = Hosts::new(Bounds { sockets: 100, hosts: 10, lifetime_ns: MINUTE });
        for number in 1..10_000_u32 {
            let ip = IpAddr::from(std::net::Ipv4Addr::from(0x0a00_0000 + number));
            hosts.learn(SocketAddr::new(ip, 6881), listed(0));
            hosts.speaks(ip, Application::BitTorrent, 0);
            hosts.called("10.0.0.5".parse().unwrap(), SocketAddr::new(ip, 6881), true, 0);
        }
        assert_eq!(hosts.counts(), (100, 10));
        assert!(hosts.listed("10.0.39.15:6881".parse().unwrap(), 0).is_some());
        let last = "10.0.39.15:6881".parse().unwrap();
        let calls = hosts.called("10.0.0.5".parse().unwrap(), last, false, 0);
        assert_eq!(calls, Calls { others: CALLS - 1, otherwise: 0, again: 1 });
        let calls =
            hosts.called("10.0.0.5".parse().unwrap(), "10.9.0.1:1".parse().unwrap(), true, 0);
        assert_eq!(calls, Calls { others: CALLS - 1, otherwise: 1, again: 0 });
    }
}
