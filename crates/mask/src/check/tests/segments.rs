//! Captures of TCP segments, and what a check says of them when they are masked.

use super::*;
use crate::{file::Job, layer::FIELDS, machine::MappingName, policy::Policy};
use zeroize::Zeroizing;

/// A SYN over IPv4, or another segment.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    /// Nanoseconds.
    pub(super) time: u64,
    pub(super) mac: u8,
    pub(super) source: [u8; 4],
    pub(super) destination: [u8; 4],
    pub(super) ports: [u16; 2],
    pub(super) ttl: u8,
    pub(super) identification: u16,
    pub(super) flags: u8,
    pub(super) window: u16,
    /// Timestamps before or behind the maximum segment size.
    pub(super) timestamps_first: bool,
    pub(super) timestamp: u32,
    pub(super) payload: usize,
}

impl Default for Segment {
    fn default() -> Self {
        Self {
            time: 1_700_000_000_000_000_001,
            mac: 1,
            source: [192, 0, 2, 1],
            destination: [198, 51, 100, 1],
            ports: [40_000, 443],
            ttl: 64,
            identification: 7,
            flags: 2,
            window: 64_240,
            timestamps_first: false,
            timestamp: 0,
            payload: 0,
        }
    }
}

impl Segment {
    pub(super) fn frame(&self) -> Vec<u8> {
        let mut options = vec![2, 4, 5, 0xb4];
        let timestamps = [&[8, 10][..], &self.timestamp.to_be_bytes(), &[0; 4], &[1, 1]].concat();
        let at = if self.timestamps_first { 0 } else { options.len() };
        options.splice(at..at, timestamps);
        let header = 20 + options.len();
        let length = (20 + header + self.payload) as u16;
        let mut frame = vec![2, 0, 0, 0, 0, 0xee, 2, 0, 0, 0, 0, self.mac, 8, 0, 0x45, 0];
        frame.extend(length.to_be_bytes());
        frame.extend(self.identification.to_be_bytes());
        frame.extend([0, 0, self.ttl, 6, 0, 0]);
        frame.extend([self.source, self.destination].concat());
        frame.extend(self.ports.map(u16::to_be_bytes).concat());
        frame.extend([0; 8]);
        frame.extend([(header as u8 / 4) << 4, self.flags]);
        frame.extend(self.window.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(options);
        frame.resize(frame.len() + self.payload, 0);
        frame
    }
}

pub(super) fn capture_at(packets: &[Segment]) -> Vec<u8> {
    let mut out = Vec::new();
    pcapng::section(&mut out, "test", None);
    pcapng::interface(&mut out, None, Medium::Ethernet, 0);
    for packet in packets {
        let (bytes, time) = (&packet.frame()[..], packet.time);
        let length = bytes.len() as u32;
        let (interface, direction, medium) = (0, None, Medium::Ethernet);
        let record = Record { interface, time, direction, medium, length, bytes, comment: None };
        pcapng::packet(&mut out, record);
    }
    out
}

/// A policy that keeps everything, but for these lines.
pub(super) fn keeping_all_but(lines: &[&str]) -> Policy {
    let (top, fields): (Vec<&str>, Vec<&str>) =
        lines.iter().partition(|line| line.starts_with("time"));
    let time = top.first().copied().unwrap_or(r#"time = "keep""#);
    let mut text = format!("about = \"\"\n{time}\n[fields]\n{}\n", fields.join("\n"));
    let mut groups: Vec<&str> = FIELDS.iter().filter_map(|it| it.name.split('.').next()).collect();
    groups.dedup();
    groups.iter().for_each(|group| text += &format!("\"{group}.*\" = \"keep\"\n"));
    Policy::read(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub(super) fn masked(capture: &[u8], policy: &Policy) -> Vec<u8> {
    let key = Zeroizing::new(std::array::from_fn(|n| n as u8));
    let job = Job::new(policy, key, MappingName::CryptoPan).expect("a job");
    let mut out = Vec::new();
    job.run(capture, &mut out, 1).expect("masked");
    out
}

pub(super) fn after(packets: &[Segment], lines: &[&str]) -> Report {
    let capture = capture_at(packets);
    check(&capture[..], &masked(&capture, &keeping_all_but(lines))[..]).expect("a report")
}

/// Hosts with SYNs that are alike but for their number.
pub(super) fn hosts(count: u8) -> Vec<Segment> {
    (1..=count).map(|n| Segment { mac: n, source: [192, 0, 2, n], ..Segment::default() }).collect()
}

/// Packets between forty hosts of two networks.
pub(super) fn among_many() -> Vec<Segment> {
    let host = |n: u8| [198, 51, 100 + n % 2, n];
    (0..120u8)
        .map(|n| {
            let (source, destination) = (host(n % 40), host((n % 40 * 3 + 1) % 40));
            let time = 1_700_000_000_000_000_000 + u64::from(n) * 1000;
            Segment { time, source, destination, payload: n.into(), ..Segment::default() }
        })
        .collect()
}
