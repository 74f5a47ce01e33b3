//! TAP devices: an Ethernet interface of the kernel whose other end is a file (tuntap.rst of the
//! kernel's documentation, virtio 1.2 section 5.1.6).
//!
//! Each read gives one frame that the kernel sends, each write hands it one that it receives, both
//! behind a header of [`HEADER`] bytes (`struct virtio_net_hdr_v1`) that shows which checksum is
//! still to be filled in and how a super-packet of up to 64 KB is to be cut into segments. So TCP
//! crosses in large pieces, as it does between two veth devices.

use crate::shaper::netlink::Netlink;
use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{LinkAttribute, LinkFlags, LinkMessage},
};
use nix::{libc, net::if_::if_nametoindex};
use std::{
    fs::{File, OpenOptions},
    io::{self, IoSlice, IoSliceMut, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::fs::OpenOptionsExt,
    },
};

/// Bytes of the header before each frame: `struct virtio_net_hdr_v1`.
pub const HEADER: usize = 12;
/// The longest frame with its header: an IP packet of 65,535 bytes, Ethernet's 14 and two VLAN tags.
pub const LONGEST: usize = HEADER + 14 + 8 + 65_535;

/// The largest packet that the kernel lets an interface of this kind send: 65,535 less Ethernet's header.
pub const MTU: u32 = 65_521;

/// What this end can deal with, so that the kernel leaves it undone (linux/if_tun.h, TUN_F_*):
/// checksums, and segmentation of TCP and UDP of both families.
const OFFLOADS: libc::c_ulong = (libc::TUN_F_CSUM
    | libc::TUN_F_TSO4
    | libc::TUN_F_TSO6
    | libc::TUN_F_TSO_ECN
    | libc::TUN_F_USO4
    | libc::TUN_F_USO6) as libc::c_ulong;

/// `struct ifreq` with flags, and the room that the kernel takes it to have.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

// net/if.h: 40 bytes on 64-bit systems.
const _: () = assert!(size_of::<Request>() == size_of::<libc::ifreq>());

nix::ioctl_write_ptr_bad!(
    /// Makes the device of a name, or takes it over.
    tunsetiff,
    libc::TUNSETIFF,
    Request
);
nix::ioctl_write_ptr_bad!(
    /// Sets the length of the header.
    tunsetvnethdrsz,
    libc::TUNSETVNETHDRSZ,
    libc::c_int
);
nix::ioctl_write_int_bad!(
    /// Sets what this end can deal with.
    tunsetoffload,
    libc::TUNSETOFFLOAD
);

/// Puts an interface of the calling thread's network namespace up, with packets of up to `mtu` bytes and
/// without ARP: for one that nothing is sent through.
///
/// # Errors
/// When there is none of that name, or the kernel refuses, mostly for want of CAP_NET_ADMIN.
pub fn put_up(name: &str, mtu: u32) -> io::Result<()> {
    let mut link = LinkMessage::default();
    link.header.index = if_nametoindex(name)?;
    link.header.flags = LinkFlags::Up | LinkFlags::Noarp;
    link.header.change_mask = link.header.flags;
    link.attributes = vec![LinkAttribute::Mtu(mtu)];
    Netlink::open()?.request(RouteNetlinkMessage::SetLink(link), 0)
}

/// A TAP device could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("opening TAP device {name}: {what}: {source}")]
pub struct OpenError {
    name: String,
    what: &'static str,
    source: io::Error,
}

impl OpenError {
    /// Whether somebody else has the device.
    pub fn is_busy(&self) -> bool {
        self.source.raw_os_error() == Some(libc::EBUSY)
    }
}

/// The file behind a TAP device. It never blocks. The device goes when it is closed, unless it had
/// been made to stay (`ip tuntap add`).
#[derive(Debug)]
pub struct Tap {
    file: File,
}

impl Tap {
    /// Makes the device in the calling thread's network namespace, or takes over the one that is
    /// there and that nobody has open.
    ///
    /// # Errors
    /// When the kernel refuses: no CAP_NET_ADMIN, the device is in use or is no TAP device.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        let failed = |what, source| OpenError { name: name.to_owned(), what, source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(|source| failed("/dev/net/tun", source))?;
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            let source = io::Error::from(io::ErrorKind::InvalidInput);
            return Err(failed("its name has 1 to 15 bytes", source));
        }
        let flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        let mut request = Request { name: [0; libc::IFNAMSIZ], flags, rest: [0; 22] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        let fd = file.as_raw_fd();
        // SAFETY: the request is as large as the kernel expects and outlives the call.
        unsafe { tunsetiff(fd, &raw const request) }
            .map_err(|error| failed("making the device (needs CAP_NET_ADMIN)", error.into()))?;
        let size = HEADER as libc::c_int;
        // SAFETY: the kernel reads one int.
        unsafe { tunsetvnethdrsz(fd, &raw const size) }
            .map_err(|error| failed("setting the header's length", error.into()))?;
        // USO came with Linux 6.2; without it, UDP comes in single packets.
        let without = OFFLOADS & !libc::c_ulong::from(libc::TUN_F_USO4 | libc::TUN_F_USO6);
        // SAFETY: the argument is a number.
        unsafe { tunsetoffload(fd, OFFLOADS as libc::c_int) }
            // SAFETY: as above.
            .or_else(|_| unsafe { tunsetoffload(fd, without as libc::c_int) })
            .map_err(|error| failed("setting offloads", error.into()))?;
        Ok(Self { file })
    }

    /// Takes the next frame with its header into the buffers, one after the other; `None` when there
    /// is none. Returns its length; what did not fit is lost.
    ///
    /// # Errors
    /// The system's error, such as `EBADFD` when the device was deleted.
    pub fn receive(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        match (&self.file).read_vectored(buffers) {
            Ok(length) => Ok(Some(length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands the kernel one frame with its header, which may lie in pieces.
    ///
    /// # Errors
    /// The system's error, such as `EIO` when the interface is down and `EINVAL` for a header
    /// that does not fit the frame.
    pub fn send(&self, frame: &[IoSlice<'_>]) -> io::Result<()> {
        (&self.file).write_vectored(frame).map(drop)
    }
}

impl AsFd for Tap {
    /// To wait until there is something to receive.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
