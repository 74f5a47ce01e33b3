//! Flows that others have announced: FTP's data connections, files over DCC.
//!
//! Anybody may write an announcement into a flow of his own. So it is for flows from or to the host that is
//! the client of that flow, for one of TCP between the sockets that it names, and for a short time; and it
//! adds to what is looked for in a flow and takes nothing away: what the flow is, its content says
//! ([`Core::announced`](super::super::core::Core::announced)).

use crate::event::{ANNOUNCED, Expectation};
use classify::flow::{Flow, Transport};
use rustc_hash::FxHashMap;
use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
};

/// Announced flows that are waited for: of all hosts, of one, and how long.
const MOST: usize = 4096;
const MOST_OF_HOST: usize = 32;
const WAIT_NS: u64 = 60_000_000_000;

/// Who opens a flow, where that is known, and the socket it is opened to.
type Ends = (Option<IpAddr>, SocketAddr);

/// An announcement, and the flow that it came in.
#[derive(Debug)]
pub(in crate::service) struct Announcement {
    pub(in crate::service) expectation: Expectation,
    pub(in crate::service) by: Flow,
    until_ns: u64,
}

impl Announcement {
    /// Whether the flow is between the hosts that announced it, so that it harms nobody else.
    pub(in crate::service) fn is_of_its_hosts(&self, flow: &Flow) -> bool {
        let hosts = |flow: &Flow| [flow.client.ip(), flow.server.ip()];
        let ([client, server], by) = (hosts(flow), hosts(&self.by));
        by == [client, server] || by == [server, client]
    }
}

/// All that are waited for.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    list: FxHashMap<Ends, Announcement>,
    /// When each ends, in that order; also some that are no longer waited for.
    order: VecDeque<(Ends, u64)>,
    /// Those of each host.
    of_hosts: FxHashMap<IpAddr, Vec<Ends>>,
}

impl Announcements {
    /// Waits for the flow that was announced in `by`, unless it concerns others; false where its host has
    /// announced too many.
    #[must_use]
    pub(super) fn add(&mut self, by: &Flow, expectation: Expectation, now_ns: u64) -> bool {
        self.forget(|until_ns, _| until_ns <= now_ns);
        let (client, server) = (expectation.client, expectation.server);
        let (host, ends) = (by.client.ip(), (client, server));
        if client != Some(host) && server.ip() != host {
            return true;
        }
        self.remove(&ends);
        let until_ns = now_ns.saturating_add(WAIT_NS);
        if expectation.application == ANNOUNCED[0] {
            self.replace(by, until_ns);
        }
        if self.of_hosts.get(&host).is_some_and(|own| own.len() >= MOST_OF_HOST) {
            return false;
        }
        self.forget(|_, waited_for| waited_for >= MOST);
        self.order.push_back((ends, until_ns));
        self.of_hosts.entry(host).or_default().push(ends);
        self.list.insert(ends, Announcement { expectation, by: *by, until_ns });
        true
    }

    /// The announcement of a flow that begins, if there was one.
    pub(super) fn take(&mut self, flow: &Flow, now_ns: u64) -> Option<Announcement> {
        if flow.transport != Transport::Tcp || self.list.is_empty() {
            return None;
        }
        self.forget(|until_ns, _| until_ns <= now_ns);
        let client = Some(flow.client.ip());
        self.remove(&(client, flow.server)).or_else(|| self.remove(&(None, flow.server)))
    }

    /// The parser has forgotten what it has promised: the flows are still read, without their files' names.
    pub(super) fn without_promises(&mut self) {
        for announcement in self.list.values_mut() {
            announcement.expectation.number = 0;
        }
    }

    /// A control connection of FTP has one data connection at a time: what it announced before is over.
    fn replace(&mut self, by: &Flow, until_ns: u64) {
        let own = self.of_hosts.get(&by.client.ip()).cloned().unwrap_or_default();
        for ends in own {
            let is_earlier = |it: &Announcement| it.by == *by && it.until_ns != until_ns;
            if self.list.get(&ends).is_some_and(is_earlier) {
                self.remove(&ends);
            }
        }
    }

    fn remove(&mut self, ends: &Ends) -> Option<Announcement> {
        let announcement = self.list.remove(ends)?;
        let host = announcement.by.client.ip();
        if let Some(own) = self.of_hosts.get_mut(&host) {
            own.retain(|it| it != ends);
            if own.is_empty() {
                self.of_hosts.remove(&host);
            }
        }
        Some(announcement)
    }

