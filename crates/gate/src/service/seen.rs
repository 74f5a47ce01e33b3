//! What the kernel has copied out, kept until the parsers have seen it.

use super::{
    core::{Core, Counted, PacketVerdict},
    id::Id,
    kernel,
    managed::{Around, Managers, NewFlow, WorkerCommand},
    namer::{self, Namer},
};
use crate::parser::contents::Kept;
use classify::flow::{Flow, Side};
use datapath::gate::{Held, Record};
use std::iter::Peekable;

/// Bytes of packets that are seen at once, so that no parser takes long.
const MOST: usize = 1 << 20;

/// A record.
pub(super) struct Seen {
    pub(super) id: Id,
    pub(super) flow: Flow,
    /// The sequence numbers of both SYNs, where they were seen.
    pub(super) begins: [Option<u32>; 2],
    pub(super) packet: Kept,
    pub(super) what: What,
    /// What its receiver has acknowledged.
    taken: Option<u32>,
    internal: Side,
}

/// What it is about.
pub(super) enum What {
    /// The sockets begin another flow; as the kernel counted the one before.
    Ended(Box<Counted>),
    /// A packet that its receiver drops, the flow's so many first one.
    Broken(u32, Option<Held>),
    /// A part of a segment of TCP, or a later one of a datagram.
    Fragment(Option<Held>),
    /// A packet, perhaps one that waits.
    Packet(Option<Held>),
}

impl Seen {
    pub(super) fn of(record: &Record<'_>, now_ns: u64) -> Self {
        let (flow, internal, packet) = kernel::packet(record);
        let what = if let Some(ended) = &record.ended {
            What::Ended(Box::new(kernel::counted(&record.key, ended, now_ns)))
        } else if record.is_broken() {
            What::Broken(record.number, Held::of(record))
        } else if record.fragment && (packet.tcp.is_some() || record.payload_at == record.transport)
        {
            What::Fragment(Held::of(record))
        } else {
            What::Packet(Held::of(record))
        };
        let (id, begins) = (Id::of(&flow), kernel::begins(record));
        let packet = Kept::new(&packet);
        Self { id, flow, begins, packet, what, taken: record.taken, internal }
    }

    /// Decides it.
    pub(super) fn take(
        self,
        core: &mut Core<Namer>,
        managers: &mut Managers,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let Self { id, flow, begins, ref packet, what, taken, internal } = self;
        let packet = packet.packet();
        let held = match what {
            What::Ended(counted) => {
                managers.forget(&id);
                return core.restarted(&counted);
            }
            What::Broken(number, held) => {
                core.broken(&flow, number);
                return commands.extend(held.map(WorkerCommand::Release));
            }
            What::Fragment(held) => {
                let lost = packet.tcp.is_some() && core.fragment(&flow, internal, begins);
                if lost && let Some(entry) = core.flow(&id).filter(|_| !core.refuses(&id)) {
                    let new = NewFlow {
                        flow: entry.flow,
                        internal,
                        label: None,
                        began_ns: entry.began_ns,
                        expectation: None,
                        syns: begins,
                        now: None,
                    };
                    managers.adopt(new, true, around, commands);
                } else if !lost {
                    managers.unread(&id, around, commands);
                }
                let refuses = |command: &WorkerCommand| matches!(command, WorkerCommand::Refuse(of, _) if Id::of(of) == id);
                if core.refuses(&id) || commands.iter().any(refuses) {
                    managers.counts.dropped += u64::from(held.is_some());
                    return;
                }
                return commands.extend(held.map(WorkerCommand::Release));
            }
            What::Packet(held) => held,
        };
        let new = core.flow(&id).is_none();
        if new && managers.may_announce() {
            managers.exchange(around, commands);
        }
        let announced = if new { managers.announced(&flow, around.now_ns) } else { None };
        if let Some(announcement) = &announced {
            let label = namer::announced(announcement);
            core.announced(&flow, internal, begins, label, announcement.is_of_its_hosts(&flow));
        }
        let undecided = new || core.is_undecided(&id);
        match core.packet(&flow, internal, begins, taken, &packet) {
            PacketVerdict::Drop => {
                managers.counts.dropped += u64::from(held.is_some());
                managers.forget(&id);
            }
            PacketVerdict::Pass if core.is_undecided(&id) => {
                managers.keep(id, &packet);
                commands.extend(held.map(WorkerCommand::Release));
            }
            PacketVerdict::Pass => {
                if undecided && let Some(entry) = core.flow(&id) {
                    let label = entry.label().cloned();
                    let (flow, began_ns) = (entry.flow, entry.began_ns);
                    let new = NewFlow {
                        flow,
                        internal,
                        label,
                        began_ns,
                        expectation: announced.as_ref().map(|announced| &announced.expectation),
                        syns: begins,
                        now: Some(&packet),
                    };
                    managers.begin(new, around, commands);
                    if held.is_some() {
                        managers.settle_in(id, flow, &packet, commands);
                    }
                }
                managers.packet(id, &packet, held, taken, around, commands);
            }
        }
    }
}

/// The next records that are seen at once: before the end of a flow, and not too many bytes.
pub(super) fn part(seen: &mut Peekable<impl Iterator<Item = Seen>>) -> Vec<Seen> {
    let mut part: Vec<Seen> = seen.next().into_iter().collect();
    let mut bytes = 0;
    while let Some(one) = seen.next_if(|one| {
        bytes += one.packet.payload.len();
        bytes < MOST && !matches!(one.what, What::Ended(_))
    }) {
        part.push(one);
    }
    part
}
