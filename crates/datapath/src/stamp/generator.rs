//! A load of test packets from inside the kernel, for benchmarks of reflectors: `bpf/stamp_load.bpf.c`.

use crate::blast::{LiveError, send_live};
use crate::load::{Object, log_to_tracing, undisturbed};
use crate::xdp_link;
use libbpf_rs::libbpf_sys;
use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use std::mem::MaybeUninit;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd as _, OwnedFd};
use std::ptr;

#[allow(unreachable_pub, missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
#[allow(clippy::multiple_unsafe_ops_per_block)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/stamp_load.skel.rs"));
}

/// What is loaded.
const OBJECT: Object = Object { name: "STAMP load" };

/// Bytes of a frame with a base packet over IPv4.
const LENGTH: usize = 86;

/// Sends test packets out of an interface and counts the replies that come in there.
pub struct Generator {
    skeleton: skeleton::StampLoadSkel<'static>,
    _link: OwnedFd,
    interface: u32,
    frame: Vec<u8>,
}

impl Generator {
    /// On an interface of the calling thread's network namespace: packets from one station (MAC address,
    /// address and port) to another, with this SSID.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(
        interface: u32,
        from: ([u8; 6], SocketAddrV4),
        to: ([u8; 6], SocketAddrV4),
        ssid: u16,
    ) -> Result<Self, LiveError> {
        log_to_tracing();
        let frame = frame(from, to, ssid);
        let storage = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = skeleton::StampLoadSkelBuilder::default()
            .open(storage)
            .map_err(|error| OBJECT.error(error))?;
        if let Some(data) = open.maps.rodata_data.as_deref_mut() {
            data.stamp_frame[..LENGTH].copy_from_slice(&frame);
        }
        let skeleton = undisturbed(|| open.load()).map_err(|error| OBJECT.error(error))?;
        let program = skeleton.progs.stamp_heard.as_fd();
        let link = xdp_link::attach(program, interface, libbpf_sys::XDP_FLAGS_DRV_MODE)
            .map_err(|source| LiveError::Attach { interface, source })?;
        Ok(Self { skeleton, _link: link, interface, frame })
    }

    /// Sends so many packets as fast as can be; returns when the driver has them.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn send(&self, packets: u32) -> Result<(), LiveError> {
        let program = self.skeleton.progs.stamp_ask.as_fd();
        send_live(program, self.interface, &self.frame, packets)
    }

    /// Replies that came.
    pub fn replies(&self) -> u64 {
        self.skeleton.maps.bss_data.as_ref().map_or(0, |data| {
            // SAFETY: the word is aligned and mapped; the program adds to it meanwhile.
            unsafe { ptr::read_volatile(&raw const data.stamp_replies) }
        })
    }
}

/// A right frame with packet number zero.
fn frame(
    (from_mac, from): ([u8; 6], SocketAddrV4),
    (to_mac, to): ([u8; 6], SocketAddrV4),
    ssid: u16,
) -> Vec<u8> {
    let mut packet = vec![0; 44];
    // Sent at some time, by a clock with some error.
    packet[4] = 0xec;
    packet[12..14].copy_from_slice(&[0x94, 9]);
    packet[14..16].copy_from_slice(&ssid.to_be_bytes());
    let length = (packet.len() as u16 + 8).to_be_bytes();
    let addresses = [from.ip().octets(), to.ip().octets()].concat();
    let ports = [from.port().to_be_bytes(), to.port().to_be_bytes()].concat();
    let udp = [&ports[..], &length, &[0, 0], &packet].concat();
    let sum = wire::checksum::checksum(&[&addresses[..], &[0, 17], &length, &udp].concat());
    let total = (udp.len() as u16 + 20).to_be_bytes();
    let mut head = [&[0x45, 0], &total[..], &[0, 0, 0x40, 0, 64, 17, 0, 0], &addresses].concat();
    let check = wire::checksum::checksum(&head).to_be_bytes();
    head[10..12].copy_from_slice(&check);
    let mut frame = [&to_mac[..], &from_mac, &[8, 0], &head, &udp].concat();
    frame[40..42].copy_from_slice(&sum.to_be_bytes());
    frame
}
