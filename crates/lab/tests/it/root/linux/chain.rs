//! Five namespaces in a row that forward packets, with a TAP at each end.

use std::{
    io::{IoSlice, IoSliceMut},
    time::{Duration, Instant},
};

use datapath::tap::{HEADER, LONGEST, Tap};
use testbed::{End, Namespace, link};

use super::CapturedPacket;

/// How long an answer that should come may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long to look out for answers that should not come.
const QUIET: Duration = Duration::from_millis(30);
/// The MAC addresses of the hosts that the TAPs stand for, and of the routers there.
const HOST: &str = "02:00:00:00:00:10";
const ROUTER: &str = "02:00:00:00:00:01";

/// The routers, and the TAPs of the first and the last.
pub(crate) struct Chain {
    routers: Vec<Namespace>,
    taps: [Tap; 2],
    /// The network behind the fourth, where no host is.
    _nobody: Tap,
}

fn run(namespace: &Namespace, line: &str) {
    namespace.check(&line.split(' ').collect::<Vec<_>>()).expect(line);
}

impl Chain {
    /// Makes everything; [`super::Simulated`] is its model.
    pub(crate) fn build() -> Self {
        let routers: Vec<_> =
            (0..5).map(|n| Namespace::new(&format!("r{n}")).expect("a namespace")).collect();
        for router in &routers {
            router.forward().expect("forwarding");
        }
        for n in 0..4 {
            let m = n + 1;
            let mtu = if n == 2 { 1280 } else { 1500 };
            let end = |router: &'static str, at: usize| {
                End::new(&routers[at], router).mtu(mtu).no_offloads()
            };
            link(end("right", n), end("left", m)).expect("a link");
            for (at, name, own, far) in [(n, "right", n, m), (m, "left", m, n)] {
                run(
                    &routers[at],
                    &format!(
                        "ip address add 172.16.{own}.{far} peer 172.16.{far}.{own} dev {name}"
                    ),
                );
                let (own, far) =
                    (format!("2001:db8:ffff:{own}::{far}"), format!("2001:db8:ffff:{far}::{own}"));
                run(&routers[at], &format!("ip address add {own} peer {far} dev {name} nodad"));
            }
        }
        let tap = |at: usize| {
            let tap = routers[at].enter(|| Tap::open("host")).expect("a TAP");
            run(&routers[at], &format!("ip link set host address {ROUTER} up"));
            run(&routers[at], &format!("ip address add 10.{at}.0.1/16 dev host"));
            run(&routers[at], &format!("ip address add 2001:db8:{at}::1/48 dev host nodad"));
            for address in [format!("10.{at}.0.10"), format!("2001:db8:{at}::10")] {
                run(&routers[at], &format!("ip neighbour add {address} lladdr {HOST} dev host"));
            }
            tap
        };
        let taps = [tap(0), tap(4)];
        let nobody = routers[3].enter(|| Tap::open("nobody")).expect("a TAP");
        for family in ["ipv4", "ipv6"] {
            let setting = |name: &str| format!("{family}.neigh.nobody.{name}");
            let settings = [(setting("mcast_solicit"), "1"), (setting("retrans_time_ms"), "20")];
            let settings = settings.each_ref().map(|(name, value)| (name.as_str(), *value));
            routers[3].sysctl(&settings).expect("settings");
        }
        run(&routers[3], "ip link set nobody up");
        run(&routers[3], "ip address add 10.3.0.2/16 dev nobody");
        run(&routers[3], "ip address add 2001:db8:3::2/48 dev nobody nodad");
        for (n, router) in routers.iter().enumerate() {
            if (1..4).contains(&n) {
                run(router, &format!("ip address add 10.{n}.0.1/32 dev lo"));
                run(router, &format!("ip address add 2001:db8:{n}::1/128 dev lo nodad"));
            }
            for to in (0..5).filter(|&to| to != n) {
                let (by, next) = if to > n { ("right", n + 1) } else { ("left", n - 1) };
                let via = format!("172.16.{next}.{n}");
                run(router, &format!("ip route add 10.{to}.0.0/16 via {via} dev {by}"));
                let via = format!("2001:db8:ffff:{next}::{n}");
                run(router, &format!("ip route add 2001:db8:{to}::/48 via {via} dev {by}"));
            }
        }
        run(&routers[2], "ip route add prohibit 10.4.99.0/24");
        run(&routers[2], "ip route add prohibit 2001:db8:4:99::/64");
        let chain = Self { routers, taps, _nobody: nobody };
        chain.warm_up();
        chain
    }

    /// Lets the routers find their neighbours.
    fn warm_up(&self) {
        for packet in super::probes::crossing() {
            let begin = Instant::now();
            while self.send(&packet, 1).is_empty() && begin.elapsed() < Duration::from_secs(20) {}
        }
    }

    /// Sends a packet from the first host, and gives what comes to both hosts: as much as is expected
    /// and what else comes soon.
    pub(crate) fn send(&self, packet: &[u8], expected: usize) -> Vec<CapturedPacket> {
        self.send_many(packet, 1, expected)
    }

    /// Sets the limits of errors that Linux has by default.
    pub(crate) fn limit_errors(&self) {
        let settings = [
            ("ipv4.icmp_ratelimit", "1000"),
            ("ipv4.icmp_msgs_per_sec", "1000"),
            ("ipv6.icmp.ratelimit", "100"),
        ];
        for router in &self.routers {
            router.sysctl(&settings).expect("settings");
        }
    }

    /// As [`Chain::send`], so many times at once.
    pub(crate) fn send_many(
        &self,
        packet: &[u8],
        count: usize,
        expected: usize,
    ) -> Vec<CapturedPacket> {
        let kind = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
        let macs = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0x10];
        let frame = [&[0; HEADER][..], &macs, &kind, packet].concat();
        for _ in 0..count {
            self.taps[0].send(&[IoSlice::new(&frame)]).expect("the kernel takes it");
        }
        let (mut seen, mut buffer) = (Vec::new(), vec![0; LONGEST]);
        let begin = Instant::now();
        let mut quiet = begin;
        loop {
            for (end, tap) in self.taps.iter().enumerate() {
                while let Some(length) =
                    tap.receive(&mut [IoSliceMut::new(&mut buffer)]).expect("a read")
                {
                    quiet = Instant::now();
                    let frame = &mut buffer[..length];
                    lab::gso::finish_checksum([frame, &mut []]).expect("a frame");
                    let discovery = frame[24..26] == [0x86, 0xdd]
                        && frame[32] == 58
                        && (130..=143).contains(&frame[66])
                        || frame[24..26] == [0x86, 0xdd] && frame[32] == 0;
                    if frame[24..26] != [8, 6] && !discovery {
                        seen.push((end, frame[26..].to_vec()));
                    }
                }
            }
            let timeout = if seen.len() < expected { TIMEOUT } else { QUIET };
            if quiet.elapsed() > timeout {
                return seen;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
