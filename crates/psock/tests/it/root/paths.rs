//! Paths between namespaces that are cut and return: the streams stay exact, or end with an error.

use crate::common::{
    LIMIT, key, read, read_on, read_to_error, read_up_to, session_error, to, write,
};
use psock::{
    Config, ConnectionState, Counters, DriverName, Endpoint, PsockListener, PsockStream,
    SessionError,
};
use std::{
    net::{Shutdown, SocketAddr},
    thread,
    time::Duration,
};
use testbed::{End, Namespace, link, wait_until};

/// A number of paths between two namespaces, each through a router of its own.
struct Net {
    left: Namespace,
    right: Namespace,
    routers: Vec<Namespace>,
}

impl Net {
    /// Paths of IPv4, and every third one of IPv6.
    fn new(paths: usize) -> Self {
        let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
        let routers: Vec<_> = (0..paths).map(|_| Namespace::new("router").unwrap()).collect();
        for (path, router) in routers.iter().enumerate() {
            router.forward().unwrap();
            for (side, end) in [(1, &left), (2, &right)] {
                let (own, gateway, far, bits) = match path % 3 {
                    2 => (
                        format!("2001:db8:{path}:{side}::2"),
                        format!("2001:db8:{path}:{side}::1"),
                        format!("2001:db8:{path}:{}::/64", 3 - side),
                        64,
                    ),
                    _ => (
                        format!("10.{path}.{side}.2"),
                        format!("10.{path}.{side}.1"),
                        format!("10.{path}.{}.0/30", 3 - side),
                        30,
                    ),
                };
                link(
                    End::new(end, &format!("eth{path}")).address(&format!("{own}/{bits}")),
                    End::new(router, &format!("eth{side}")).address(&format!("{gateway}/{bits}")),
                )
                .unwrap();
                end.check(&["ip", "route", "add", &far, "via", &gateway]).unwrap();
            }
        }
        Self { left, right, routers }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        let address = |path: usize| match path % 3 {
            2 => format!("[2001:db8:{path}:2::2]:7000"),
            _ => format!("10.{path}.2.2:7000"),
        };
        (0..self.routers.len()).map(|path| address(path).parse().unwrap()).collect()
    }

    /// Lets a router drop what it should forward, without a word; or forward again.
    fn forwards(&self, path: usize, yes: bool) {
        let value = if yes { "1" } else { "0" };
        let settings = [("ipv4.ip_forward", value), ("ipv6.conf.all.forwarding", value)];
        self.routers[path].sysctl(&settings).unwrap();
    }

    /// A session from left to right over all paths: the connecting end first.
    fn session(&self, config: &Config) -> (PsockStream, PsockStream) {
        let addresses = self.addresses();
        let listener = self.right.enter(|| PsockListener::bind(&addresses, config)).unwrap();
        let config = to(&addresses, config);
        let one = self.left.enter(|| PsockStream::connect(&config)).unwrap();
        let (other, _) = listener.accept().unwrap();
        on_all_paths(&one);
        (one, other)
    }
}

/// Dead paths are found out soon.
fn impatient() -> Config {
    Config { path_timeout: Duration::from_millis(500), connect_timeout: LIMIT, ..key() }
}

/// Waits until the counters of a stream are so.
fn until(what: &str, stream: &PsockStream, condition: impl Fn(&Counters) -> bool) {
    let result = wait_until(what, LIMIT, || condition(&stream.counters()));
    result.unwrap_or_else(|_| panic!("not {what}: {:#?}", stream.counters()));
}

/// A path that was never joined cannot die.
fn on_all_paths(stream: &PsockStream) {
    until("on all paths", stream, |counters| {
        counters.connections.iter().all(|connection| connection.state == ConnectionState::Open)
    });
}

/// Both streams of a session while `happens` does; `length` bytes in each direction.
fn both_ways(one: &PsockStream, other: &PsockStream, length: u64, happens: impl FnOnce() + Send) {
    thread::scope(|scope| {
        for (stream, ours) in [(one, 1), (other, 2)] {
            scope.spawn(move || {
                write(stream, ours, length).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
        }
        scope.spawn(move || assert_eq!(read(one, 2).unwrap(), length));
        assert_eq!(read_up_to(other, 1, length / 4).unwrap(), length / 4);
        happens();
        assert_eq!(read_on(other, 1, length / 4, u64::MAX).unwrap(), length);
    });
}

/// Two of four paths are cut and return under a stream of so many bytes; how many bytes were sent on the
/// two of them after they had returned.
fn cut_two_of_four(driver: DriverName, length: u64) -> [u64; 2] {
    let net = Net::new(4);
    let (one, other) = net.session(&Config { driver, ..impatient() });
    let sent = |path: usize| one.counters().connections[path].bytes_sent;
    let again = thread::scope(|scope| {
        scope.spawn(|| {
            write(&one, 1, length).unwrap();
            one.shutdown(Shutdown::Write).unwrap();
        });
        assert_eq!(read_up_to(&other, 1, length / 4).unwrap(), length / 4);
        net.forwards(1, false);
        net.forwards(2, false);
        until("cut", &one, |c| [1, 2].iter().all(|&path| c.connections[path].failures > 0));
        net.forwards(1, true);
        net.forwards(2, true);
        until("back", &one, |c| [1, 2].iter().all(|&path| c.connections[path].recoveries > 0));
        let before = [sent(1), sent(2)];
        assert_eq!(read_on(&other, 1, length / 4, u64::MAX).unwrap(), length);
        [sent(1) - before[0], sent(2) - before[1]]
    });
    other.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&one, 0).unwrap(), 0);
    one.close().unwrap();
    other.close().unwrap();
    again
}

