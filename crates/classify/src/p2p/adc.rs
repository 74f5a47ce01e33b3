//! Direct Connect's second protocol, ADC 1.0: lines of text, four letters first: how the message is sent
//! (B to all, C to a peer, D and E to one, F to some, H to the hub, I from the hub, U by UDP) and its name.
//!
//! Connections begin with `HSUP` or `CSUP` and the features supported (`ADBASE`), answered by `ISUP` or
//! `CSUP`. Hubs pass on information on users (`BINF SID I4address U4port`) and requests to connect
//! (`DCTM mine yours ADC/1.0 port token`), which together name peers.

use super::{Context, Detection, Match, Protocol, Streams};
use crate::{
    flow::Side,
    hosts::{Hosts, Source},
};
use std::net::{IpAddr, SocketAddr};

/// Whether the ends speak it.
pub(super) fn tcp(streams: Streams<'_>) -> Detection {
    // The client begins.
    let mut perhaps = false;
    for (bytes, kinds) in [(streams.client, b"HC"), (streams.server, b"IC")] {
        match support(bytes, kinds) {
            Detection::No => {}
            Detection::Perhaps => perhaps |= !bytes.is_empty(),
            yes => return yes,
        }
    }
    if perhaps { Detection::Perhaps } else { Detection::No }
}

/// `xSUP ADFEAT ADFEAT ...`
fn support(bytes: &[u8], kinds: &[u8; 2]) -> Detection {
    let Some(first) = bytes.first() else { return Detection::Perhaps };
    if !kinds.contains(first) {
        return Detection::No;
    }
    let pattern = |at: usize, byte: u8| match at {
        0 => true,
        1..=3 => byte == b"SUP"[at - 1],
        4 => byte == b' ',
        5 => byte == b'A',
        6 => byte == b'D',
        _ => byte.is_ascii_uppercase() || (at > 7 && byte.is_ascii_digit()),
    };
    let known = bytes.get(..11).unwrap_or(bytes);
    match known.iter().enumerate().all(|(at, byte)| pattern(at, *byte)) {
        false => Detection::No,
        true if known.len() < 11 => Detection::Perhaps,
        true => Match::certain(Protocol::Adc, "features of an ADC client or hub"),
    }
}

/// Whether a datagram is an answer to a search (`URES`), a search or other message by UDP: the sender's
/// CID is 39 characters of base 32, a line feed ends it.
pub(super) fn udp(datagram: &[u8]) -> Detection {
    let Some((head, rest)) = datagram.split_at_checked(5) else { return Detection::No };
    let (head, line) = (head == b"URES " || head == b"USCH " || head == b"UINF ", rest);
    let cid = line.get(..39).unwrap_or_default();
    let base32 = |byte: &u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(byte);
    let fits = head
        && cid.len() == 39
        && cid.iter().all(base32)
        && matches!(line.get(39), Some(b' ' | b'\n'))
        && line.ends_with(b"\n");
    if fits { Match::certain(Protocol::Adc, "ADC message by UDP") } else { Detection::No }
}

/// Users whose addresses a hub announced.
const USERS: usize = 64;

/// Reads the lines of a hub.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    read: [usize; 2],
    users: Vec<([u8; 4], IpAddr)>,
}

impl State {
    /// Users and requests to connect, as far as they came whole.
    pub(super) fn learn(&mut self, streams: Streams<'_>, context: &Context<'_>, hosts: &mut Hosts) {
        for (from, bytes) in [(Side::Client, streams.client), (Side::Server, streams.server)] {
            let context = Context { from, ..*context };
            while let Some(rest) = bytes.get(self.read[from as usize]..)
                && let Some(end) = rest.iter().position(|byte| *byte == b'\n')
            {
                self.read[from as usize] += end + 1;
                let line = rest.get(..end).and_then(|line| std::str::from_utf8(line).ok());
                if let Some(line) = line {
                    self.line(line, &context, hosts);
                }
            }
        }
    }

    fn line(&mut self, line: &str, context: &Context<'_>, hosts: &mut Hosts) {
        let mut words = line.split(' ');
        let (Some(name), Some(Ok(user))) =
            (words.next(), words.next().map(|sid| <[u8; 4]>::try_from(sid.as_bytes())))
        else {
            return;
        };
        let mut name_socket = |ip, port| {
            context.names(hosts, SocketAddr::new(ip, port), Protocol::Adc, Source::Hub);
        };
        match name {
            "BINF" => {
                let field = |name: &str| words.clone().find_map(|word| word.strip_prefix(name));
                let ip = field("I4").or_else(|| field("I6")).and_then(|ip| ip.parse().ok());
                let Some(ip) = ip.filter(|ip: &IpAddr| !ip.is_unspecified()) else { return };
                self.users.retain(|(known, _)| *known != user);
                self.users.truncate(USERS - 1);
                self.users.insert(0, (user, ip));
                let port = field("U4").or_else(|| field("U6")).and_then(|port| port.parse().ok());
                if let Some(port) = port {
                    name_socket(ip, port);
                }
            }
            // To whom, protocol, port, token.
            "DCTM" | "ECTM" => {
                let ip = self.users.iter().find(|(known, _)| *known == user).map(|(_, ip)| *ip);
                let port = words.nth(2).and_then(|port| port.parse().ok());
                if let (Some(ip), Some(port)) = (ip, port) {
                    name_socket(ip, port);
                }
            }
            _ => {}
        }
    }
}
