//! Messages of the hierarchical token bucket, tc-htb(8): linux/pkt_sched.h, net/sched/sch_htb.c.

use super::{MAJOR, Rate};
use netlink_packet_core::DefaultNla;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage, TcOption};

/// `TCA_OPTIONS`: for a bfifo not attributes but a struct.
const OPTIONS: u16 = 2;
// linux/pkt_sched.h, TCA_HTB_*.
const PARAMETERS: u16 = 1;
const INIT: u16 = 2;
const DIRECT_QUEUE_LENGTH: u16 = 5;
const RATE64: u16 = 6;
const CEIL64: u16 = 7;
/// `TC_LINKLAYER_ETHERNET`: no table of rates is wanted from us.
const ETHERNET: u8 = 1;
/// `TC_HTB_PROTOVER`.
const VERSION: u32 = 3;
/// Packets that no class takes and that wait for the device.
const DIRECT_PACKETS: u32 = 1000;
/// Nanoseconds of a scheduler's tick (net/pkt_sched.h, PSCHED_SHIFT).
const TICK_NS: u64 = 64;
/// The longest frame that is not a super-packet, in bytes: what a burst must at least hold.
const FRAME: u64 = 1514;
/// The longest super-packet, in bytes.
const SUPER_PACKET: u64 = 65_536;

/// The qdisc of an interface, as its root.
pub(super) fn qdisc(interface: i32) -> TcMessage {
    let init: Vec<u8> = [VERSION, 10, 0, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let options = vec![
        TcOption::Other(DefaultNla::new(INIT, init)),
        TcOption::Other(DefaultNla::new(
            DIRECT_QUEUE_LENGTH,
            DIRECT_PACKETS.to_ne_bytes().to_vec(),
        )),
    ];
    let mut message = message(interface, handle(0), TcHandle::ROOT, "htb");
    message.attributes.push(TcAttribute::Options(options));
    message
}

/// A class of a rate. It lends nothing and borrows nothing.
pub(super) fn class(interface: i32, id: u16, rate: Rate) -> TcMessage {
    let options = vec![
        TcOption::Other(DefaultNla::new(PARAMETERS, parameters(rate))),
        TcOption::Other(DefaultNla::new(RATE64, rate.bytes_a_second.to_ne_bytes().to_vec())),
        TcOption::Other(DefaultNla::new(CEIL64, rate.bytes_a_second.to_ne_bytes().to_vec())),
    ];
    let mut message = message(interface, handle(id), handle(0), "htb");
    message.attributes.push(TcAttribute::Options(options));
    message
}

/// The queue of a class: a tenth of a second at its rate, room for two super-packets at least and for
/// eight megabytes at most. HTB's own would count packets, of which each may be a super-packet.
pub(super) fn queue(interface: i32, id: u16, rate: Rate) -> TcMessage {
    let bytes = (rate.bytes_a_second / 10).clamp(2 * SUPER_PACKET, 8 << 20) as u32;
    let mut message = message(interface, TcHandle::UNSPEC, handle(id), "bfifo");
    message
        .attributes
        .push(TcAttribute::Other(DefaultNla::new(OPTIONS, bytes.to_ne_bytes().to_vec())));
    message
}

/// What names a qdisc or class without saying how it is to be.
pub(super) fn name(interface: i32, own: TcHandle, parent: TcHandle) -> TcMessage {
    let header = TcHeader { index: interface, handle: own, parent, ..TcHeader::default() };
    TcMessage::from_parts(header, Vec::new())
}

/// The handle of a class, or with 0 of the qdisc.
pub(super) const fn handle(id: u16) -> TcHandle {
    TcHandle { major: MAJOR, minor: id }
}

fn message(interface: i32, own: TcHandle, parent: TcHandle, kind: &str) -> TcMessage {
    let mut message = name(interface, own, parent);
    message.attributes.push(TcAttribute::Kind(kind.into()));
    message
}

/// `struct tc_htb_opt`: rate and ceiling (`struct tc_ratespec`), burst of each in ticks, quantum,
/// level and priority.
fn parameters(rate: Rate) -> Vec<u8> {
    // A rate of more than 32 bits is in RATE64.
    let short = u32::try_from(rate.bytes_a_second).unwrap_or(u32::MAX);
    let mut ratespec = [0; 12];
    ratespec[1] = ETHERNET;
    ratespec[8..].copy_from_slice(&short.to_ne_bytes());
    // Ten milliseconds at the rate: what a late timer must catch up with.
    let burst = (rate.bytes_a_second / 100).max(2 * FRAME);
    let ns = u128::from(burst) * 1_000_000_000 / u128::from(rate.bytes_a_second.max(1));
    let ticks = u32::try_from(ns / u128::from(TICK_NS)).unwrap_or(u32::MAX);
    // There is nothing to borrow, so a turn is as long as a burst; kept where HTB wants it.
    let quantum = burst.clamp(FRAME, 200_000) as u32;
    let words = [ticks, ticks, quantum, 0, 0];
    let mut bytes = [ratespec, ratespec].concat();
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}
