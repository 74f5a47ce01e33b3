//! Cutting a super-packet, and filling in checksums.

use wire::{
    EtherType, IpProtocol,
    checksum::Sum,
    ethernet::HEADER as ETHERNET,
    ipv4::{self, FragmentField},
    ipv6::{self, EXTENSION, Extension},
    tcp::{self, Flags},
    udp,
};

use super::{GsoError, HEADER, Segmentation, VirtioHeader};

/// Headers that may stand between IPv6 and TCP or UDP: hop-by-hop options, routing, destination options.
const EXTENSIONS: [IpProtocol; 3] =
    [IpProtocol::HOP_BY_HOP, IpProtocol::ROUTING, IpProtocol::DESTINATION_OPTIONS];

/// Who fills in a segment's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// It is filled in: the segment is as on a wire.
    Finished,
    /// Whoever takes the segment: it has the sum of the pseudo header, and its virtio header says so.
    /// Much cheaper where another TAP takes it.
    Left,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    Udp,
}

/// A super-packet's description: where its headers are and how it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperPacket {
    v4: bool,
    transport: Transport,
    /// Where the transport header begins.
    transport_at: usize,
    /// Where the payload begins.
    payload_at: usize,
    /// Bytes of payload.
    payload: usize,
    /// Bytes of payload in each segment but the last.
    size: usize,
    /// Whether the checksum field holds the sum of the pseudo header.
    needs_csum: bool,
}

impl SuperPacket {
    /// Reads the virtio header and the headers behind it; `None` if the frame is a single packet.
    /// `first` is the frame's first piece with the virtio header and all other headers, `length` the
    /// bytes of the whole frame with the virtio header.
    ///
    /// # Errors
    /// The headers are not all there, contradict each other, or are of a kind that cannot be cut.
    pub fn parse(first: &[u8], length: usize) -> Result<Option<Self>, GsoError> {
        let header = VirtioHeader::parse(first)?;
        let Some(segmentation) = header.segmentation else { return Ok(None) };
        let have = first.len().min(length);
        let (frame, length) = (&first[HEADER..have.max(HEADER)], length.saturating_sub(HEADER));
        let wrong_type = GsoError::Type(header.kind());
        let (v4, transport_at, protocol) = network(frame, length)?;
        let transport = match (segmentation, protocol, v4) {
            (Segmentation::Tcp4 { .. }, IpProtocol::TCP, true)
            | (Segmentation::Tcp6 { .. }, IpProtocol::TCP, false) => Transport::Tcp,
            (Segmentation::Udp, IpProtocol::UDP, _) => Transport::Udp,
            _ => return Err(wrong_type),
        };
        let (header_bytes, checksum) = match transport {
            Transport::Udp => (udp::HEADER, udp::CHECKSUM),
            Transport::Tcp => {
                let tcp = slice(frame, "a TCP header", transport_at, tcp::HEADER)?;
                let bytes = usize::from(tcp[12] >> 4) * 4;
                if bytes < tcp::HEADER {
                    return Err(GsoError::Unsupported("a TCP header of less than 20 bytes"));
                }
                (bytes, tcp::CHECKSUM)
            }
        };
        slice(frame, "headers", transport_at, header_bytes)?;
        let (start, offset) = (header.csum_start, header.csum_offset);
        if header.needs_csum
            && (usize::from(start), usize::from(offset)) != (transport_at, checksum)
        {
            return Err(GsoError::Checksum { start, offset });
        }
        if header.gso_size == 0 {
            return Err(GsoError::SegmentSize);
        }
        let payload_at = transport_at + header_bytes;
        Ok(Some(Self {
            v4,
            transport,
            transport_at,
            payload_at,
            payload: length - payload_at,
            size: header.gso_size.into(),
            needs_csum: header.needs_csum,
        }))
    }

    /// How many segments it becomes.
    pub fn segments(&self) -> u32 {
        self.payload.div_ceil(self.size).max(1) as u32
    }

    /// Bytes of all segments' IP packets together.
    pub fn bytes(&self) -> u64 {
        let headers = (self.payload_at - ETHERNET) as u64;
        self.payload as u64 + headers * u64::from(self.segments())
    }

    /// Bytes of the largest segment's IP packet.
    pub fn largest(&self) -> u32 {
        (self.payload_at - ETHERNET + self.size.min(self.payload)) as u32
    }