    /// Forgets the oldest, as long as `is_over` says so of its end and of how many there are.
    fn forget(&mut self, is_over: impl Fn(u64, usize) -> bool) {
        while let Some((ends, until_ns)) = self.order.front().copied() {
            let is_gone =
                self.list.get(&ends).is_none_or(|announced| announced.until_ns != until_ns);
            if !is_gone && !is_over(until_ns, self.list.len()) {
                break;
            }
            self.order.pop_front();
            if !is_gone {
                self.remove(&ends);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: &str = "10.0.0.5";
    const SERVER: &str = "192.0.2.7";

    fn flow(client: &str, server: &str) -> Flow {
        let [client, server] = [client, server].map(|text| text.parse().unwrap());
        Flow { transport: Transport::Tcp, client, server }
    }

    fn expectation(client: Option<&str>, server: &str) -> Expectation {
        let client = client.map(|text| text.parse().unwrap());
        let server = server.parse().unwrap();
        let (application, promise) = (ANNOUNCED[1], Default::default());
        Expectation { client, server, application, number: 7, promise }
    }

    #[test]
    fn an_announcement_is_for_one_flow_of_who_may_announce_it() {
        let by = flow("10.0.0.5:40000", "192.0.2.7:21");
        let other = "198.51.100.9";
        let rows = [
            // Client and server of the announcement, the flow that begins, whether it was announced.
            (Some(INSIDE), "192.0.2.7:1025", "10.0.0.5:40001", true),
            (Some(SERVER), "10.0.0.5:1025", "192.0.2.7:20", true),
            (None, "10.0.0.5:1025", "198.51.100.9:5", true),
            // What the server states of itself may be wrong; it is for its client all the same.
            (Some(INSIDE), "198.51.100.9:1025", "10.0.0.5:40001", true),
            (Some(INSIDE), "192.0.2.7:1025", "10.0.0.6:40001", false),
            (Some(SERVER), "10.0.0.6:1025", "192.0.2.7:20", false),
            (Some(other), "192.0.2.7:1025", "198.51.100.9:5", false),
            (None, "10.0.0.6:1025", "198.51.100.9:5", false),
            (None, "192.0.2.7:1025", "10.0.0.6:5", false),
        ];
        for (client, server, opener, expected) in rows {
            let mut list = Announcements::default();
            assert!(list.add(&by, expectation(client, server), 0));
            let flow = flow(opener, server);
            let datagrams = Flow { transport: Transport::Udp, ..flow };
            assert!(list.take(&datagrams, 1).is_none(), "{client:?} {server}");
            assert_eq!(list.take(&flow, 1).is_some(), expected, "{client:?} {server} {opener}");
            assert!(list.take(&flow, 1).is_none(), "one flow alone: {client:?} {server}");
            assert_eq!(list.of_hosts.values().flatten().count(), list.list.len());
        }
    }

    #[test]
    fn an_announcement_ends_by_time() {
        let (by, mut list) = (flow("10.0.0.5:40000", "192.0.2.7:21"), Announcements::default());
        let expected = || expectation(Some(INSIDE), "192.0.2.7:1025");
        let data = flow("10.0.0.5:40001", "192.0.2.7:1025");
        assert!(list.add(&by, expected(), 0) && list.take(&data, WAIT_NS).is_none());
        // Said again, it holds from then on.
        assert!(list.add(&by, expected(), 0) && list.add(&by, expected(), 5));
        assert!(list.take(&data, WAIT_NS + 4).is_some());
        assert!(list.take(&data, WAIT_NS + 4).is_none());
    }

    #[test]
    fn a_control_connection_of_ftp_replaces_what_it_announced() {
        let (by, mut list) = (flow("10.0.0.5:40000", "192.0.2.7:21"), Announcements::default());
        let ftp = |server: &str| Expectation {
            application: ANNOUNCED[0],
            ..expectation(Some(INSIDE), server)
        };
        // Behind NAT a server states another address; both are announced, and one is used at most.
        for port in 1..=100 {
            for server in [SERVER, "10.9.8.7"] {
                assert!(list.add(&by, ftp(&format!("{server}:{port}")), port));
            }
        }
        assert_eq!((list.list.len(), list.of_hosts[&by.client.ip()].len()), (2, 2));
        assert!(list.take(&flow("10.0.0.5:1", "192.0.2.7:99"), 100).is_none());
        assert!(list.take(&flow("10.0.0.5:1", "10.9.8.7:100"), 100).is_some());
    }

    #[test]
    fn one_host_that_announces_much_takes_nothing_from_another() {
        let by = flow("10.0.0.5:40000", "192.0.2.7:21");
        let other = flow("10.0.0.6:40000", "192.0.2.7:21");
        let mut list = Announcements::default();
        assert!(list.add(&other, expectation(Some("10.0.0.6"), "192.0.2.7:9"), 0));
        let mut taken = 0;
        for port in 1..=9000 {
            let server = format!("192.0.2.7:{port}");
            taken += usize::from(list.add(&by, expectation(Some(INSIDE), &server), 0));
        }
        assert_eq!(taken, MOST_OF_HOST);
        assert!(list.take(&flow("10.0.0.6:40001", "192.0.2.7:9"), 1).is_some());
    }

    #[test]
    fn many_hosts_leave_a_bounded_list_of_the_latest() {
        let mut list = Announcements::default();
        for host in 0..3 * MOST {
            let client = IpAddr::from([10, 1, (host >> 8) as u8, host as u8]);
            let by = Flow {
                transport: Transport::Tcp,
                client: (client, 4000).into(),
                server: "192.0.2.7:21".parse().unwrap(),
            };
            let expected = expectation(Some(&client.to_string()), "192.0.2.7:1025");
            assert!(list.add(&by, expected, host as u64));
        }
        assert_eq!((list.list.len(), list.order.len(), list.of_hosts.len()), (MOST, MOST, MOST));
        assert!(list.take(&flow("10.1.47.255:5", "192.0.2.7:1025"), 1).is_some());
    }
}
