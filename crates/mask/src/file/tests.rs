//! Whole captures: order, interfaces, times, what is skipped.

use super::*;
use crate::key::{self, Rotation};
use ::capture::{
    LinkType,
    pcapng::{Medium, Record},
    read,
};
use zeroize::Zeroizing;

const KEY: [u8; 32] = [0x51; 32];

fn job(policy: &str) -> Job {
    let policy = Policy::shipped(policy).expect("a policy");
    Job::new(&policy, Zeroizing::new(KEY), MappingName::CryptoPan).expect("a job")
}

/// An Ethernet frame with an IPv4 packet of UDP, whose source address ends in this number.
fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![0x11; 12];
    frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend((0x0a00_0000 | number).to_be_bytes());
    frame.extend([192, 0, 2, 1, 0, 53, 0, 53, 0, 20, 0, 0]);
    frame.extend(*b"secret words");
    frame
}

fn record(bytes: &[u8], number: u64) -> Record<'_> {
    Record {
        interface: 0,
        time: 1_000_000_000 + number,
        direction: None,
        medium: Medium::Ethernet,
        length: bytes.len() as u32 + 1000,
        bytes,
        comment: Some("a comment of somebody"),
    }
}

fn recorded(count: u32) -> Vec<u8> {
    let mut out = Vec::new();
    pcapng::section(&mut out, "a program", Some("a secret note"));
    pcapng::interface(&mut out, Some("secret0"), Medium::Ethernet, 0);
    for number in 0..count {
        pcapng::packet(&mut out, record(&frame(number), number.into()));
    }
    out
}

fn masked(policy: &str, capture: &[u8], workers: usize) -> (Vec<u8>, Counts) {
    let mut out = Vec::new();
    let counts = job(policy).run(capture, &mut out, workers).expect("masked");
    (out, counts)
}

/// Times and bytes of the frames of a capture, and the links.
fn frames(capture: &[u8]) -> Vec<(u64, LinkType, Vec<u8>, u32)> {
    let mut all = Vec::new();
    read::<ReadError>(capture, |frame, _| {
        all.push((frame.at_ns, frame.link, frame.bytes.to_vec(), frame.length));
        Ok(())
    })
    .expect("a capture");
    all
}

#[test]
fn packets_keep_their_order_and_the_number_of_workers_changes_nothing() {
    let capture = recorded(50_000);
    let (one, counts) = masked("research", &capture, 1);
    let (four, again) = masked("research", &capture, 4);
    assert_eq!((counts.frames, counts.masked), (50_000, 50_000));
    assert_eq!(counts, again);
    assert!(one == four);
    let all = frames(&one);
    assert_eq!(all.len(), 50_000);
    let pan = crate::mapping::CryptoPan::new(&KEY);
    for (number, (time, link, bytes, length)) in all.iter().enumerate() {
        assert_eq!(
            (*time, *link, *length),
            (1_000_000_000 + number as u64, LinkType::ETHERNET, 1054)
        );
        let source = pan.map4(0x0a00_0000 | number as u32);
        assert_eq!(bytes[26..30], source.to_be_bytes());
        // The headers; what lies above is cut.
        assert_eq!(bytes.len(), 14 + 20 + 8);
    }
}

#[test]
fn a_key_is_wiped_where_the_job_is_not_dropped() {
    let job = job("research");
    assert_ne!(*job.key_of(0), [0; 32]);
    job.wiper()();
    assert_eq!(*job.key_of(0), [0; 32]);
}

#[test]
fn names_comments_and_payload_are_removed() {
    let (out, _) = masked("debug", &recorded(3), 2);
    for secret in ["secret", "somebody", "a program", "a secret note"] {
        let found = out.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{secret}");
    }
    let text = String::from_utf8_lossy(&out);
    assert!(text.contains("policy SHA-256 "), "{text}");
}

#[test]
fn times_become_what_the_policy_says() {
    let (out, _) = masked("strict", &recorded(3), 2);
    let times: Vec<u64> = frames(&out).iter().map(|frame| frame.0).collect();
    assert_eq!(times, [0, 1, 2]);
    let policy = Policy::read("about = \"nothing\"").expect("a policy");
    let job =
        Job::new(&policy, key::fresh().expect("a key"), MappingName::IpcryptPfx).expect("a job");
    let mut out = Vec::new();
    job.run(&recorded(3)[..], &mut out, 1).expect("masked");
    assert_eq!(frames(&out).iter().map(|frame| frame.0).collect::<Vec<_>>(), [0, 0, 0]);
}

