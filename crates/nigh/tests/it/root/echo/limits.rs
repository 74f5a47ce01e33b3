//! What an operator can change while it runs, and that a flood does not starve a quiet source.

use super::site::{NO_LIMIT, Pinged, SERVICE4, SERVICE6, Site, all};
use datapath::probe_socket::{Family, ProbeSocket};
use serde_json::Value;
use std::{
    net::{IpAddr, Ipv4Addr},
    thread,
    time::{Duration, Instant},
};
use testbed::{Pings, pings};
use wire::{Mac, echo_frame::EchoFrame};

#[test]
fn limits_change_at_run_time() {
    let site = Site::start(NO_LIMIT);
    assert_eq!(site.ping(&["-c", "100", "-i", "0.002", SERVICE4]), all(100));
    let printed = site.ask(&["echo", "limit", "--rate", "10", "--burst", "20", "--json"]);
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!((&printed["limit"]["rate"], &printed["limit"]["burst"]), (&10.into(), &20.into()));

    let before = site.row(SERVICE4);
    let begun = Instant::now();
    let pinged = site.ping(&["-c", "100", "-i", "0.002", SERVICE4]);
    // The burst, and what the rate lets through until ping gives up.
    let most = 20 + (begun.elapsed().as_secs_f64() * 10.0).ceil() as u64 + 1;
    assert!((20..=most).contains(&pinged.answered), "{pinged:?}, at most {most}");
    let after = site.row(SERVICE4);
    assert_eq!(after.answered - before.answered, pinged.answered);
    assert_eq!(after.dropped("source_limit"), pinged.sent - pinged.answered);

    // Until the next reload, which puts the file in force again.
    site.reload(NO_LIMIT);
    assert_eq!(site.ping(&["-c", "100", "-i", "0.002", SERVICE4]), all(100));
    let refused = site.ask(&["echo", "limit", "--rate", "100000", "--burst", "5"]);
    assert!(!refused.success() && refused.stderr.contains("burst"), "{}", refused.stderr);
}

#[test]
fn the_node_has_a_ceiling() {
    let site = Site::start(NO_LIMIT);
    let printed = site.ask(&["echo", "limit", "--node-rate", "20", "--node-burst", "10"]);
    assert!(printed.success(), "{}", printed.stderr);
    let begun = Instant::now();
    let four = site.ping(&["-c", "100", "-i", "0.002", SERVICE4]);
    let six = site.ping(&["-c", "100", "-i", "0.002", SERVICE6]);
    let most = 10 + (begun.elapsed().as_secs_f64() * 20.0).ceil() as u64 + 1;
    let answered = four.answered + six.answered;
    assert!((10..=most).contains(&answered), "{answered} answered, at most {most}");
    let dropped =
        site.row(SERVICE4).dropped("node_limit") + site.row(SERVICE6).dropped("node_limit");
    assert_eq!(dropped, 200 - answered);
}

#[test]
fn sources_are_allowed_and_denied_at_run_time() {
    let site = Site::start(NO_LIMIT);
    let ask = |words: &[&str]| {
        let printed = site.ask(words);
        assert!(printed.success(), "{words:?}: {}", printed.stderr);
    };
    let none = Pinged { sent: 3, answered: 0 };
    let quick = |address| site.ping(&["-c", "3", "-i", "0.05", address]);
    ask(&["echo", "deny", "--add", "172.17.0.0/24", "--add", "2001:db8:2::/64"]);
    assert_eq!((quick(SERVICE4), quick(SERVICE6)), (none, none));
    assert_eq!(site.row(SERVICE4).dropped("denied"), 3);
    assert_eq!(site.row(SERVICE6).dropped("denied"), 3);
    ask(&["echo", "deny", "--remove", "172.17.0.0/24"]);
    assert_eq!((quick(SERVICE4), quick(SERVICE6)), (all(3), none));
    // A list of allowed sources refuses all others; the denied stay denied.
    ask(&["echo", "allow", "--add", "192.0.2.0/24"]);
    assert_eq!(quick(SERVICE4), none);
    ask(&["echo", "allow", "--add", "172.17.0.2/32"]);
    assert_eq!(quick(SERVICE4), all(3));
    let refused = site.ask(&["echo", "deny", "--remove", "203.0.113.0/24"]);
    assert!(!refused.success() && refused.stderr.contains("is not in the list deny"));
    // The file has no lists: a reload empties them.
    site.reload(NO_LIMIT);
    assert_eq!((quick(SERVICE4), quick(SERVICE6)), (all(3), all(3)));
}

/// The flood's requests a second: what the namespaces' links carry without loss of their own.
const FLOOD: u32 = 20_000;

/// Requests from as many source prefixes as there are requests. Returns how many were sent.
fn flood(socket: &ProbeSocket, destination_mac: Mac, time: Duration) -> u64 {
    let service: IpAddr = SERVICE4.parse().unwrap();
    let begun = Instant::now();
    let mut number = 0_u32;
    while begun.elapsed() < time {
        let due = (begun.elapsed().as_secs_f64() * f64::from(FLOOD)) as u32;
        while number < due {
            // An odd multiplier visits every /24 of 64.0.0.0/2 before one comes again.
            number += 1;
            let prefix = number.wrapping_mul(2_654_435_761) >> 10;
            let source = Ipv4Addr::from(0x4000_0000 | prefix << 8 | 9);
            let frame = EchoFrame { destination_mac, ..EchoFrame::request(source.into(), service) };
            let frame = frame.to_bytes().unwrap();
            // The queue of the interface is full: again.
            while let Err(error) = socket.send(&frame) {
                assert_eq!(error.raw_os_error(), Some(nix::libc::ENOBUFS), "{error}");
                thread::yield_now();
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
    number.into()
}

#[test]
fn a_flood_from_random_sources_does_not_starve_a_quiet_one() {
    // The default limit of a source, which the flood's sources do not reach.
    let site = Site::start("");
    let text = site.node.check(&["ip", "-j", "link", "show", "dev", "eth0"]).unwrap();
    let links: Value = serde_json::from_str(&text).unwrap();
    let mac: Mac = links[0]["address"].as_str().unwrap().parse().unwrap();
    let text = site.router.check(&["ip", "-j", "link", "show", "dev", "eth0"]).unwrap();
    let links: Value = serde_json::from_str(&text).unwrap();
    let index = links[0]["ifindex"].as_u64().unwrap().try_into().unwrap();
    let socket = site.router.enter(|| ProbeSocket::open(index, Family::V4, 1)).unwrap();
    // The flood's answers end here.
    site.router.check(&["ip", "route", "add", "blackhole", "64.0.0.0/2"]).unwrap();

    let quiet = Pings::start(&site.client, SERVICE4, Duration::from_millis(100)).unwrap();
    let sent = flood(&socket, mac, Duration::from_secs(4));
    let replies = quiet.finish().unwrap();
    let row = site.row(SERVICE4);
    assert!(replies.len() >= 30, "only {} replies: {row:?}", replies.len());
    assert_eq!(pings::lost(&replies), 0, "of {} pings through a flood: {row:?}", replies.len());
    assert!(sent > 50_000, "{sent} requests in four seconds are no flood");
    assert!(row.received >= sent, "{row:?} of {sent}");
}
