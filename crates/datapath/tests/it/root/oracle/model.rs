//! The oracle in the driver once more, written from the rules and not from the program: byte by byte,
//! every sum in full.

use super::network::Network;
use crate::root::common::{network_header, sum, word};
use datapath::oracle::{Ledger, Settings, Verdict};
use std::net::SocketAddrV4;

/// The two metrics of [`Network::random`].
const SERVCODE: u16 = 0b11;

/// The outcome of a frame, limits left aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Other,
    Sender,
    Length,
    Form,
    Sum,
    Table,
    Answered(Vec<u8>),
}

impl Outcome {
    pub(crate) fn verdict(&self) -> Verdict {
        if matches!(self, Self::Answered(_)) { Verdict::Tx } else { Verdict::Pass }
    }

    /// Counts it.
    pub(crate) fn count(&self, ledger: &mut Ledger) {
        *match self {
            Self::Other => &mut ledger.other,
            Self::Sender => &mut ledger.passed_sender,
            Self::Length => &mut ledger.passed_length,
            Self::Form => &mut ledger.passed_form,
            Self::Sum => &mut ledger.passed_sum,
            Self::Table => &mut ledger.passed_table,
            Self::Answered(_) => &mut ledger.answered,
        } += 1;
    }
}

fn octets(bytes: &[u8], at: usize) -> [u8; 4] {
    bytes[at..at + 4].try_into().unwrap()
}

pub(crate) fn judge(settings: &Settings, network: Option<&Network>, frame: &[u8]) -> Outcome {
    let Some((0x0800, at)) = network_header(frame) else { return Outcome::Other };
    let packet = &frame[at..];
    if packet.len() < 28
        || packet[0] != 0x45
        || word(packet, 6).unwrap() & 0x3fff != 0
        || packet[9] != 17
    {
        return Outcome::Other;
    }
    let serves = |address: usize, port: usize| {
        let port = word(packet, port).unwrap();
        settings.services.contains(&SocketAddrV4::new(octets(packet, address).into(), port))
    };
    if !serves(16, 22) {
        return Outcome::Other;
    }

    let total = usize::from(word(packet, 2).unwrap());
    let udp = usize::from(word(packet, 24).unwrap());
    let addresses = total.checked_sub(44).filter(|bytes| bytes % 4 == 0).map(|bytes| bytes / 4);
    let plain = addresses.is_some_and(|count| (1..=363).contains(&count));
    if !plain || udp + 20 != total || total > packet.len() {
        return Outcome::Length;
    }
    let message = &packet[28..total];
    let first = word(message, 0).unwrap();
    let second = word(message, 2).unwrap();
    if first >> 12 != 0
        || second & 0xff00 != 0
        || message[10..12] != [0, 0]
        || message[12..14] != [1, 0]
    {
        return Outcome::Form;
    }
    if usize::from(word(message, 14).unwrap()) != message.len() - 12 {
        return Outcome::Length;
    }
    let source = octets(packet, 12);
    if frame[0] & 1 != 0
        || frame[6] & 1 != 0
        || matches!(source[0], 0 | 127 | 224..)
        || word(packet, 20) == Some(0)
        || serves(12, 20)
    {
        return Outcome::Sender;
    }
    let pseudo = [&packet[12..20], &[0, 17], &packet[24..26]].concat();
    if sum(&packet[..20]) != 0xffff || word(packet, 26) == Some(sum(&pseudo)) {
        return Outcome::Sum;
    }
    let metric = match first & 0xfff {
        0 => 0,
        code if code.is_power_of_two() => code.trailing_zeros() as usize,
        _ => return Outcome::Table,
    };
    let candidates = message[16..].as_chunks().0;
    match network.and_then(|network| network.rank(metric, source, candidates)) {
        None => Outcome::Table,
        Some(ranked) => Outcome::Answered(reply(settings, frame, at, &ranked)),
    }
}

/// The reply to a plain request, its UDP checksum as wrong as it was.
fn reply(settings: &Settings, frame: &[u8], at: usize, ranked: &[[u8; 4]]) -> Vec<u8> {
    let mut out = frame.to_vec();
    out[..6].copy_from_slice(&frame[6..12]);
    out[6..12].copy_from_slice(&frame[..6]);
    let (old, packet) = (&frame[at..], &mut out[at..]);
    packet[1] = 0;
    packet[8] = 64;
    packet[10..12].fill(0);
    packet[12..16].copy_from_slice(&old[16..20]);
    packet[16..20].copy_from_slice(&old[12..16]);
    let check = !sum(&packet[..20]);
    packet[10..12].copy_from_slice(&check.to_be_bytes());
    packet[20..22].copy_from_slice(&old[22..24]);
    packet[22..24].copy_from_slice(&old[20..22]);
    packet[28..30].copy_from_slice(&SERVCODE.to_be_bytes());
    packet[30..32].copy_from_slice(&[0x80, 0]);
    packet[36..38].copy_from_slice(&(settings.ttl.as_secs() as u16).to_be_bytes());
    let length = usize::from(word(old, 24).unwrap());
    packet[44..20 + length].copy_from_slice(ranked.as_flattened());
    let was = word(old, 26).unwrap();
    if was != 0 {
        // What the request's sum is off by, the reply's is too: modulo 65,535.
        let pseudo = |packet: &[u8]| [&packet[12..20], &[0, 17], &packet[24..26]].concat();
        let total = |packet: &[u8]| {
            u32::from(sum(&[pseudo(packet), packet[20..20 + length].to_vec()].concat()))
        };
        packet[26..28].fill(0);
        let check = (total(old) + 2 * 65_535 - total(packet)) % 65_535;
        let check = if check == 0 { 65_535 } else { check };
        packet[26..28].copy_from_slice(&(check as u16).to_be_bytes());
    }
    out
}
