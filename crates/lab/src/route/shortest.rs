//! The shortest paths between two nodes, by searching from both (Dijkstra, bidirectional).
//!
//! Each search settles nodes in order of distance. When the next distances of both sum up to the length
//! of the best path seen, no shorter one can come, and every node where the searches met at that length
//! is on a shortest path. From these nodes the shortest paths are traced back to both ends: so all
//! nodes on all shortest paths are known with their distance to the destination, and the links from one
//! to another of them that make up that distance are the next hops.

use super::View;
use super::cache::{Cache, Hops};
use crate::NodeId;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a search from one end knows.
#[derive(Debug, Default)]
struct Side {
    distances: FxHashMap<NodeId, u64>,
    queue: BinaryHeap<Reverse<(u64, NodeId)>>,
}

impl Side {
    fn begin(&mut self, at: NodeId) {
        self.distances.clear();
        self.queue.clear();
        self.distances.insert(at, 0);
        self.queue.push(Reverse((0, at)));
    }

    /// The distance of the node that is settled next.
    fn top(&mut self) -> Option<u64> {
        while let Some(&Reverse((distance, node))) = self.queue.peek() {
            if self.distances.get(&node) == Some(&distance) {
                return Some(distance);
            }
            self.queue.pop();
        }
        None
    }
}

/// The searches. They keep their memory for the next time.
#[derive(Debug, Default)]
pub(super) struct Shortest {
    from: Side,
    to: Side,
    /// Where the searches met.
    met: Vec<NodeId>,
    /// Nodes on shortest paths, with their distance to the destination.
    on_path: FxHashMap<NodeId, u64>,
    todo: Vec<NodeId>,
}

impl Shortest {
    /// Finds the next hops at `from` and at all nodes on shortest paths to `to`.
    pub(super) fn search(&mut self, view: &View<'_>, from: NodeId, to: NodeId, cache: &mut Cache) {
        let Some(length) = self.meet(view, from, to) else {
            cache.insert(from, to, Hops::None);
            return;
        };
        self.trace(view, length);
        let mut links = Vec::new();
        for (&node, &distance) in self.on_path.iter().filter(|&(&node, _)| node != to) {
            links.clear();
            view.forward(node, |link, far, weight| {
                if self.on_path.get(&far).is_some_and(|&rest| rest + weight == distance) {
                    links.push(link);
                }
            });
            links.sort_unstable();
            cache.insert(node, to, Hops::new(&links));
        }
    }

    /// Searches from both ends until the length of the shortest paths is known.
    fn meet(&mut self, view: &View<'_>, from: NodeId, to: NodeId) -> Option<u64> {
        self.from.begin(from);
        self.to.begin(to);
        self.met.clear();
        let mut best = u64::MAX;
        while let (Some(near), Some(far)) = (self.from.top(), self.to.top()) {
            if near.saturating_add(far) >= best {
                break;
            }
            let forward = self.from.queue.len() <= self.to.queue.len();
            let (this, other, beyond) = if forward {
                (&mut self.from, &self.to, far)
            } else {
                (&mut self.to, &self.from, near)
            };
            let Some(Reverse((distance, node))) = this.queue.pop() else { break };
            let mut relax = |next: NodeId, weight: u64| {
                let sum = distance + weight;
                let rest = other.distances.get(&next);
                // What is settled is at most as far as what comes next, and exact.
                if sum + rest.copied().unwrap_or(beyond).min(beyond) > best {
                    return;
                }
                let known = this.distances.entry(next).or_insert(u64::MAX);
                if sum < *known {
                    *known = sum;
                    this.queue.push(Reverse((sum, next)));
                    if let Some(rest) = rest {
                        best = best.min(sum + rest);
                        self.met.push(next);
                    }
                }
            };
            if forward {
                view.forward(node, |_, next, weight| relax(next, weight));
            } else {
                view.back(node, &mut relax);
            }
        }
        (best < u64::MAX).then_some(best)
    }

    /// Finds all nodes on paths of that length, which is the shortest.
    fn trace(&mut self, view: &View<'_>, length: u64) {
        let Self { from, to, met, on_path, todo } = self;
        on_path.clear();
        met.retain(|node| match (from.distances.get(node), to.distances.get(node)) {
            (Some(near), Some(far)) => near + far == length,
            _ => false,
        });
        for node in &*met {
            on_path.insert(*node, to.distances[node]);
        }
        todo.clone_from(met);
        while let Some(node) = todo.pop() {
            let near = length - on_path[&node];
            view.back(node, |before, weight| {
                let exact = from.distances.get(&before).is_some_and(|&sum| sum + weight == near);
                if exact && on_path.insert(before, length - (near - weight)).is_none() {
                    todo.push(before);
                }
            });
        }
        todo.clone_from(met);
        while let Some(node) = todo.pop() {
            let rest = on_path[&node];
            view.forward(node, |_, next, weight| {
                let exact = to.distances.get(&next).is_some_and(|&sum| sum + weight == rest);
                if exact && on_path.insert(next, rest - weight).is_none() {
                    todo.push(next);
                }
            });
        }
    }

    /// How much memory the searches have taken.
    pub(super) fn bytes(&self) -> usize {
        let labels = self.from.distances.capacity() + self.to.distances.capacity();
        let queues = self.from.queue.capacity() + self.to.queue.capacity();
        let slot = size_of::<(NodeId, u64)>() + 1;
        (labels + self.on_path.capacity()) * 8 / 7 * slot
            + queues * size_of::<Reverse<(u64, NodeId)>>()
            + (self.met.capacity() + self.todo.capacity()) * size_of::<NodeId>()
    }
}
