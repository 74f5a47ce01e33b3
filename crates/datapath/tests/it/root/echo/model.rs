//! The responder once more, written from the rules and not from the program: byte by byte, every sum
//! in full, no case that is faster than another.

use super::frame::{checksum, pseudo6};
use crate::root::common::{network_header, word};
use datapath::echo::{DropReason, Fragments, Settings, Verdict};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where a frame is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Service(IpAddr),
    Probe,
    Other,
}

/// As what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum As {
    Answered,
    Passed,
    Dropped(DropReason),
}

/// The outcome of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) counted: Counted,
    pub(crate) as_: As,
    pub(crate) frame: Vec<u8>,
}

impl Outcome {
    pub(crate) fn verdict(&self) -> Verdict {
        match self.as_ {
            As::Answered => Verdict::Tx,
            As::Passed => Verdict::Pass,
            As::Dropped(_) => Verdict::Drop,
        }
    }
}

/// What the program must do with a frame under these settings, limits and routing left aside.
pub(crate) fn judge(settings: &Settings, frame: &[u8]) -> Outcome {
    let (counted, as_) = match network_header(frame) {
        Some((0x0800, at)) => ipv4(settings, frame, at),
        Some((0x86dd, at)) => ipv6(settings, frame, at),
        _ => (Counted::Other, As::Passed),
    };
    let mut out = frame.to_vec();
    if as_ == As::Answered {
        answer(&mut out);
    }
    Outcome { counted, as_, frame: out }
}

/// Service address, link address or none of ours.
fn owner(settings: &Settings, address: IpAddr) -> Counted {
    if settings.addresses.contains(&address) {
        Counted::Service(address)
    } else if settings.probes.contains(&address) {
        Counted::Probe
    } else {
        Counted::Other
    }
}

fn refused(settings: &Settings, source: IpAddr) -> bool {
    let covers = |list: &[ipnet::IpNet]| list.iter().any(|prefix| prefix.contains(&source));
    covers(&settings.deny) || (!settings.allow.is_empty() && !covers(&settings.allow))
}

fn fragment(settings: &Settings) -> As {
    match settings.fragments {
        Fragments::Pass => As::Passed,
        Fragments::Drop => As::Dropped(DropReason::Fragment),
    }
}

/// An ICMP message and the fields of its headers.
struct Message<'a> {
    bytes: &'a [u8],
    /// The type of a request in this family.
    request: u8,
    probe: bool,
    source: IpAddr,
    bogon: bool,
    header_summed: bool,
    summed: bool,
}

/// The rules from the message on, which both families share.
fn message(settings: &Settings, frame: &[u8], message: &Message<'_>) -> As {
    if message.bytes[0] != message.request {
        return As::Passed;
    }
    if message.bytes[1] != 0 {
        return As::Dropped(DropReason::BadCode);
    }
    if frame[0] & 1 != 0 || frame[6] & 1 != 0 {
        return As::Dropped(DropReason::NotUnicast);
    }
    if !message.probe {
        if message.bogon || owner(settings, message.source) != Counted::Other {
            return As::Dropped(DropReason::BogonSource);
        }
        if refused(settings, message.source) {
            return As::Dropped(DropReason::Denied);
        }
    }
    if settings.verify && !message.header_summed {
        return As::Dropped(DropReason::BadChecksumIp);
    }
    if settings.verify && !message.summed {
        return As::Dropped(DropReason::BadChecksumIcmp);
    }
    As::Answered
}

fn ipv4(settings: &Settings, frame: &[u8], at: usize) -> (Counted, As) {
    let other = (Counted::Other, As::Passed);
    let packet = &frame[at..];
    if packet.len() < 20 || packet[0] >> 4 != 4 {
        return other;
    }
    let octets = |at: usize| -> [u8; 4] { packet[at..at + 4].try_into().unwrap() };
    let (source, target) = (Ipv4Addr::from(octets(12)), Ipv4Addr::from(octets(16)));
    let counted = owner(settings, target.into());
    let probe = counted == Counted::Probe;
    match counted {
        Counted::Other => return other,
        Counted::Probe => {
            let is_probe = packet.len() >= 28
                && packet[0] == 0x45
                && packet[9] == 1
                && packet[20] == 8
                && word(packet, 24) == Some(settings.probe_id)
                && source == target;
            if !is_probe {
                return other;
            }
        }
        Counted::Service(_) => {}
    }
    if packet[9] != 1 {
        return (counted, As::Passed);
    }
    if word(packet, 6).unwrap() & 0x3fff != 0 {
        return (counted, fragment(settings));
    }
    match packet[0] & 15 {
        0..5 => return (counted, As::Dropped(DropReason::BadLength)),
        5 => {}
        6.. => return (counted, As::Passed),
    }
    let total = usize::from(word(packet, 2).unwrap());
    if total < 28 || total > packet.len() || total - 20 > 16_383 {
        return (counted, As::Dropped(DropReason::BadLength));
    }
    let icmp = &packet[20..total];
    let bogon = source.is_loopback() || matches!(source.octets()[0], 0 | 224..);
    let judged = Message {
        bytes: icmp,
        request: 8,
        probe,
        source: source.into(),
        bogon,
        header_summed: checksum(&packet[..20]) == 0,
        summed: checksum(icmp) == 0,
    };
    (counted, message(settings, frame, &judged))
}

