//! An interface taken over through AF_XDP: its frames come here, ours leave by it, and it is as it was
//! when that ends.

use datapath::xsk::{Interface, OpenError};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use testbed::{End, Namespace, link, wait_until};

/// Two hosts and a namespace between them with an interface to each.
struct Stage {
    hosts: [Namespace; 2],
    middle: Namespace,
}

fn stage() -> Stage {
    let hosts = [Namespace::new("left").unwrap(), Namespace::new("right").unwrap()];
    let middle = Namespace::new("middle").unwrap();
    for (host, (name, address)) in
        hosts.iter().zip([("left", "192.0.2.1/24"), ("right", "192.0.2.2/24")])
    {
        // A frame that is forwarded as it is needs its checksum.
        let host = End::new(host, "eth0").address(address).no_offloads();
        link(host, End::new(&middle, name).queues(2)).unwrap();
    }
    Stage { hosts, middle }
}

#[test]
fn frames_cross_between_two_interfaces() {
    let Stage { hosts, middle } = stage();
    let open = |name| middle.enter(|| Interface::open(name)).unwrap();
    let (mut left, mut right) = (open("left"), open("right"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; datapath::xsk::LONGEST];
            while !stop.load(Ordering::Relaxed) {
                let mut idle = true;
                while let Some(length) = left.receive(&mut [&mut buffer]) {
                    let (head, tail) = buffer[..length].split_at(14);
                    assert!(right.send(&[head, tail]).unwrap());
                    idle = false;
                }
                while let Some(length) = right.receive(&mut [&mut buffer]) {
                    assert!(left.send(&[&buffer[..length]]).unwrap());
                    idle = false;
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
        });
        let ping = hosts[0].check(&["ping", "-c", "3", "-i", "0.1", "-s", "1400", "192.0.2.2"]);
        // Every place of every ring is used more than once.
        let flood = hosts[0].check(&["ping", "-q", "-f", "-c", "10000", "192.0.2.2"]);
        stop.store(true, Ordering::Relaxed);
        assert!(ping.unwrap().contains("3 received"));
        assert!(flood.unwrap().contains(" 0% packet loss"));
    });
    // More than there are places: none is lost with what is refused.
    for _ in 0..2049 {
        assert!(!left.send(&[&[0; 5000]]).unwrap(), "no place for such a frame");
    }
    assert!(left.send(&[&[0xff; 60]]).unwrap());
    // The kernel has its interfaces back.
    drop((left, right));
    middle.check(&["ip", "address", "add", "192.0.2.3/24", "dev", "left"]).unwrap();
    hosts[0].check(&["ping", "-c", "1", "192.0.2.3"]).unwrap();
}

#[test]
fn an_interface_is_taken_once() {
    let stage = stage();
    stage.middle.enter(|| {
        assert!(matches!(Interface::open("none"), Err(OpenError::NoInterface(_))));
        let first = Interface::open("left").unwrap();
        assert!(matches!(Interface::open("left"), Err(OpenError::Attach(_))));
        drop(first);
        // A program that another thread starts just now holds what is open here until it is there.
        let again = || Interface::open("left").is_ok();
        wait_until("the interface to be free", Duration::from_secs(10), again).unwrap();
    });
}
