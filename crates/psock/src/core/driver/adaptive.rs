//! Blocks go where they arrive in time.
//!
//! The stream goes over the fastest connections. A slower one gets a block from so far ahead in the
//! stream that it arrives when the faster ones have brought the stream there:
//!
//! ```text
//!             head                       lead
//! stream  ....|--------------------------|----->  bytes that wait
//!             fastest connection         a slower one, whose block takes longer by `lead` bytes of
//!             takes the next block       the faster ones' rate
//! ```
//!
//! So nothing has to wait at the receiver, and if fewer bytes wait than that, the slower connection gets
//! nothing: the faster ones are done before it would be. What the estimates get wrong is made good as soon
//! as it shows. When the stream comes to a block that a slower connection still has, and another can bring
//! it clearly sooner, it is sent again; and when a connection stalls, all its blocks are free for others.
//! The stream is therefore never much later than over the fastest connection alone, which sends whatever
//! is not there in time as if it had never been given away.
//!
//! The bytes in flight on a connection are kept near what fills its path ([`Path`]), which keeps its
//! delay and what is lost with it small.

use super::{Driver, View};
use crate::core::{
    ConnectionId, Connections,
    estimate::bytes_in,
    path::Path,
    schedule::{Item, Pick, Schedule},
    sender::{Sender, Waiting},
};

/// How often a connection that waits is asked again while estimates change only by time going by.
const POLL_NS: u64 = 5_000_000;
/// A block is sent again beside other work only if that brings it sooner by more than this and the time
/// of a block on the connection that would send it.
const CLEARLY_NS: u64 = 10_000_000;
/// A block is sent again by a connection that has nothing else to do if that brings it sooner by this.
const SOONER_NS: u64 = 2_000_000;

/// The state beside that of the paths.
#[derive(Default)]
pub(super) struct Adaptive {
    /// When connections that wait are to be asked again.
    poll_ns: Option<u64>,
}

impl Driver for Adaptive {
    fn opened(&mut self, _: ConnectionId) {}

    fn closed(&mut self, _: ConnectionId) {}

    fn fill(&mut self, asked: ConnectionId, view: &mut View<'_>, table: &mut Schedule) {
        if let Some(pick) = self.pick(asked, view) {
            table.put(Item { connection: asked, pick });
        }
    }

    fn tick(&mut self, view: &mut View<'_>) {
        if self.poll_ns.is_some_and(|at| at <= view.now_ns) {
            self.poll_ns = None;
        }
        for (id, connection) in view.connections.iter_mut() {
            let path = &mut connection.path;
            let stalled = path.is_stalled(view.now_ns);
            if stalled != path.released {
                path.released = stalled;
                for number in path.carried() {
                    view.sender.release(number, *id, stalled);
                }
            }
        }
    }

    fn wake_at(&self, connections: &Connections) -> Option<u64> {
        let paths = connections.values().map(|connection| &connection.path);
        let stalls = paths.filter(|path| !path.released).filter_map(Path::stalls_at);
        stalls.chain(self.poll_ns).min()
    }
}

impl Adaptive {
    fn pick(&mut self, asked: ConnectionId, view: &mut View<'_>) -> Option<Pick> {
        let View { sender, connections, now_ns } = &*view;
        let path = &connections.get(&asked)?.path;
        let bytes = sender.block_bytes();
        if path.is_stalled(*now_ns) || !path.has_room(bytes) {
            return None;
        }
        let mine_ns = path.until_there(bytes, *now_ns);
        let head = sender.head();
        let faster = Faster::than(asked, mine_ns, view);
        let fresh = head.and_then(|head| match faster {
            Faster { send_bytes: 0, .. } => Some(head.number),
            // The window would be full before the block is there, and the faster ones would stand still.
            Faster { send_bytes, .. } if head.offset + send_bytes + bytes > sender.limit() => None,
            Faster { lead_bytes: 0, .. } => Some(head.number),
            Faster { lead_bytes, .. } => sender.ahead(head.offset + lead_bytes),
        });
        let again = sender.waiting().filter(|waiting| {
            // What waits before it comes first.
            head.is_none_or(|head| waiting.offset < head.offset)
                && is_late(waiting, asked, mine_ns, fresh.is_none(), connections, *now_ns)
        });
        let pick = match (again, fresh) {
            (Some(waiting), _) => Some(Pick::Again(waiting.number)),
            (None, Some(number)) => Some(Pick::Free(number)),
            (None, None) => None,
        };
        if pick.is_none() {
            if view.connections.len() > 1 && has_work(view.sender) {
                self.poll_ns = self.poll_ns.or(Some(view.now_ns + POLL_NS));
            }
            if let Some(connection) = view.connections.get_mut(&asked) {
                connection.path.starve(view.now_ns);
            }
        }
        pick
    }
}

fn has_work(sender: &Sender) -> bool {
    sender.head().is_some() || sender.waiting().is_some()
}

/// What the faster connections do while `asked` brings one block.
struct Faster {
    /// They bring the stream so much further before the block is there.
    lead_bytes: u64,
    /// They send so much until then.
    send_bytes: u64,
}

impl Faster {
    fn than(asked: ConnectionId, mine_ns: u64, view: &View<'_>) -> Self {
        let (bytes, now_ns) = (view.sender.block_bytes(), view.now_ns);
        let mut faster = Self { lead_bytes: 0, send_bytes: 0 };
        for (id, connection) in view.connections.iter() {
            let path = &connection.path;
            let sooner_ns = mine_ns.saturating_sub(path.until_there(bytes, now_ns));
            if *id != asked && sooner_ns > 0 && !path.is_stalled(now_ns) {
                faster.lead_bytes += bytes_in(path.rate(), sooner_ns);
                faster.send_bytes += bytes_in(path.rate(), mine_ns);
            }
        }
        // A difference of one block is none: estimates are not as good as that.
        faster.lead_bytes = faster.lead_bytes.saturating_sub(bytes);
        faster
    }
}

/// Whether `asked`, which would take `mine_ns`, should send a block that another connection has.
fn is_late(
    waiting: &Waiting,
    asked: ConnectionId,
    mine_ns: u64,
    nothing_else: bool,
    connections: &Connections,
    now_ns: u64,
) -> bool {
    let Some(carrier) = connections.get(&waiting.carrier) else { return false };
    if waiting.carrier == asked {
        return false;
    }
    let theirs_ns = carrier.path.until_carried(waiting.end, waiting.handed_ns, now_ns);
    let margin_ns = if nothing_else {
        SOONER_NS + mine_ns / 4
    } else {
        CLEARLY_NS + mine_ns + carrier.path.variation_ns()
    };
    theirs_ns > mine_ns + margin_ns
}
