//! What is to come of a frame, as plainly as possible.

use super::{ERROR, SENDER, SERVICE, SSID};
use crate::root::common::{network_header, sum, word};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What is to come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Other,
    Sender,
    Form,
    Short,
    Checksum,
    Corrupt,
    /// The frame that leaves, with zeros for both timestamps and the checksum of UDP.
    Reflected(Vec<u8>),
}

/// Where the UDP header of a frame is that is not inspected further, if it has one without options.
fn udp_at(frame: &[u8]) -> Option<(u16, usize, usize)> {
    let (kind, at) = network_header(frame)?;
    let header = match kind {
        0x0800 => 20,
        0x86dd => 40,
        _ => return None,
    };
    frame.get(at + header + 7)?;
    let protocol = if kind == 0x0800 { frame[at + 9] } else { frame[at + 6] };
    (protocol == 17).then_some((kind, at, header))
}

/// Judges a frame; `sequence` is the number that its reply would have.
pub(crate) fn judge(frame: &[u8], sequence: u32) -> Outcome {
    let Some((kind, at, header)) = udp_at(frame) else { return Outcome::Other };
    let (ip, udp) = (&frame[at..], &frame[at + header..]);
    let address = |bytes: &[u8]| match kind {
        0x0800 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).unwrap())),
        _ => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap())),
    };
    let addresses = if kind == 0x0800 { &ip[12..20] } else { &ip[8..40] };
    let (source, target) = addresses.split_at(addresses.len() / 2);
    let place = SocketAddr::new(address(target), word(udp, 2).unwrap());
    if !SERVICE.iter().any(|service| service.parse() == Ok(place)) {
        return Outcome::Other;
    }
    let four = kind == 0x0800;
    if four && (ip[0] != 0x45 || word(ip, 6).unwrap() & 0x3fff != 0) {
        return Outcome::Form;
    }
    let multicast = frame[0] & 1 != 0 || frame[6] & 1 != 0;
    let length = if four { word(ip, 2).unwrap().wrapping_sub(20) } else { word(ip, 4).unwrap() };
    let whole = usize::from(length);
    if multicast
        || word(udp, 0) == Some(0)
        || word(udp, 4) != Some(length)
        || whole > 16_383
        || whole > udp.len()
    {
        return Outcome::Form;
    }
    let udp = &udp[..whole];
    let ssid = word(udp, 8 + 14).unwrap_or(0);
    let agreed = SENDER.iter().any(|sender| sender.parse() == Ok(address(source)));
    if !agreed || ![0, SSID].contains(&ssid) {
        return Outcome::Sender;
    }
    if whole < 8 + 44 {
        return Outcome::Short;
    }
    let pseudo = [addresses, &[0, 17], &udp[4..6]].concat();
    let check = word(udp, 6).unwrap();
    let right = match check {
        0 => four,
        check => check == sum(&pseudo) || sum(&[&pseudo[..], udp].concat()) == 0xffff,
    };
    if !right || (four && sum(&ip[..20]) != 0xffff) {
        return Outcome::Checksum;
    }
    if udp[8 + 13] == 0 {
        return Outcome::Corrupt;
    }
    Outcome::Reflected(reflect(frame, (at, header, four), whole, sequence))
}

/// The reply to a right one.
fn reflect(frame: &[u8], at: (usize, usize, bool), whole: usize, sequence: u32) -> Vec<u8> {
    let (at, header, four) = at;
    let mut out = frame.to_vec();
    out[..6].copy_from_slice(&frame[6..12]);
    out[6..12].copy_from_slice(&frame[..6]);
    let (ip, from) = (&mut out[at..], &frame[at..]);
    let ttl = if four {
        let ttl = ip[8];
        (ip[1], ip[8]) = (ip[1] & 0xfc, 255);
        ip[12..16].copy_from_slice(&from[16..20]);
        ip[16..20].copy_from_slice(&from[12..16]);
        ip[10..12].fill(0);
        let check = !sum(&ip[..20]);
        ip[10..12].copy_from_slice(&check.to_be_bytes());
        ttl
    } else {
        let ttl = ip[7];
        (ip[1], ip[7]) = (ip[1] & 0xcf, 255);
        ip[8..24].copy_from_slice(&from[24..40]);
        ip[24..40].copy_from_slice(&from[8..24]);
        ttl
    };
    let (udp, from) = (&mut ip[header..header + whole], &from[header..]);
    udp[..2].copy_from_slice(&from[2..4]);
    udp[2..4].copy_from_slice(&from[..2]);
    udp[6..8].fill(0);
    let (packet, from) = (&mut udp[8..], &from[8..]);
    packet[..4].copy_from_slice(&sequence.to_be_bytes());
    packet[4..12].fill(0);
    packet[12..14].copy_from_slice(&ERROR.to_be_bytes());
    packet[16..24].fill(0);
    packet[24..38].copy_from_slice(&from[..14]);
    packet[38..40].fill(0);
    packet[40..44].copy_from_slice(&[ttl, 0, 0, 0]);
    out
}

/// A frame that left, with zeros where [`judge`] has them, and its timestamps; its UDP checksum must be
/// right.
pub(crate) fn without_times(mut frame: Vec<u8>) -> (Vec<u8>, [u64; 2]) {
    let (kind, at, header) = udp_at(&frame).expect("a reply");
    let four = kind == 0x0800;
    let addresses = frame[at + if four { 12 } else { 8 }..at + header].to_vec();
    let udp = &mut frame[at + header..];
    let length = usize::from(word(udp, 4).unwrap());
    let pseudo = [&addresses[..], &[0, 17], &udp[4..6]].concat();
    assert_eq!(sum(&[&pseudo[..], &udp[..length]].concat()), 0xffff, "the UDP checksum");
    let mut take = |at: usize| {
        let time = u64::from_be_bytes(udp[at..at + 8].try_into().unwrap());
        udp[at..at + 8].fill(0);
        time
    };
    let times = [take(8 + 4), take(8 + 16)];
    udp[6..8].fill(0);
    // What interrupts the program between its readings of two clocks looks like a step.
    if udp[8 + 12..8 + 14] == [0x3f, 0xff] {
        udp[8 + 12..8 + 14].copy_from_slice(&ERROR.to_be_bytes());
    }
    (frame, times)
}
