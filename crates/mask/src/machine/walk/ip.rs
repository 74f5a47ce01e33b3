//! IPv4 and IPv6 with their options and extension headers.

use super::{Inside, Next, Visit, Walk};
use crate::{layer::Kind, machine::checksums::Pending};
use wire::{
    IpProtocol,
    checksum::{self, Sum},
    ipv4::{self, FragmentField},
    ipv6,
};

/// Options of IPv4: the end of them, one byte of nothing, and those of which something can be kept
/// (RFC 791, section 3.1; RFC 2113).
const END: u8 = 0;
const NOTHING: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;
const ROUTER_ALERT: u8 = 148;

/// The longest packet that a length of 16 bits can state; what has none and is longer is a super-packet of
/// the kernel or a jumbogram (RFC 2675).
const LONGEST: usize = 65_535;

impl<V: Visit> Walk<'_, V> {
    /// Whether what is here proves to be IPv4: a pseudowire's frame may begin with the same bits. Its
    /// checksum is right and all of it is there.
    pub(super) fn is_ipv4(&self, at: usize) -> bool {
        let header = self.u8_at(at).map_or(0, ipv4::header_len);
        let total = self.u16_at(at + 2).map_or(0, usize::from);
        let bytes = self.packet.get(at..self.end.min(at + header)).unwrap_or_default();
        let is_whole = header >= ipv4::HEADER && bytes.len() == header;
        is_whole && checksum::verifies(bytes) && (header..=self.end - at).contains(&total)
    }

    /// The same of IPv6, which has no checksum: its length is exactly what is there.
    pub(super) fn is_ipv6(&self, at: usize) -> bool {
        let payload = self.u16_at(at + 4).map_or(0, usize::from);
        payload > 0 && at + ipv6::HEADER + payload == self.end
    }

    pub(super) fn ipv4(&mut self, at: usize, pending: &mut Vec<Pending>) -> Option<(usize, Next)> {
        let header = ipv4::header_len(self.u8_at(at)?);
        if header < ipv4::HEADER {
            return None;
        }
        if let Some(total) = self.u16_at(at + 2) {
            let total = match usize::from(total) {
                0 if self.end - at > LONGEST => self.end - at,
                total => total,
            };
            if total < header {
                return None;
            }
            self.inside.end = at + total;
            self.end = self.end.min(at + total);
        }
        self.treat(Kind::Ipv4, at, ipv4::HEADER)?;
        // A route's last address is where the packet goes in the end (RFC 791, section 3.1).
        let route_end = self.ipv4_options(at + ipv4::HEADER, at + header);
        pending.push(Pending {
            at: at + 10,
            from: at,
            to: at + header,
            pseudo: Sum::default(),
            zero_is_none: false,
        });
        let fragment = FragmentField(self.u16_at(at + 6)?);
        let last = route_end.unwrap_or(at + 20);
        self.inside = Inside {
            fragment: fragment.is_fragment(),
            addresses: Sum::default()
                .bytes(self.out.get(at + 12..at + 16)?)
                .bytes(self.out.get(last - 4..last)?),
            ..self.inside
        };
        if self.end < at + header || fragment.offset() != 0 {
            return None;
        }
        Some((header, Next::Protocol(IpProtocol(self.u8_at(at + 9)?))))
    }

    /// Treats the options; what is not kept becomes bytes of nothing. The end of a source route that the
    /// packet has not gone to its end, if that is in the result.
    fn ipv4_options(&mut self, begin: usize, end: usize) -> Option<usize> {
        let (mut at, mut route_end) = (begin, None);
        let end = end.min(self.end);
        self.kept = self.kept.max(end);
        while at < end {
            let kind = self.u8_at(at)?;
            if kind == END {
                break;
            }
            let length = match kind {
                NOTHING => 1,
                _ => self.u8_at(at + 1).map_or(0, usize::from),
            };
            // A length that is none ends the options as they end the walk of a router.
            if length == 0 || at + length > end || kind != NOTHING && length < 2 {
                break;
            }
            match kind {
                RECORD_ROUTE | LOOSE_ROUTE | STRICT_ROUTE
                    if length >= 3 && self.visit.keeps(Kind::Ipv4Route) =>
                {
                    self.treat(Kind::Ipv4Route, at, 3);
                    let count = (length - 3) / 4;
                    for n in 0..count {
                        self.treat(Kind::Ipv4RouteAddress, at + 3 + 4 * n, 4);
                    }
                    // The result's: what its checksums say is true of itself.
                    let pointer = usize::from(self.out[at + 2]);
                    if kind != RECORD_ROUTE && count > 0 && pointer <= length {
                        route_end = Some(at + 3 + 4 * count);
                    }
                }
                ROUTER_ALERT if length == 4 && self.visit.keeps(Kind::Ipv4RouterAlert) => {
                    self.treat(Kind::Ipv4RouterAlert, at, 4);
                }
                _ => {
                    self.visit.unnamed(self.captured(at + 2, at + length));
                    self.out[at..at + length].fill(NOTHING);
                }
            }
            at += length;
        }
        self.visit.unnamed(self.captured(at, end));
        route_end
    }

    pub(super) fn ipv6(&mut self, at: usize) -> Option<(usize, Next)> {
        if let Some(length) = self.u16_at(at + 4) {
            let total = match usize::from(length) {
                0 if self.end - at > LONGEST => self.end - at,
                length => ipv6::HEADER + length,
            };
            self.inside.end = at + total;
            self.end = self.end.min(at + total);
        }
        self.treat(Kind::Ipv6, at, ipv6::HEADER)?;
        self.inside = Inside {
            fragment: false,
            addresses: Sum::default().bytes(self.out.get(at + 8..at + 40)?),
            ..self.inside
        };
        let mut next = IpProtocol(self.u8_at(at + 6)?);
        let mut here = at + ipv6::HEADER;
        // Each has at least 8 bytes, so this ends.
        while ipv6::is_extension(next) {
            let (length, following) = self.extension(next, here, at)?;
            (here, next) = (here + length, following);
        }
        Some((here - at, Next::Protocol(next)))
    }

    /// An extension header (RFC 8200, section 4): its length and what follows.
    fn extension(
        &mut self,
        kind: IpProtocol,
        at: usize,
        header: usize,
    ) -> Option<(usize, IpProtocol)> {
        let length = match kind {
            IpProtocol::FRAGMENT => ipv6::EXTENSION,
            IpProtocol::HOP_BY_HOP | IpProtocol::ROUTING | IpProtocol::DESTINATION_OPTIONS => {
                ipv6::Extension::length(kind, self.u8_at(at + 1)?)
            }
            // An authentication header could not be checked against a changed packet, and the others'
            // formats are their own: they are removed with what is behind them.
            _ => return None,
        };
        let next = IpProtocol(self.u8_at(at)?);
        match kind {
            IpProtocol::FRAGMENT => {
                self.treat(Kind::Ipv6Fragment, at, 8)?;
                let field = self.u16_at(at + 2)?;
                self.inside.fragment |= field & 0xfff9 != 0;
                if field & 0xfff8 != 0 {
                    return None;
                }
            }
            IpProtocol::ROUTING => self.routing(at, length, header)?,
            _ => {
                self.show_options(at + 2, at + length);
                self.treat(Kind::Ipv6Options, at, length)?;
                self.pad(at + 2, at + length);
            }
        }
        Some((length, next))
    }

    /// A routing header (RFC 8200, section 4.4; RFC 8754, section 2), whose last address is where the
    /// packet goes in the end.
    fn routing(&mut self, at: usize, length: usize, header: usize) -> Option<()> {
        let (kind, left) = (self.u8_at(at + 2)?, self.u8_at(at + 3)?);
        self.treat(Kind::Ipv6Routing, at, length)?;
        let room = (length - 8) / 16;
        let (count, goal) = match kind {
            0 | 2 => (room, room.checked_sub(1)),
            // Segments are in reverse order; what follows the last one are options, which become padding.
            4 => {
                let count = usize::from(self.u8_at(at + 4)?) + 1;
                if count > room {
                    return None;
                }
                self.treat(Kind::Ipv6Segments, at, 5)?;
                self.show_options(at + 8 + 16 * count, at + length);
                (count, Some(0))
            }
            // Unknown ones are removed but for their structure.
            _ => {
                self.visit.unnamed(self.captured(at + 4, at + length));
                return Some(());
            }
        };
        for n in 0..count {
            self.treat(Kind::Ipv6RoutingAddress, at + 8 + 16 * n, 16)?;
        }
        if let Some(goal) = goal.filter(|goal| left > 0 && *goal < count) {
            let goal = at + 8 + 16 * goal;
            self.inside.addresses = Sum::default()
                .bytes(self.out.get(header + 8..header + 24)?)
                .bytes(self.out.get(goal..goal + 16)?);
        }
        Some(())
    }

    /// Shows options of an extension header (RFC 8200, section 4.2), of which none can be named.
    fn show_options(&mut self, mut at: usize, end: usize) {
        while at < end {
            // Pad1 is a zero without a length.
            let (Some(kind), Some(length)) = (self.u8_at(at), self.u8_at(at + 1)) else { break };
            let length = if kind == 0 { 1 } else { 2 + usize::from(length) };
            self.visit.unnamed(self.captured(at + 2, end.min(at + length)));
            at += length;
        }
    }

    /// Fills options of an extension header with padding (RFC 8200, section 4.2).
    fn pad(&mut self, mut at: usize, end: usize) {
        while at < end {
            match end - at {
                // Pad1 is a zero.
                1 => at += 1,
                room => {
                    let length = room.min(257);
                    self.out[at] = 1;
                    self.out[at + 1] = (length - 2) as u8;
                    at += length;
                }
            }
        }
    }
}