fn ipv6(settings: &Settings, frame: &[u8], at: usize) -> (Counted, As) {
    let other = (Counted::Other, As::Passed);
    let packet = &frame[at..];
    if packet.len() < 40 || packet[0] >> 4 != 6 {
        return other;
    }
    let octets = |at: usize| -> [u8; 16] { packet[at..at + 16].try_into().unwrap() };
    let (source, target) = (Ipv6Addr::from(octets(8)), Ipv6Addr::from(octets(24)));
    let counted = owner(settings, target.into());
    let probe = counted == Counted::Probe;
    match counted {
        Counted::Other => return other,
        Counted::Probe => {
            let is_probe = packet.len() >= 48
                && packet[6] == 58
                && packet[40] == 128
                && word(packet, 44) == Some(settings.probe_id)
                && source == target;
            if !is_probe {
                return other;
            }
        }
        Counted::Service(_) => {}
    }
    if packet[6] == 44 && packet.len() >= 48 && packet[40] == 58 {
        return (counted, fragment(settings));
    }
    if packet[6] != 58 {
        return (counted, As::Passed);
    }
    let length = usize::from(word(packet, 4).unwrap());
    if length < 8 || length > packet.len() - 40 || length > 16_383 {
        return (counted, As::Dropped(DropReason::BadLength));
    }
    let icmp = &packet[40..40 + length];
    let bogon = source.is_multicast() || source.segments()[..2] == [0, 0];
    let judged = Message {
        bytes: icmp,
        request: 128,
        probe,
        source: source.into(),
        bogon,
        header_summed: true,
        summed: checksum(&pseudo6(&packet[8..40], icmp)) == 0,
    };
    (counted, message(settings, frame, &judged))
}

/// Turns a request that is to be answered into its reply.
fn answer(frame: &mut [u8]) {
    let (to, from) = (frame[..6].to_vec(), frame[6..12].to_vec());
    frame[..6].copy_from_slice(&from);
    frame[6..12].copy_from_slice(&to);
    let (kind, at) = network_header(frame).unwrap();
    let packet = &mut frame[at..];
    if kind == 0x0800 {
        let total = usize::from(word(packet, 2).unwrap());
        let (left, right) = packet[12..20].split_at_mut(4);
        left.swap_with_slice(right);
        change(&mut packet[..20], 8, 64, 10, checksum);
        change(&mut packet[20..total], 0, 0, 2, checksum);
    } else {
        let length = usize::from(word(packet, 4).unwrap());
        let (left, right) = packet[8..40].split_at_mut(16);
        left.swap_with_slice(right);
        packet[7] = 64;
        let addresses = packet[8..40].to_vec();
        change(&mut packet[40..40 + length], 0, 129, 2, |message| {
            checksum(&pseudo6(&addresses, message))
        });
    }
}

/// Sets the byte `at`, which is the first of a 16-bit word, and puts the checksum right. One that was
/// wrong (`verify` is off) stays wrong by as much, so that the requester notices: RFC 1624 equation 3.
fn change(bytes: &mut [u8], at: usize, to: u8, check: usize, sum: impl Fn(&[u8]) -> u16) {
    let right = sum(bytes) == 0;
    let (old, from) = (word(bytes, check).unwrap(), word(bytes, at).unwrap());
    bytes[at] = to;
    let new = if right {
        bytes[check..check + 2].fill(0);
        sum(bytes)
    } else {
        let total = u64::from(!old) + u64::from(!from) + u64::from(word(bytes, at).unwrap());
        // Modulo 65,535, where zero is written as 65,535 unless it is the sum of nothing.
        0xffff - if total == 0 { 0 } else { (total - 1) % 0xffff + 1 } as u16
    };
    bytes[check..check + 2].copy_from_slice(&new.to_be_bytes());
}
