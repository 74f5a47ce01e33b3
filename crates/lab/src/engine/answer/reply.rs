//! What a node says to a packet that is for it: it answers pings, and nothing listens on its ports.

use wire::{
    IpProtocol,
    checksum::{self, Sum},
    ipv4::{self, FragmentField},
};

use super::{IcmpError, TTL, icmp6, put, word};

/// The bits of a traffic class that a reset takes over: not those of congestion, which are between two
/// ends that know each other (RFC 3168, section 6.1).
const NO_ECN: u8 = 0xfc;

/// What comes of a packet for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The answer stands in place of the packet and has this many bytes. If that is more than fits
    /// beside it, the rest is the packet's.
    Written(usize),
    /// An error is to be sent.
    Error(IcmpError),
    /// It is not answered.
    Nothing,
}

/// Answers a packet. `ip` is the packet's beginning and the room behind it, `rest` what of its `length`
/// bytes does not fit there.
pub(crate) fn reply(ip: &mut [u8], rest: &[u8], length: usize, identification: u16) -> Reply {
    let answer = match ip.first().map(|first| first >> 4) {
        Some(4) => reply4(ip, rest, length, identification),
        Some(6) => reply6(ip, rest, length),
        _ => None,
    };
    answer.unwrap_or(Reply::Nothing)
}

/// The sum of a packet from `at` on.
fn sum(ip: &[u8], rest: &[u8], length: usize, at: usize) -> Option<Sum> {
    Some(Sum::default().bytes(ip.get(at..length.min(ip.len()))?).bytes(rest))
}

fn reply4(ip: &mut [u8], rest: &[u8], length: usize, identification: u16) -> Option<Reply> {
    let header = ipv4::header_len(*ip.first()?);
    let protocol = IpProtocol(*ip.get(9)?);
    let fragment = FragmentField(word(ip, 6)?);
    let (part, later) = (fragment.is_fragment(), fragment.offset() != 0);
    let body = sum(ip, rest, length, header)?;
    let transport = u16::try_from(length.checked_sub(header)?).ok()?;
    let whole = body.bytes(ip.get(12..20)?).word(protocol.0.into()).word(transport);
    match protocol {
        IpProtocol::ICMP => {
            let echo = later || ip.get(header) == Some(&8);
            if !echo || length < header + 8 && !later || !part && body.fold() != 0xffff {
                return None;
            }
            if !later {
                turn(ip, rest, length, header, 0)?;
            }
            let mut length = length;
            if header > 20 {
                // Options are not answered: RFC 1812, section 4.3.2.6 asks it of source routes only.
                rest.is_empty().then_some(())?;
                ip.copy_within(header..length, 20);
                length -= header - 20;
                put(ip, 0, &[0x45]).then_some(())?;
                put(ip, 2, &(length as u16).to_be_bytes()).then_some(())?;
            }
            // The pieces of an echo request are answered one by one and become the pieces of the reply.
            let id = if part { word(ip, 4)? } else { identification };
            let fragment = FragmentField::of_fragment(fragment.offset(), fragment.more_fragments());
            finish4(ip, id, fragment)?;
            Some(Reply::Written(length))
        }
        IpProtocol::UDP if !later => {
            let udp = usize::from(word(ip, header + 4)?);
            let damaged = udp < 8 || udp > usize::from(transport);
            let unsummed = word(ip, header + 6)? == 0 || part;
            if !part && damaged || !unsummed && whole.fold() != 0xffff {
                return None;
            }
            Some(Reply::Error(IcmpError::NoPort))
        }
        IpProtocol::TCP if !part => {
            if whole.fold() != 0xffff {
                return None;
            }
            let segment = reset(ip, header, usize::from(transport))?;
            put(ip, 0, &[0x45, *ip.get(1)? & NO_ECN, 0, 40]).then_some(())?;
            put(ip, 9, &[IpProtocol::TCP.0]).then_some(())?;
            finish4(ip, 0, FragmentField::DONT_FRAGMENT)?;
            let sum = Sum::default().bytes(&segment).bytes(ip.get(12..20)?).word(6).word(20);
            put(ip, 20, &segment).then_some(())?;
            put(ip, 36, &sum.finish().to_be_bytes()).then_some(())?;
            Some(Reply::Written(40))
        }
        IpProtocol::TCP | IpProtocol::UDP | IpProtocol(2) => None,
        _ if !part => Some(Reply::Error(IcmpError::NoProtocol(9))),
        _ => None,
    }
}

/// Turns an IPv4 header round: addresses, what joins fragments, TTL and checksum.
fn finish4(ip: &mut [u8], identification: u16, fragment: FragmentField) -> Option<()> {
    let header = ip.first_chunk_mut::<20>()?;
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[6..8].copy_from_slice(&fragment.0.to_be_bytes());
    header[8] = TTL;
    for at in 12..16 {
        header.swap(at, at + 4);
    }
    header[10..12].fill(0);
    let check = checksum::checksum(header);
    header[10..12].copy_from_slice(&check.to_be_bytes());
    Some(())
}

