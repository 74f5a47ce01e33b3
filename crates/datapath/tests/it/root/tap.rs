//! TAP devices between two namespaces: what one sends the other receives, and a device goes with the
//! file behind it.

use datapath::tap::{HEADER, LONGEST, OpenError, Tap};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    io::{IoSlice, IoSliceMut},
    os::fd::AsFd,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};
use testbed::Namespace;

/// Frames that crossed, and the longest.
#[derive(Default)]
struct Crossed {
    stop: AtomicBool,
    longest: AtomicUsize,
}

/// Carries frames between two devices until it is stopped.
fn carry(taps: [&Tap; 2], crossed: &Crossed) {
    let (mut head, mut tail) = ([0; 2048], vec![0; LONGEST]);
    while !crossed.stop.load(Ordering::Relaxed) {
        let mut ends = taps.map(|tap| PollFd::new(tap.as_fd(), PollFlags::POLLIN));
        poll(&mut ends, PollTimeout::from(20u8)).unwrap();
        for (from, to) in [(taps[0], taps[1]), (taps[1], taps[0])] {
            loop {
                let mut buffers = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)];
                let Some(length) = from.receive(&mut buffers).unwrap() else { break };
                crossed.longest.fetch_max(length, Ordering::Relaxed);
                let (first, rest) = (length.min(2048), length.saturating_sub(2048));
                to.send(&[IoSlice::new(&head[..first]), IoSlice::new(&tail[..rest])]).unwrap();
            }
        }
    }
}

#[test]
fn frames_and_super_packets_cross_between_two_devices() {
    let hosts = [Namespace::new("left").unwrap(), Namespace::new("right").unwrap()];
    let taps = [0, 1].map(|i| hosts[i].enter(|| Tap::open("eth0")).unwrap());
    for (host, address) in hosts.iter().zip(["192.0.2.1/24", "192.0.2.2/24"]) {
        host.check(&["ip", "address", "add", address, "dev", "eth0"]).unwrap();
        host.check(&["ip", "link", "set", "eth0", "up"]).unwrap();
    }
    let crossed = Crossed::default();
    std::thread::scope(|scope| {
        scope.spawn(|| carry([&taps[0], &taps[1]], &crossed));
        let ping = hosts[0].check(&["ping", "-c", "3", "-i", "0.1", "-s", "1400", "192.0.2.2"]);
        let listener = hosts[1].enter(|| std::net::TcpListener::bind("192.0.2.2:5000")).unwrap();
        let sum = scope.spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            std::io::copy(&mut stream, &mut std::io::sink()).unwrap()
        });
        hosts[0].enter(|| {
            let mut stream = std::net::TcpStream::connect("192.0.2.2:5000").unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
            let bytes = vec![7; 4 << 20];
            std::io::Write::write_all(&mut stream, &bytes).unwrap();
        });
        let received = sum.join().unwrap();
        crossed.stop.store(true, Ordering::Relaxed);
        assert!(ping.unwrap().contains("3 received"));
        assert_eq!(received, 4 << 20);
    });
    // Larger than any packet of an interface with an MTU of 1500: it came in one piece.
    let longest = crossed.longest.load(Ordering::Relaxed);
    assert!((HEADER + 14 + 1500 + 1..=LONGEST).contains(&longest), "{longest}");
}

#[test]
fn a_device_is_opened_once_and_goes_with_its_file() {
    let host = Namespace::new("host").unwrap();
    host.enter(|| {
        let tap = Tap::open("eth7").unwrap();
        assert!(Tap::open("eth7").is_err_and(|error| error.is_busy()));
        assert_eq!(tap.receive(&mut [IoSliceMut::new(&mut [0; 100])]).unwrap(), None);
        // The interface is down.
        assert!(tap.send(&[IoSlice::new(&[0; HEADER + 60])]).is_err());
    });
    assert!(!host.check(&["ip", "link"]).unwrap().contains("eth7"));
    host.check(&["ip", "tuntap", "add", "stays", "mode", "tap"]).unwrap();
    host.enter(|| drop(Tap::open("stays").unwrap()));
    assert!(host.check(&["ip", "link"]).unwrap().contains("stays"));
    let error: OpenError = host.enter(|| Tap::open("a_name_that_is_too_long")).unwrap_err();
    assert!(error.to_string().contains("1 to 15 bytes"), "{error}");
    assert!(host.enter(|| Tap::open("lo")).is_err());
}
