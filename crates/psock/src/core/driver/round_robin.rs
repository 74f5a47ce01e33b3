//! Equal blocks to each connection in turn (the first driver of *Psock Parallel Socket Library*):
//! c = n * min(c_i).
//!
//! The table gets one item for each connection, in the order of their opening. The one whose turn it is
//! holds up all others, also while it stalls; only when it is closed are its turns dropped.

use super::{Driver, View};
use crate::core::{
    ConnectionId,
    schedule::{Item, Pick, Schedule},
};

/// The connections in the order of their turns.
#[derive(Default)]
pub(super) struct RoundRobin {
    order: Vec<ConnectionId>,
}

impl Driver for RoundRobin {
    fn opened(&mut self, id: ConnectionId) {
        self.order.push(id);
    }

    fn closed(&mut self, id: ConnectionId) {
        self.order.retain(|other| *other != id);
    }

    fn fill(&mut self, _: ConnectionId, _: &mut View<'_>, table: &mut Schedule) {
        if table.is_empty() {
            for connection in &self.order {
                table.put(Item { connection: *connection, pick: Pick::Head });
            }
        }
    }
}
