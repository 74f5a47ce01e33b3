//! Packets that wait: until when, and what is done when there is no room or nothing comes.

use super::{Around, Id, Managers, Settling, Transfer, WorkerCommand};
use crate::{
    config::FileAction,
    event::TransferId,
    parser::contents::What,
    scan::clamd::{Failure, ScanResult},
};
use classify::{
    flow::{Flow, Side},
    packet::Packet,
};
use datapath::gate::{Held, Manage};
use std::collections::VecDeque;

/// How long a flow with waiting packets is silent before a verdict on what came is asked for; twice as
/// long after each, so many times at most.
const QUIET_NS: u64 = 100_000_000;
const QUIET_DOUBLES: u32 = 5;
/// Batches of packets for which a flow that was decided while its packets waited is held at most.
pub(super) const MAX_SETTLING: u8 = 8;
/// How long what is missing of a flow with waiting packets is waited for: twice a sender's first timeout.
const HOLE_NS: u64 = 2_000_000_000;

/// Where client and server begin if nothing came before this packet.
pub(super) fn begins(packet: &Packet<'_>) -> [u32; 2] {
    let [own, other] = packet.tcp.map_or([0; 2], |tcp| [tcp.sequence, tcp.acknowledgement]);
    if packet.from == Side::Client { [own, other] } else { [other, own] }
}

impl Managers {
    /// Whether any packet waits.
    pub(in crate::service) fn waits(&self) -> bool {
        !self.waiting.is_empty() || !self.settling.is_empty()
    }

    /// A flow that nobody manages was decided by a packet that waited: those behind it are held, too,
    /// until all that wait have gone on, so that none overtakes another.
    pub(in crate::service) fn settle_in(
        &mut self,
        id: Id,
        flow: Flow,
        packet: &Packet<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        if self.flows.contains_key(&id) {
            return;
        }
        let hold = |from| Manage { hold_from: Some(from), ..Manage::default() };
        commands.push(WorkerCommand::Manage(flow, begins(packet).map(hold)));
        self.settling.insert(id, Settling { flow, seen: true, batches: 0 });
    }

    /// A batch of packets was read: flows of which none was in it are no longer held.
    pub(in crate::service) fn settled(&mut self, commands: &mut Vec<WorkerCommand>) {
        self.settling.retain(|_, settling| {
            settling.batches += 1;
            let stays = std::mem::take(&mut settling.seen) && settling.batches < MAX_SETTLING;
            if !stays {
                commands.push(WorkerCommand::Manage(settling.flow, Default::default()));
            }
            stays
        });
    }

    /// Says what the kernel is to copy from here on, and releases what nothing holds any more.
    pub(super) fn settle(&mut self, id: &Id, commands: &mut Vec<WorkerCommand>) {
        let Some(managed) = self.flows.get_mut(id).filter(|managed| !managed.asks) else { return };
        let (hold_from, wanted) = managed.wants();
        if !managed.was_sent(&wanted) {
            managed.sent = wanted;
            commands.push(WorkerCommand::Manage(managed.flow, wanted));
        }
        let mut kept = VecDeque::new();
        for waiting in std::mem::take(&mut managed.waiting) {
            let is_read = waiting.number <= managed.now.held;
            let waits = match waiting.end.zip(hold_from[waiting.from as usize]) {
                Some((end, from)) => end.wrapping_sub(from).cast_signed() > 0,
                None => managed.now.waits.contains(&waiting.number),
            };
            if waits || !is_read {
                kept.push_back(waiting);
            } else {
                self.waiting_bytes -= waiting.held.bytes();
                commands.push(WorkerCommand::Release(waiting.held));
            }
        }
        if kept.is_empty() {
            self.waiting.remove(id);
        }
        managed.waiting = kept;
    }

    /// There is no room for a packet of a flow that waits: the flow is refused, or goes on without a
    /// verdict.
    pub(super) fn overloaded(
        &mut self,
        id: Id,
        held: Held,
        around: &Around<'_>,
        commands: &mut Vec<WorkerCommand>,
    ) {
        let Some(managed) = self.flows.get(&id) else {
            self.counts.dropped += 1;
            return;
        };
        let scanned = |(number, file): (&TransferId, &Transfer)| {
            (file.action == FileAction::Scan).then_some(*number)
        };
        let scanned: Vec<TransferId> = managed.transfers.iter().filter_map(scanned).collect();
        if scanned.is_empty() {
            self.unread(&id, around, commands);
        }
        for transfer in scanned {
            let verdict = ScanResult::Failed(Failure::Overloaded);
            self.verdict(id, transfer, 0, verdict, around, commands);
        }
        // A flow that is refused takes what waits with it.
        let Some(managed) = self.flows.get_mut(&id) else {
            self.counts.dropped += 1;
            return;
        };
        let waiting = std::mem::take(&mut managed.waiting);
        self.waiting.remove(&id);
        for held in waiting.into_iter().map(|waiting| waiting.held) {
            self.waiting_bytes -= held.bytes();
            commands.push(WorkerCommand::Release(held));
        }
        commands.push(WorkerCommand::Release(held));
    }

    /// Asks for verdicts on what came of flows that rest while packets wait, and no longer waits for
    /// what does not come.
    pub(in crate::service) fn rest(&mut self, now_ns: u64) {
        for id in &self.waiting {
            let Some(managed) = self.flows.get_mut(id) else { continue };
            let quiet_ns = QUIET_NS << managed.pauses.min(QUIET_DOUBLES);
            if !managed.asked && managed.seen_ns + quiet_ns < now_ns {
                managed.asked = true;
                self.reading.ask(managed.number, What::Pause);
            }
            if managed.moved_ns + HOLE_NS < now_ns {
                managed.moved_ns = now_ns;
                self.reading.ask(managed.number, What::GiveUp);
            }
        }
    }
}
