//! Super-packets: what a TAP's virtio header says of a frame, and how one becomes segments.
//!
//! The kernel hands over TCP and UDP in frames of up to 64 KB with one copy of the headers
//! (`struct virtio_net_hdr_v1`, virtio 1.2 section 5.1.6) and leaves it to the device to cut them into
//! segments, with the checksum still to be filled in. A link that treats packets one by one needs the
//! segments; they are the same bytes that Linux makes of the super-packet (`tcp_gso_segment`,
//! `__udp_gso_segment`, `inet_gso_segment`):
//!
//! - every segment has all headers; the last may carry less than the others;
//! - IPv4: total length, identification rising by one, header checksum; IPv6: payload length;
//! - TCP: sequence number, FIN and PSH on the last only, CWR on the first only, checksum;
//! - UDP: length and checksum, 0xffff where that is 0.
//!
//! A frame lies in two pieces, of which the first holds the headers: it begins with the virtio header,
//! then comes Ethernet. Offsets are from Ethernet's first byte, as in the virtio header. The header's
//! `hdr_len` is only a hint (Linux gives the length of the linear part), so lengths of headers are read
//! from the headers.

mod error;
mod header;
mod split;

pub use error::GsoError;
pub use header::{HEADER, Segmentation, VirtioHeader};
pub use split::{Checksums, SuperPacket, finish_checksum};
