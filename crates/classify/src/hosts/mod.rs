//! What is known of hosts: which peer-to-peer applications they run, at which sockets they listen, and
//! its source.
//!
//! An obfuscated connection shows nothing of its protocol, but it is seldom the first that is heard of
//! its two ends: a tracker, the DHT, another peer, a server or a hub named one of them to the other in
//! plain text before, or one of them speaks the application plainly elsewhere. Parsers report ([`Hosts::learn`],
//! [`Hosts::speaks`]) and the classifier asks about the ends of flows that no parser knows.
//!
//! All of it comes from unknown peers, so it is never enough alone: it makes an application likely for a flow
//! that also has the shape of that application's obfuscation ([`crate::p2p`]). All tables are bounded and
//! forget what was not heard of for longest; everything is forgotten after [`Bounds::lifetime_ns`]. Nodes of
//! distributed hash tables, of which one answer names many, have a table of their own, so that a walk
//! through all of them does not evict what trackers and peers announced.

mod calls;

use crate::{
    application::Application,
    bounded::{Bounded, bounded},
    flow::Transport,
};
pub use calls::Calls;
use calls::History;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Bounds {
    /// Sockets at which peers were announced to listen, some 150 bytes each; a quarter of that for nodes of
    /// distributed hash tables beside.
    pub sockets: usize,
    /// Hosts that spoke an application, 150 bytes each; a quarter of that for hosts of which calls that look
    /// random are kept, up to 3 KB each.
    pub hosts: usize,
    /// Lifetime of an announcement, nanoseconds.
    pub lifetime_ns: u64,
}

impl Default for Bounds {
    /// 65,536 sockets, 65,536 hosts, two hours: clients announce themselves again every half hour.
    fn default() -> Self {
        Self { sockets: 65_536, hosts: 65_536, lifetime_ns: 2 * 3600 * 1_000_000_000 }
    }
}

/// Where a socket was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A BitTorrent tracker's answer.
    Tracker,
    /// Values of a DHT message (BEP 5): peers of a torrent.
    Dht,
    /// Nodes of a DHT message: hosts that keep the table.
    DhtNode,
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
    /// The host itself: it announced that it listens there.
    Announced,
    /// It answered there in plain text.
    Spoken,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tracker => "the tracker",
            Self::Dht | Self::DhtNode => "the DHT node",
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

/// A socket at which a peer was announced to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What runs there.
    pub application: Application,
    /// Over which transport; none when over both.
    pub transport: Option<Transport>,
    /// Where it was named.
    pub source: Source,
    /// The other end of the flow in which it was named, for people.
    pub reported_by: SocketAddr,
    /// The host that it was reported to.
    pub reported_to: IpAddr,
    /// Whether another host reported it before, or to another host.
    pub confirmed: bool,
    /// When, nanoseconds of [`crate::packet::Packet::at_ns`].
    pub at_ns: u64,
}

impl Listed {
    /// Whether it holds for a call of a host: it was reported to the host itself, or the one that is called reported it
    /// of itself, or it does not rest on one word alone. One internal host thus cannot make others' calls look
    /// like what it wants.
    #[must_use]
    pub fn holds_for(&self, caller: IpAddr, called: IpAddr) -> bool {
        let host = self.reported_to.to_canonical();
        self.confirmed || host == caller.to_canonical() || host == called.to_canonical()
    }
}

/// `port named by the tracker 192.0.2.1:6969`
impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "named by {} {}", self.source, self.reported_by)
    }
}