    /// Writes a segment with its virtio header into the two pieces of another frame and returns its
    /// bytes. `from` are the pieces of the super-packet, without what may be behind the frame. The first
    /// piece to write into must have room for the headers.
    ///
    /// # Errors
    /// There is no such segment, or it does not fit.
    pub fn write(
        &self,
        index: u32,
        from: [&[u8]; 2],
        to: [&mut [u8]; 2],
        checksums: Checksums,
    ) -> Result<usize, GsoError> {
        let begin = self.size * index as usize;
        if index >= self.segments() {
            let (need, have) = (begin, self.payload);
            return Err(GsoError::Short { what: "the payload before the segment", need, have });
        }
        let payload = self.size.min(self.payload - begin);
        let (head, length) = (HEADER + self.payload_at, HEADER + self.payload_at + payload);
        let [first, second] = to;
        let short = |what, need, have| GsoError::Short { what, need, have };
        if first.len() < head || first.len() + second.len() < length {
            return Err(short("a segment", length, first.len() + second.len()));
        }
        let headers = from[0].get(HEADER..head);
        let headers = headers.ok_or(short("headers", head, from[0].len()))?;
        let [one, two] = range(from, head + begin, payload).ok_or(short(
            "a payload",
            head + begin + payload,
            from[0].len() + from[1].len(),
        ))?;
        first[HEADER..head].copy_from_slice(headers);
        let here = payload.min(first.len() - head);
        copy([one, two], &mut first[head..head + here], &mut second[..payload - here]);
        let last = begin + payload == self.payload;
        let frame = &mut first[HEADER..head + here];
        self.adapt(frame, index, begin, payload, last);
        let rest = &second[..payload - here];
        let virtio = self.checksum(frame, rest, payload, checksums);
        first[..HEADER].copy_from_slice(&virtio.bytes());
        Ok(length)
    }

    /// Makes the headers, copied from the super-packet, those of a segment; all but the checksum of the
    /// transport.
    fn adapt(&self, frame: &mut [u8], index: u32, begin: usize, payload: usize, last: bool) {
        let ip_bytes = self.payload_at - ETHERNET + payload;
        let ip = &mut frame[ETHERNET..self.transport_at];
        if self.v4 {
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(index as u16);
            put(ip, 2, ip_bytes as u16);
            put(ip, 4, id);
            put(ip, 10, 0);
            let sum = Sum::default().bytes(ip).fold();
            put(ip, 10, !sum);
        } else {
            put(ip, 4, (ip_bytes - ipv6::HEADER) as u16);
        }
        let transport = &mut frame[self.transport_at..self.payload_at];
        match self.transport {
            Transport::Udp => put(transport, 4, (udp::HEADER + payload) as u16),
            Transport::Tcp => {
                let number = [transport[4], transport[5], transport[6], transport[7]];
                let number = u32::from_be_bytes(number).wrapping_add(begin as u32);
                transport[4..8].copy_from_slice(&number.to_be_bytes());
                transport[13] &= !if last { 0 } else { Flags::FIN.with(Flags::PSH).0 };
                transport[13] &= !if index == 0 { 0 } else { Flags::CWR.0 };
            }
        }
    }

    /// Puts the checksum, or what it starts from, into a segment whose other headers are done; `rest` is
    /// what lies in the second piece. Returns the segment's virtio header.
    fn checksum(
        &self,
        frame: &mut [u8],
        rest: &[u8],
        payload: usize,
        checksums: Checksums,
    ) -> VirtioHeader {
        let (at, udp) = match self.transport {
            Transport::Tcp => (tcp::CHECKSUM, false),
            Transport::Udp => (udp::CHECKSUM, true),
        };
        let bytes = (self.payload_at - self.transport_at + payload) as u16;
        let (network, transport) = frame.split_at_mut(self.transport_at);
        let field = u16::from_be_bytes([transport[at], transport[at + 1]]);
        let pseudo = if self.needs_csum {
            // It has the sum with the length of the whole.
            let whole = (self.payload_at - self.transport_at + self.payload) as u16;
            Sum::default().word(field).less(Sum::default().word(whole)).word(bytes)
        } else {
            self.pseudo(&network[ETHERNET..], bytes)
        };
        if checksums == Checksums::Left {
            put(transport, at, pseudo.fold());
            return VirtioHeader {
                needs_csum: true,
                csum_start: self.transport_at as u16,
                csum_offset: at as u16,
                ..VirtioHeader::default()
            };
        }
        put(transport, at, 0);
        let check = !pseudo.bytes(transport).and(behind(transport.len(), rest)).fold();
        put(transport, at, if udp && check == 0 { 0xffff } else { check });
        VirtioHeader::default()
    }

    /// The sum of the pseudo header (RFC 9293, section 3.1; RFC 8200, section 8.1).
    fn pseudo(&self, ip: &[u8], bytes: u16) -> Sum {
        let addresses = if self.v4 { &ip[12..20] } else { &ip[8..40] };
        let protocol = match self.transport {
            Transport::Tcp => IpProtocol::TCP,
            Transport::Udp => IpProtocol::UDP,
        };
        Sum::default().bytes(addresses).word(protocol.0.into()).word(bytes)
    }
}