#[test]
fn two_of_four_paths_are_cut_and_return() {
    cut_two_of_four(DriverName::Adaptive, 100_000_000);
}

#[test]
fn soak_two_of_four_paths_are_cut_and_return_under_200_megabytes() {
    cut_two_of_four(DriverName::Adaptive, 200_000_000);
}

#[test]
fn paths_that_return_are_used_again() {
    // Here no path is better than another, so only this driver needs each of them.
    let again = cut_two_of_four(DriverName::RoundRobin, 150_000_000);
    assert!(again.iter().all(|&bytes| bytes > 0), "{again:?}");
}

#[test]
fn a_link_goes_down_at_either_end_and_comes_up_again() {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    for path in ["1", "2"] {
        link(
            End::new(&left, &format!("eth{path}")).address(&format!("10.0.{path}.1/30")),
            End::new(&right, &format!("eth{path}")).address(&format!("10.0.{path}.2/30")),
        )
        .unwrap();
    }
    let addresses: Vec<SocketAddr> =
        ["10.0.1.2:7000", "10.0.2.2:7000"].map(|address| address.parse().unwrap()).to_vec();
    let listener = right.enter(|| PsockListener::bind(&addresses, &impatient())).unwrap();
    let mut config = to(&addresses, &impatient());
    config.paths[0].local = Some("10.0.1.1".parse().unwrap());
    config.paths[1].local = Some("%eth2".parse().unwrap());
    // The second address is there for the first interface as well, but not to be connected to.
    let endpoint: Endpoint = "%eth2>0.0.0.0:7001".parse().unwrap();
    let _only = right.enter(|| PsockListener::bind(&[endpoint], &impatient())).unwrap();
    let reaches = |local: &str| {
        let path = format!("{local}>10.0.2.2:7001").parse().unwrap();
        let config = Config { paths: vec![path], ..impatient() };
        left.enter(|| PsockStream::connect(&config)).map(drop)
    };
    left.check(&["ip", "route", "add", "10.0.2.2/32", "via", "10.0.1.2", "dev", "eth1"]).unwrap();
    reaches("%eth2").unwrap();
    reaches("%eth1").unwrap_err();
    left.check(&["ip", "route", "del", "10.0.2.2/32"]).unwrap();
    let one = left.enter(|| PsockStream::connect(&config)).unwrap();
    let (other, _) = listener.accept().unwrap();
    on_all_paths(&one);
    both_ways(&one, &other, 20_000_000, || {
        // The first path has the control connection too.
        for (deaths, (namespace, interface)) in
            [(&left, "eth1"), (&right, "eth2")].iter().enumerate()
        {
            let set = |to: &str| {
                namespace.check(&["ip", "link", "set", "dev", interface, to]).unwrap();
            };
            set("down");
            until("cut", &one, |c| c.connections[deaths].failures > 0);
            set("up");
            until("back", &one, |c| c.connections[deaths].recoveries > 0);
        }
    });
    one.close().unwrap();
    other.close().unwrap();
}

#[test]
fn a_session_outlives_all_of_its_paths_for_a_while() {
    for driver in DriverName::ALL {
        let net = Net::new(2);
        let (one, other) = net.session(&Config { driver, survive: LIMIT, ..impatient() });
        both_ways(&one, &other, 10_000_000, || {
            net.forwards(0, false);
            net.forwards(1, false);
            until("cut", &one, |c| c.connections.iter().all(|c| c.failures > 0));
            until("without control", &one, |c| c.session.control == ConnectionState::Dead);
            net.forwards(0, true);
            net.forwards(1, true);
            until("back", &one, |c| c.session.control_recoveries > 0);
        });
        one.close().unwrap();
        other.close().unwrap();
    }
}

#[test]
fn without_any_path_a_session_ends_with_an_error_at_both_ends() {
    let net = Net::new(2);
    let survive = Duration::from_secs(10);
    let (one, other) = net.session(&Config { survive, ..impatient() });
    thread::scope(|scope| {
        scope.spawn(|| {
            let error = write(&one, 1, u64::MAX).unwrap_err();
            let expected = SessionError::AllPathsDead(survive);
            assert_eq!(session_error(&error), Some(&expected));
            assert_eq!(session_error(&read_to_error(&one)), Some(&expected));
        });
        read_up_to(&other, 1, 1_000_000).unwrap();
        net.forwards(0, false);
        net.forwards(1, false);
        let expected = SessionError::AllPathsDead(survive);
        assert_eq!(session_error(&read_to_error(&other)), Some(&expected));
    });
    assert_eq!(one.close(), Err(SessionError::AllPathsDead(survive)));
}