/// The evidence of hosts.
#[derive(Clone, Debug)]
pub struct Hosts {
    sockets: Bounded<SocketAddr, Listed>,
    nodes: Bounded<SocketAddr, Listed>,
    /// When each host last spoke each application in plain text.
    spoke_ns: Bounded<IpAddr, [Option<u64>; Application::ALL.len()]>,
    calls: Bounded<IpAddr, History>,
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
            sockets: bounded(bounds.sockets),
            nodes: bounded(bounds.sockets / 4),
            spoke_ns: bounded(bounds.hosts),
            calls: bounded(bounds.hosts / 4),
            lifetime_ns: bounds.lifetime_ns,
        }
    }

    /// A peer was named. What cannot be a peer's socket is not taken.
    pub fn learn(&mut self, socket: SocketAddr, mut listed: Listed) {
        let socket = canonical(socket);
        let ip = socket.ip();
        let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast() || ip.octets()[0] == 0);
        if socket.port() == 0 || ip.is_unspecified() || ip.is_multicast() || broadcast {
            return;
        }
        let table = match listed.source {
            Source::DhtNode | Source::Kad => &mut self.nodes,
            _ => &mut self.sockets,
        };
        let before = table.get_or_insert_mut(socket, || listed);
        if before.application == listed.application
            && listed.at_ns.saturating_sub(before.at_ns) <= self.lifetime_ns
        {
            let others = before.reported_by.ip() != listed.reported_by.ip()
                || before.reported_to != listed.reported_to;
            listed.confirmed |= before.confirmed || others;
            if before.transport != listed.transport {
                listed.transport = None;
            }
        }
        *before = listed;
    }

    /// A host spoke an application in plain text.
    pub fn speaks(&mut self, host: IpAddr, application: Application, at_ns: u64) {
        let spoke_ns = self.spoke_ns.get_or_insert_mut(host.to_canonical(), Default::default);
        spoke_ns[application as usize] = Some(at_ns);
    }

    /// Whoever listens at a socket of a transport, if that was announced within the lifetime.
    #[must_use]
    pub fn listed(&self, socket: SocketAddr, over: Transport, now_ns: u64) -> Option<&Listed> {
        let socket = canonical(socket);
        [&self.sockets, &self.nodes].into_iter().filter_map(|table| table.peek(&socket)).find(
            |listed| {
                listed.transport.is_none_or(|listens| listens == over)
                    && self.fresh(listed.at_ns, now_ns)
            },
        )
    }

    /// Whether a host spoke an application within the lifetime.
    #[must_use]
    pub fn spoke(&self, host: IpAddr, application: Application, now_ns: u64) -> bool {
        let spoke_ns = self.spoke_ns.peek(&host.to_canonical());
        let at = spoke_ns.and_then(|spoke_ns| spoke_ns[application as usize]);
        at.is_some_and(|at_ns| self.fresh(at_ns, now_ns))
    }

    /// A host and a socket exchanged first messages that look random, in the lengths of an obfuscated
    /// handshake or not; what is known of the host's calls before.
    pub fn called(&mut self, host: IpAddr, socket: SocketAddr, shaped: bool, now_ns: u64) -> Calls {
        let history = self.calls.get_or_insert_mut(host.to_canonical(), History::default);
        history.add(canonical(socket), shaped, now_ns, self.lifetime_ns)
    }

    /// Sockets and hosts that are kept.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.sockets.len() + self.nodes.len(), self.spoke_ns.len())
    }

    fn fresh(&self, at_ns: u64, now_ns: u64) -> bool {
        now_ns.saturating_sub(at_ns) <= self.lifetime_ns
    }
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
            transport: None,
            source: Source::Tracker,
            reported_by: "192.0.2.1:6969".parse().unwrap(),
            reported_to: "10.0.0.5".parse().unwrap(),
            confirmed: false,
            at_ns,
        }
    }

    #[test]
    fn what_was_said_is_forgotten_in_time() {
        let mut hosts = Hosts::default();
        let peer: SocketAddr = "198.51.100.7:51413".parse().unwrap();
        hosts.learn("[::ffff:198.51.100.7]:51413".parse().unwrap(), listed(MINUTE));
        assert_eq!(hosts.listed(peer, Transport::Tcp, 0), Some(&listed(MINUTE)));
        assert!(hosts.listed(peer, Transport::Tcp, 121 * MINUTE).is_some());
        assert_eq!(hosts.listed(peer, Transport::Tcp, 122 * MINUTE), None);
        hosts.speaks(peer.ip(), Application::Edonkey, MINUTE);
        assert!(hosts.spoke(peer.ip(), Application::Edonkey, 2 * MINUTE));
        assert!(!hosts.spoke(peer.ip(), Application::BitTorrent, 2 * MINUTE));
        assert!(!hosts.spoke(peer.ip(), Application::Edonkey, 122 * MINUTE));
        let reason = hosts.listed(peer, Transport::Tcp, 0).unwrap().to_string();
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
        assert!(hosts.listed("10.0.39.15:6881".parse().unwrap(), Transport::Tcp, 0).is_some());
        let host = "10.0.0.5".parse().unwrap();
        let last = "10.0.39.15:6881".parse().unwrap();
        let calls = hosts.called(host, last, false, 0);
        let kept = calls::KEPT;
        let full =
            Calls { others: kept - 1, again: 1, all: kept, shaped: kept, ..Calls::default() };
        assert_eq!(calls, full);
        let calls = hosts.called(host, "10.9.0.1:1".parse().unwrap(), true, 0);
        assert_eq!(calls, Calls { otherwise: 1, again: 0, shaped: kept - 1, ..full });
        let calls = hosts.called(host, last, true, 0);
        assert!(calls.strange, "{calls:?}");
    }

    #[test]
    fn a_walk_through_the_dht_pushes_out_no_peers() {
        let mut hosts = Hosts::new(Bounds { sockets: 100, ..Bounds::default() });
        let peer: SocketAddr = "198.51.100.7:51413".parse().unwrap();
        hosts.learn(peer, listed(0));
        for number in 1..1000_u32 {
            let node = IpAddr::from(std::net::Ipv4Addr::from(0x0b00_0000 + number));
            let source = Source::DhtNode;
            hosts.learn(SocketAddr::new(node, 6881), Listed { source, ..listed(0) });
        }
        assert_eq!(hosts.listed(peer, Transport::Tcp, 0), Some(&listed(0)));
        assert_eq!(hosts.counts().0, 26);
    }

    #[test]
    fn a_port_of_one_transport_is_none_of_the_other() {
        let mut hosts = Hosts::default();
        let peer: SocketAddr = "198.51.100.7:4672".parse().unwrap();
        let over = |transport| Listed { transport: Some(transport), ..listed(0) };
        hosts.learn(peer, over(Transport::Udp));
        assert_eq!(hosts.listed(peer, Transport::Tcp, 0), None);
        assert!(hosts.listed(peer, Transport::Udp, 0).is_some());
        hosts.learn(peer, over(Transport::Tcp));
        assert!(hosts.listed(peer, Transport::Tcp, 0).is_some());
    }

    #[test]
    fn what_one_host_alone_received_holds_for_its_own_calls() {
        let mut hosts = Hosts::default();
        let peer: SocketAddr = "198.51.100.7:6881".parse().unwrap();
        let holds = |hosts: &Hosts, caller: &str| {
            let listed = hosts.listed(peer, Transport::Tcp, 0);
            listed.is_some_and(|listed| listed.holds_for(caller.parse().unwrap(), peer.ip()))
        };
        hosts.learn(peer, listed(0));
        hosts.learn(peer, listed(1));
        assert!(holds(&hosts, "10.0.0.5") && !holds(&hosts, "10.0.0.6"));
        // Another tracker says so too.
        hosts.learn(peer, Listed { reported_by: "192.0.2.2:6969".parse().unwrap(), ..listed(2) });
        assert!(holds(&hosts, "10.0.0.6"));
    }
}