/// Fills in the checksum of a single packet whose virtio header asks for it, and takes the request out
/// of the header. The pieces are those of the frame, without what may be behind it. Returns whether there
/// was a request.
///
/// # Errors
/// The frame is a super-packet, or the checksum's place is not in the first piece.
pub fn finish_checksum(pieces: [&mut [u8]; 2]) -> Result<bool, GsoError> {
    let [first, second] = pieces;
    let header = VirtioHeader::parse(first)?;
    if !header.needs_csum {
        return Ok(false);
    }
    if header.segmentation.is_some() {
        return Err(GsoError::Unsupported("which a single checksum was asked for"));
    }
    let (start, offset) = (header.csum_start, header.csum_offset);
    let wrong = GsoError::Checksum { start, offset };
    let summed = first.get_mut(HEADER + usize::from(start)..).ok_or(wrong)?;
    let sum = Sum::default().bytes(summed).and(behind(summed.len(), second));
    let field = summed.get_mut(offset.into()..).and_then(<[u8]>::first_chunk_mut).ok_or(wrong)?;
    // The field was summed with the rest, as is right: it holds the sum of the pseudo header. Linux
    // (`skb_checksum_help`) writes 0xffff for 0 whatever the protocol.
    *field = match !sum.fold() {
        0 => [0xff; 2],
        check => check.to_be_bytes(),
    };
    let done = VirtioHeader { needs_csum: false, csum_start: 0, csum_offset: 0, ..header };
    first[..HEADER].copy_from_slice(&done.bytes());
    Ok(true)
}

/// The sum of bytes that follow so many others.
fn behind(before: usize, bytes: &[u8]) -> Sum {
    match (bytes.is_empty(), before % 2) {
        (true, _) => Sum::default(),
        (false, 0) => Sum::default().bytes(bytes),
        (false, _) => Sum::default().bytes(bytes).odd(),
    }
}

/// Whether it is IPv4, where the transport header begins, and its protocol.
fn network(frame: &[u8], length: usize) -> Result<(bool, usize, IpProtocol), GsoError> {
    let ethernet = slice(frame, "an Ethernet header", 0, ETHERNET)?;
    let has = length.saturating_sub(ETHERNET);
    match EtherType(u16::from_be_bytes([ethernet[12], ethernet[13]])) {
        EtherType::IPV4 => {
            let ip = slice(frame, "an IPv4 header", ETHERNET, ipv4::HEADER)?;
            let bytes = ipv4::header_len(ip[0]);
            if ip[0] >> 4 != 4 || bytes < ipv4::HEADER {
                return Err(GsoError::Unsupported("a wrong IPv4 header"));
            }
            if FragmentField(u16::from_be_bytes([ip[6], ip[7]])).is_fragment() {
                return Err(GsoError::Unsupported("a fragment"));
            }
            let says = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
            if says != has {
                return Err(GsoError::Length { says, has });
            }
            slice(frame, "an IPv4 header", ETHERNET, bytes)?;
            Ok((true, ETHERNET + bytes, IpProtocol(ip[9])))
        }
        EtherType::IPV6 => {
            let ip = slice(frame, "an IPv6 header", ETHERNET, ipv6::HEADER)?;
            if ip[0] >> 4 != 6 {
                return Err(GsoError::Unsupported("a wrong IPv6 header"));
            }
            let says = ipv6::HEADER + usize::from(u16::from_be_bytes([ip[4], ip[5]]));
            if says != has {
                return Err(GsoError::Length { says, has });
            }
            let (mut at, mut protocol) = (ETHERNET + ipv6::HEADER, IpProtocol(ip[6]));
            while EXTENSIONS.contains(&protocol) {
                let head = slice(frame, "an IPv6 extension header", at, EXTENSION)?;
                let Some(extension) = Extension::read(protocol, head) else { break };
                protocol = extension.next;
                at += extension.length;
            }
            Ok((false, at, protocol))
        }
        _ => Err(GsoError::Unsupported("another protocol than IP")),
    }
}

fn slice<'a>(
    frame: &'a [u8],
    what: &'static str,
    at: usize,
    bytes: usize,
) -> Result<&'a [u8], GsoError> {
    let short = GsoError::Short { what, need: at + bytes, have: frame.len() };
    frame.get(at..at + bytes).ok_or(short)
}

/// A range of what lies in two pieces, in two pieces.
fn range([first, second]: [&[u8]; 2], at: usize, bytes: usize) -> Option<[&[u8]; 2]> {
    let end = at.checked_add(bytes)?;
    let split = first.len();
    let one = first.get(at.min(split)..end.min(split))?;
    let two = second.get(at.saturating_sub(split)..end.saturating_sub(split))?;
    Some([one, two])
}

/// Copies two pieces into two others that are as long together.
fn copy([one, two]: [&[u8]; 2], first: &mut [u8], second: &mut [u8]) {
    let split = first.len();
    if one.len() <= split {
        let (begin, end) = first.split_at_mut(one.len());
        begin.copy_from_slice(one);
        let (here, there) = two.split_at(end.len());
        end.copy_from_slice(here);
        second.copy_from_slice(there);
    } else {
        let (here, there) = one.split_at(split);
        first.copy_from_slice(here);
        let (begin, end) = second.split_at_mut(there.len());
        begin.copy_from_slice(there);
        end.copy_from_slice(two);
    }
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}