#[test]
fn relative_times_count_from_the_first_packet_that_has_one() {
    let mut capture = Vec::new();
    pcapng::section(&mut capture, "a program", None);
    pcapng::interface(&mut capture, None, Medium::Ethernet, 0);
    pcapng::interface(&mut capture, None, Medium::Link(LinkType(147)), 0);
    // A simple packet, which has no time; then one that is skipped.
    let frame = frame(1);
    let length = (frame.len() as u32).to_le_bytes();
    let block = ((frame.len().next_multiple_of(4) + 16) as u32).to_le_bytes();
    let room = vec![0; frame.len().next_multiple_of(4) - frame.len()];
    capture.extend([&[3, 0, 0, 0][..], &block, &length, &frame, &room, &block].concat());
    let other = Record { interface: 1, medium: Medium::Link(LinkType(147)), ..record(b"other", 0) };
    pcapng::packet(&mut capture, other);
    for number in [500, 700] {
        pcapng::packet(&mut capture, record(&frame, number));
    }
    // Of an interface that there is not.
    pcapng::packet(&mut capture, Record { interface: 7, ..record(&frame, 9) });
    let (out, counts) = masked("strict", &capture, 1);
    assert_eq!(frames(&out).iter().map(|frame| frame.0).collect::<Vec<_>>(), [0, 0, 200]);
    assert_eq!((counts.frames, counts.masked), (5, 3));
    assert_eq!((counts.other_links, counts.no_interface), (1, 1));
}

#[test]
fn very_long_packets_are_cut() {
    let mut capture = Vec::new();
    pcapng::section(&mut capture, "a program", None);
    pcapng::interface(&mut capture, None, Medium::Ethernet, 0);
    let frame = vec![7; 300_000];
    pcapng::packet(&mut capture, record(&frame, 0));
    let (out, counts) = masked("strict", &capture, 1);
    assert_eq!(counts.bytes_in, 262_144);
    assert_eq!(frames(&out)[0].3, 301_000);
}

#[test]
fn links_without_ethernet_keep_only_their_packet_and_unknown_ones_are_counted() {
    let mut capture = Vec::new();
    pcapng::section(&mut capture, "a program", None);
    let links = [LinkType::RAW, LinkType(0), LinkType(147)];
    for link in links {
        pcapng::interface(&mut capture, None, Medium::Link(link), 0);
    }
    let ip = &frame(7)[14..];
    let with_family = [&[2, 0, 0, 0], ip].concat();
    for (interface, bytes) in [(0, ip), (1, &with_family[..]), (2, &b"unknown"[..])] {
        let medium = Medium::Link(links[interface]);
        let interface = interface as u32;
        pcapng::packet(&mut capture, Record { interface, medium, ..record(bytes, 0) });
    }
    let (out, counts) = masked("research", &capture, 1);
    assert_eq!((counts.frames, counts.masked, counts.other_links), (3, 2, 1));
    let all = frames(&out);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].2, all[1].2);
    assert_eq!(all[0].2[..5], [2, 0, 0, 0, 0x45]);
    assert_eq!(all[0].3, all[1].3);
}

#[test]
fn what_stands_before_damage_is_written() {
    let mut capture = recorded(100);
    let whole = capture.len();
    capture.extend([6, 0, 0, 0, 7, 0, 0, 0]);
    capture.extend([0; 40]);
    for workers in [1, 3] {
        let mut out = Vec::new();
        let error = job("strict").run(&capture[..], &mut out, workers).expect_err("damaged");
        assert!(
            matches!(error, MaskError::Read(ReadError::Damaged(at)) if at == whole as u64),
            "{error}"
        );
        assert_eq!(frames(&out).len(), 100);
        let (out, counts) = masked("strict", &capture[..whole - 5], workers);
        assert!(counts.truncated);
        assert_eq!(frames(&out).len(), 99);
    }
}

#[test]
fn a_writer_that_fails_ends_the_job() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for workers in [1, 2] {
        let error = job("strict").run(&recorded(200_000)[..], &mut Full(4_000_000), workers);
        assert!(
            matches!(error, Err(MaskError::Write(error)) if error.kind() == io::ErrorKind::StorageFull)
        );
    }
}

