//! Blocks go where there is room (the second driver of *Psock Parallel Socket Library*):
//! whoever can be written gets the next block.

use super::{Driver, View};
use crate::core::{
    ConnectionId,
    schedule::{Item, Pick, Schedule},
};

/// The connection that asks is the next one.
#[derive(Default)]
pub(super) struct PollAll;

impl Driver for PollAll {
    fn opened(&mut self, _: ConnectionId) {}

    fn closed(&mut self, _: ConnectionId) {}

    fn fill(&mut self, asked: ConnectionId, view: &mut View<'_>, table: &mut Schedule) {
        if let Some(head) = view.sender.head() {
            table.put(Item { connection: asked, pick: Pick::Free(head.number) });
        }
    }
}
