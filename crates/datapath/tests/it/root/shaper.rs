//! Limits in namespaces: a class holds its rate, beside it nothing waits, and what a process leaves
//! behind the next one takes over.

use datapath::shaper::{Direction, Error, MAJOR, Rate, Shaper};
use nix::{
    net::if_::if_nametoindex,
    sys::socket::{setsockopt, sockopt},
};
use std::{
    collections::BTreeSet,
    net::UdpSocket,
    time::{Duration, Instant},
};
use testbed::Namespace;

const IFB: &str = "nigh-ifb";
const RATE: Rate = Rate { bytes_a_second: 500_000 };
/// Bytes of a frame: 1400 of payload, UDP, IPv4, Ethernet.
const FRAME: u64 = 1400 + 8 + 20 + 14;

/// A gateway and a host behind its interface `eth0`.
fn scene() -> (Namespace, Namespace) {
    let (gateway, host) = testbed::pair().unwrap();
    gateway.check(&["ping", "-c", "1", "192.0.2.2"]).unwrap();
    (gateway, host)
}

fn open(gateway: &Namespace) -> Result<Shaper, Error> {
    gateway.enter(|| Shaper::open(if_nametoindex("eth0").unwrap(), IFB))
}

/// A socket of the gateway whose packets have a class, or with 0 none.
fn sender(gateway: &Namespace, class: u16) -> UdpSocket {
    let socket = gateway.enter(|| UdpSocket::bind("192.0.2.1:0")).unwrap();
    if class != 0 {
        let priority = u32::from(MAJOR) << 16 | u32::from(class);
        setsockopt(&socket, sockopt::Priority, &(priority as i32)).unwrap();
    }
    // Less than the queue holds, so that sending waits and nothing is dropped.
    setsockopt(&socket, sockopt::SndBuf, &(64 << 10)).unwrap();
    socket.connect("192.0.2.2:9").unwrap();
    socket
}

#[test]
fn a_class_holds_its_rate_and_beside_it_nothing_waits() {
    let (gateway, host) = scene();
    let receiver = host.enter(|| UdpSocket::bind("192.0.2.2:9")).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut shaper = open(&gateway).unwrap();
    shaper.class(7, Some(RATE), Some(RATE)).unwrap();
    let (limited, free) = (sender(&gateway, 7), sender(&gateway, 0));
    let begin = Instant::now();
    let count = 200;
    let mut buffer = [0; 1500];
    let (mut arrived, mut before) = (0, None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..count {
                // Waits for room in the socket's buffer, which the queue holds.
                limited.send(&[7; 1400]).unwrap();
            }
            free.send(b"free").unwrap();
        });
        while arrived < count || before.is_none() {
            match receiver.recv(&mut buffer).unwrap() {
                4 => before = Some(arrived),
                _ => arrived += 1,
            }
        }
    });
    // The queue held some of the limited ones when the free one passed them.
    assert!(before.unwrap() < count, "the free packet waited for all others");
    // Never faster than the rate: all but the burst of ten milliseconds took its time.
    let burst = RATE.bytes_a_second / 100 + 2 * FRAME;
    let least = (count * FRAME - burst) as f64 / RATE.bytes_a_second as f64;
    assert!(begin.elapsed().as_secs_f64() >= least, "{:?} for {least} s", begin.elapsed());
    let usage = shaper.usage().unwrap();
    let down = usage.iter().find(|usage| usage.direction == Direction::Down).unwrap();
    assert_eq!((down.class, down.bytes, down.packets), (7, count * FRAME, count));
    assert_eq!((down.dropped, down.waiting), (0, 0));
    let up = usage.iter().find(|usage| usage.direction == Direction::Up).unwrap();
    assert_eq!((up.class, up.packets), (7, 0));
    shaper.close().unwrap();
}

#[test]
fn limits_outlive_a_process_and_the_next_one_takes_them_over() {
    let (gateway, _host) = scene();
    let mut first = open(&gateway).unwrap();
    let ifb = first.ifb();
    first.class(1, Some(RATE), Some(RATE)).unwrap();
    first.class(2, Some(RATE), Some(RATE)).unwrap();
    drop(first);
    let mut second = open(&gateway).unwrap();
    assert_eq!(second.ifb(), ifb);
    let classes = |shaper: &mut Shaper| {
        shaper.usage().unwrap().iter().map(|usage| usage.class).collect::<Vec<_>>()
    };
    assert_eq!(classes(&mut second).len(), 4);
    second.class(2, None, Some(Rate { bytes_a_second: 10_000_000_000 })).unwrap();
    let shown = gateway.check(&["tc", "class", "show", "dev", "eth0"]).unwrap();
    assert!(shown.contains("rate 80Gbit"), "{shown}");
    second.keep(&BTreeSet::from([2])).unwrap();
    assert_eq!(classes(&mut second), [2]);
    second.remove(9).unwrap();
    second.close().unwrap();
    let left = gateway.check(&["tc", "qdisc", "show"]).unwrap();
    assert!(!left.contains("htb"), "{left}");
    assert!(gateway.check(&["ip", "link", "show", IFB]).is_err());
}

#[test]
fn an_operators_qdisc_is_left_alone() {
    let (gateway, _host) = scene();
    let words = "tc qdisc add dev eth0 root handle 5: tbf rate 1gbit burst 1mb latency 10ms";
    gateway.check(&words.split(' ').collect::<Vec<_>>()).unwrap();
    let error = open(&gateway).unwrap_err();
    assert!(matches!(&error, Error::Occupied(name) if name == "eth0"));
    assert!(error.to_string().contains("`tc qdisc del dev eth0 root`"), "{error}");
    assert!(gateway.check(&["tc", "qdisc", "show", "dev", "eth0"]).unwrap().contains("tbf"));
}