/// Masked by `flows` or another policy under a key for each hour, of frames at these times.
fn rotated(policy: &str, times: &[u64], workers: usize) -> Vec<u8> {
    let mut capture = Vec::new();
    pcapng::section(&mut capture, "a program", None);
    pcapng::interface(&mut capture, None, Medium::Ethernet, 0);
    for time in times {
        pcapng::packet(&mut capture, Record { time: *time, ..record(&frame(1), 0) });
    }
    let mut out = Vec::new();
    let job = job(policy).rotated(Some(Rotation::Hour));
    job.run(&capture[..], &mut out, workers).expect("masked");
    out
}

/// The key of an hour of 1970, made like the job's.
fn of_hour(hour: u64) -> Key {
    Rotation::Hour.key(&Zeroizing::new(KEY), hour * 3600)
}

fn ids(capture: &[u8], before: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(capture);
    text.split(before).skip(1).map(|rest| rest.chars().take(8).collect()).collect()
}

const HOUR: u64 = 3_600_000_000_000;

#[test]
fn each_packet_is_masked_under_the_key_of_its_own_time() {
    // Mixed at the end of an hour, without a time, much later, and back.
    let hours = [1, 1, 2, 1, 2, 2, 0, 2, 500, 1, 501];
    let at = |hour: u64| if hour == 0 { 0 } else { hour * HOUR + 5 };
    let times: Vec<u64> = hours.iter().map(|hour| at(*hour)).collect();
    let out = rotated("research", &times, 2);
    assert!(out == rotated("research", &times, 1));
    let all = frames(&out);
    let mut hours = hours;
    hours[6] = 2;
    assert_eq!(all.len(), hours.len());
    for ((_, _, bytes, _), hour) in all.iter().zip(hours) {
        let source = crate::mapping::CryptoPan::new(&of_hour(hour)).map4(0x0a00_0001);
        assert_eq!(bytes[26..30], source.to_be_bytes(), "hour {hour}");
    }
    // Whenever the key changes, it is named; and of which data set all are.
    let mut changes = hours.to_vec();
    changes.dedup();
    let ids_of_keys: Vec<String> = changes.iter().map(|hour| key::id(&of_hour(*hour))).collect();
    assert_eq!(ids(&out, "from here on key "), ids_of_keys);
    assert_eq!(ids(&out, "; key "), [key::id(&Zeroizing::new(KEY))]);
    assert!(String::from_utf8_lossy(&out).contains(", another one each hour"));
}

#[test]
fn times_are_the_policys_also_where_keys_rotate() {
    let out = rotated("strict", &[HOUR, 3 * HOUR], 1);
    let times = |out: &[u8]| frames(out).iter().map(|frame| frame.0).collect::<Vec<_>>();
    assert_eq!(times(&out), [0, 2 * HOUR]);
    // It needs no key, so none is named.
    assert!(ids(&out, "key ").is_empty() && !String::from_utf8_lossy(&out).contains("hour"));
    assert_eq!(times(&rotated("research", &[HOUR, 3 * HOUR], 1)), [HOUR, 3 * HOUR]);
}

#[test]
fn packets_before_the_first_that_has_a_time_are_of_1970() {
    let out = rotated("research", &[0, 7 * HOUR], 1);
    let ids_of_keys = [0, 7].map(|hour| key::id(&of_hour(hour)));
    assert_eq!(ids(&out, "from here on key "), ids_of_keys);
}

#[test]
fn without_rotation_the_key_is_named_once() {
    let (out, _) = masked("flows", &recorded(3), 1);
    assert_eq!(ids(&out, "key "), [key::id(&Zeroizing::new(KEY))]);
    let (out, _) = masked("strict", &recorded(3), 1);
    assert!(ids(&out, "key ").is_empty());
}

#[test]
fn the_secrets_of_the_last_two_periods_are_kept_and_no_others() {
    let job = job("research").rotated(Some(Rotation::Hour));
    let mut units = units::Units::new(&job);
    for (period, kept) in [
        (0, &[0][..]),
        (3600, &[3600, 0]),
        (0, &[0, 3600]),
        (7200, &[7200, 0]),
        (7200, &[7200, 0]),
        (3600, &[3600, 7200]),
    ] {
        units.of(period);
        assert_eq!(units.periods(), kept);
    }
}
