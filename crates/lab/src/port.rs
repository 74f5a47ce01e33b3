//! Ports: where frames of real hosts come in and leave.

use crate::{
    gso::VirtioHeader,
    pool::{ETHERNET, Frame, Pool, VIRTIO},
};
use datapath::{tap::Tap, xsk};
use nix::libc;
use std::{
    io::{self, ErrorKind},
    os::fd::{AsFd, BorrowedFd},
};
use wire::{
    EtherType, IpProtocol,
    checksum::Sum,
    ipv4::{self, FragmentField},
    ipv6, tcp, udp,
};

/// A port's device.
#[derive(Debug)]
pub(crate) enum Port {
    /// A TAP device: frames with virtio header, super-packets among them.
    Tap(Tap),
    /// An interface through AF_XDP: frames as on a wire.
    Xdp(Box<xsk::Interface>),
}

impl Port {
    /// Takes the next frame that has arrived; false when there is none.
    pub(crate) fn receive(&mut self, pool: &mut Pool, frame: &mut Frame) -> io::Result<bool> {
        let length = match self {
            Self::Tap(tap) => tap.receive(&mut pool.buffers(frame))?,
            Self::Xdp(interface) => {
                let [mut head, mut spill] = pool.buffers(frame);
                let (header, head) = head.split_at_mut(VIRTIO);
                header.fill(0);
                interface.receive(&mut [head, &mut spill]).map(|length| VIRTIO + length)
            }
        };
        pool.filled(frame, length.unwrap_or_default());
        if let Self::Xdp(_) = self {
            mark_unfinished(pool.head_mut(frame));
        }
        Ok(length.is_some())
    }

    /// Lets a frame out. False when the host did not take it: its interface is down or full.
    pub(crate) fn send(&mut self, pool: &Pool, frame: &Frame) -> io::Result<bool> {
        let sent = match self {
            Self::Tap(tap) => tap.send(&pool.slices(frame)).map(|()| true),
            Self::Xdp(interface) => {
                let [head, rest] = pool.pieces(frame);
                interface.send(&[head.get(VIRTIO..).unwrap_or_default(), rest])
            }
        };
        match sent {
            // EIO is what a TAP device says whose interface is down.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EIO | libc::ENETDOWN)) => {
                Ok(false)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            sent => sent,
        }
    }

    /// To wait until there is something to receive.
    pub(crate) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Tap(tap) => vec![tap.as_fd()],
            Self::Xdp(interface) => interface.sockets().collect(),
        }
    }
}

/// Says in the virtio header of a frame from a veth that its checksum is unfinished, if it is.
///
/// A neighbour on a veth leaves the sum over the payload to the hardware which is not there, and AF_XDP
/// does not show. In its place is the sum over the pseudo header (RFC 9293 section 3.1, RFC 768). A
/// frame that was finished and has the same number there by chance is finished again, to the same.
fn mark_unfinished(frame: &mut [u8]) {
    let Some((virtio, frame)) = frame.split_first_chunk_mut::<VIRTIO>() else { return };
    if let Some((csum_start, csum_offset)) = unfinished(frame) {
        let needs_csum = true;
        *virtio =
            VirtioHeader { needs_csum, csum_start, csum_offset, ..VirtioHeader::default() }.bytes();
    }
}

/// Where the transport header of an Ethernet frame begins and where in it the checksum is, if that
/// is the sum over the pseudo header.
fn unfinished(frame: &[u8]) -> Option<(u16, u16)> {
    let (ethernet, ip) = frame.split_at_checked(ETHERNET)?;
    let word = |bytes: &[u8], at: usize| -> Option<u16> {
        Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
    };
    // Addresses, protocol and the length of what the checksum covers.
    let (addresses, protocol, start, length) = match EtherType(word(ethernet, 12)?) {
        EtherType::IPV4 => {
            let header = ipv4::header_len(*ip.first()?);
            let length = word(ip, 2)?.checked_sub(header as u16)?;
            if FragmentField(word(ip, 6)?).is_fragment() {
                return None;
            }
            (ip.get(12..20)?, *ip.get(9)?, header, length)
        }
        EtherType::IPV6 => (ip.get(8..40)?, *ip.get(6)?, ipv6::HEADER, word(ip, 4)?),
        _ => return None,
    };
    let offset = match IpProtocol(protocol) {
        IpProtocol::TCP => tcp::CHECKSUM,
        IpProtocol::UDP => udp::CHECKSUM,
        _ => return None,
    };
    let pseudo = Sum::default().bytes(addresses).word(protocol.into()).word(length).fold();
    (word(ip, start + offset)? == pseudo).then(|| ((ETHERNET + start) as u16, offset as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::IP;

    /// A UDP datagram of 4 bytes over IPv4 or IPv6 whose checksum is `checksum`.
    fn datagram(v6: bool, checksum: u16) -> Vec<u8> {
        let mut frame = vec![0; IP];
        frame[VIRTIO + 12..].copy_from_slice(if v6 { &[0x86, 0xdd] } else { &[8, 0] });
        if v6 {
            frame.extend([0x60, 0, 0, 0, 0, 12, 17, 64]);
            frame.extend([0x20; 32]);
        } else {
            frame.extend([0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        }
        frame.extend([0, 53, 0, 53, 0, 12]);
        frame.extend(checksum.to_be_bytes());
        frame.extend([1, 2, 3, 4]);
        frame
    }

    #[test]
    fn an_unfinished_checksum_is_known_by_the_pseudo_header() {
        let sums = [
            (false, [192, 0, 2, 1, 192, 0, 2, 2].as_slice(), 14 + 20),
            (true, &[0x20; 32], 14 + 40),
        ];
        for (v6, addresses, start) in sums {
            let sum = Sum::default().bytes(addresses).word(17).word(12).fold();
            let mut frame = datagram(v6, sum);
            mark_unfinished(&mut frame);
            let header = VirtioHeader::parse(&frame).unwrap();
            assert!(header.needs_csum);
            assert_eq!((header.csum_start, header.csum_offset), (start, 6));
            let mut finished = datagram(v6, sum.wrapping_add(1));
            mark_unfinished(&mut finished);
            assert_eq!(finished[..VIRTIO], [0; VIRTIO]);
        }
    }

    #[test]
    fn frames_cut_anywhere_are_left_alone() {
        for v6 in [false, true] {
            let whole = datagram(v6, 0);
            for length in 0..whole.len() {
                let mut frame = whole[..length].to_vec();
                mark_unfinished(&mut frame);
                assert_eq!(frame, whole[..length]);
            }
        }
    }
}