fn reply6(ip: &mut [u8], rest: &[u8], length: usize) -> Option<Reply> {
    let upper = icmp6::upper(ip.get(..length.min(ip.len()))?)?;
    let body = sum(ip, rest, length, upper.at)?;
    let transport = u32::try_from(length.checked_sub(upper.at)?).ok()?;
    let pseudo = body.bytes(ip.get(8..40)?).word(upper.protocol.0.into());
    let whole = pseudo.bytes(&transport.to_be_bytes());
    let intact = upper.fragment || whole.fold() == 0xffff;
    match upper.protocol {
        IpProtocol::ICMPV6 => {
            const ECHO_REQUEST: u8 = 128;
            let echo = upper.later || ip.get(upper.at) == Some(&ECHO_REQUEST);
            if !echo || length < upper.at + 8 && !upper.later || !intact {
                return None;
            }
            if !upper.later {
                turn(ip, rest, length, upper.at, 129)?;
            }
            turn6(ip)?;
            // A flow label is its sender's to choose (RFC 6437, section 2); the class is the asker's.
            let class = *ip.get(1)? & 0xf0;
            put(ip, 1, &[class, 0, 0]).then_some(())?;
            Some(Reply::Written(length))
        }
        IpProtocol::UDP if !upper.later => {
            let udp = usize::from(word(ip, upper.at + 4)?);
            let damaged = udp < 8 || udp > transport as usize || word(ip, upper.at + 6)? == 0;
            if !upper.fragment && damaged || !intact {
                return None;
            }
            Some(Reply::Error(IcmpError::NoPort))
        }
        IpProtocol::TCP if !upper.fragment => {
            if !intact {
                return None;
            }
            let segment = reset(ip, upper.at, transport as usize)?;
            turn6(ip)?;
            let class = *ip.get(1)? & NO_ECN << 4;
            put(ip, 1, &[class, 0, 0, 0, 20, IpProtocol::TCP.0]).then_some(())?;
            let sum = Sum::default().bytes(&segment).bytes(ip.get(8..40)?).word(6).word(20);
            put(ip, 40, &segment).then_some(())?;
            put(ip, 56, &sum.finish().to_be_bytes()).then_some(())?;
            Some(Reply::Written(60))
        }
        IpProtocol::TCP | IpProtocol::UDP | IpProtocol::NONE => None,
        _ if !upper.fragment => Some(Reply::Error(IcmpError::NoProtocol(upper.named_at))),
        _ => None,
    }
}

/// Swaps an IPv6 packet's addresses and gives it a new hop limit.
fn turn6(ip: &mut [u8]) -> Option<()> {
    let header = ip.first_chunk_mut::<40>()?;
    header[7] = TTL;
    for at in 8..24 {
        header.swap(at, at + 16);
    }
    Some(())
}

/// Makes an echo reply of the request at `at`: its type changes, and the checksum by that. The swap of
/// addresses does not change a sum.
fn turn(ip: &mut [u8], rest: &[u8], length: usize, at: usize, kind: u8) -> Option<()> {
    let old = word(ip, at)?;
    *ip.get_mut(at)? = kind;
    let check = checksum::update(word(ip, at + 2)?, old, word(ip, at)?);
    put(ip, at + 2, &check.to_be_bytes()).then_some(())?;
    // RFC 1624's equation yields 0 where all is zero now; the checksum of that is 0xffff.
    let zero = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    if check == 0 && kind == 0 && zero(ip.get(at..length.min(ip.len()))?) && zero(rest) {
        put(ip, at + 2, &[0xff, 0xff]).then_some(())?;
    }
    Some(())
}

/// The segment that resets a connection about which nothing is known: RFC 9293, section 3.10.7.1. Its
/// checksum is zero. `bytes` are those of the segment that is answered.
fn reset(ip: &[u8], at: usize, bytes: usize) -> Option<[u8; 20]> {
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const RST: u8 = 4;
    const ACK: u8 = 16;
    let asked = ip.get(at..)?.first_chunk::<20>()?;
    let header = usize::from(asked[12] >> 4) * 4;
    let flags = asked[13];
    if flags & RST != 0 || !(20..=bytes).contains(&header) {
        return None;
    }
    let mut segment = [0; 20];
    segment[..2].copy_from_slice(&asked[2..4]);
    segment[2..4].copy_from_slice(&asked[..2]);
    segment[12] = 5 << 4;
    if flags & ACK != 0 {
        segment[4..8].copy_from_slice(&asked[8..12]);
        segment[13] = RST;
    } else {
        let sequence = u32::from_be_bytes([asked[4], asked[5], asked[6], asked[7]]);
        let taken =
            (bytes - header) as u32 + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        segment[8..12].copy_from_slice(&sequence.wrapping_add(taken).to_be_bytes());
        segment[13] = RST | ACK;
    }
    Some(segment)
}
