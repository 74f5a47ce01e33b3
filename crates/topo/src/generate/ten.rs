//! The small test network of *The P2P-Oracle Server*: ten routers (section 5.4 and figure 19).
//!
//! The figure is lost. Its text describes ten routers, three of them exits with the same external prefixes
//! as in the large network, all client networks at the two routers at the top, the client that asks at
//! the central router, and thicker lines with more bandwidth and less latency. It is drawn here so:
//!
//! ```text
//!      1 ======= 2        clients: odd x at 1, even x at 2
//!      | .     . |
//!      |   . .   |        ===  |   thick: 10,000 Mbit/s, 1 ms, weight 1
//!      3 ------- 4        ---  /   medium: 1,000 Mbit/s, 3 ms, weight 1
//!       \       /         . .      thin: 100 Mbit/s, 8 ms, weight 2
//!        \     /
//!          5              130.149.221.0/24, from where is asked
//!        /     \
//!       6 ----- 7
//!      | .     . |        6-8, 7-10 thick; 6-9, 7-9 thin
//!      8    9    10       exits
//! ```
//!
//! Router n is 10.0.0.n.

use super::{
    Line, Maker, Network, SEED_CLIENTS, SEED_ROUTES, random_routes, router_at, seed_client,
};
use crate::value::RouterId;

const THICK: Line = Line { bandwidth: 10_000.0, latency: 1.0, weight: 1 };
const MEDIUM: Line = Line { bandwidth: 1_000.0, latency: 3.0, weight: 1 };
const THIN: Line = Line { bandwidth: 100.0, latency: 8.0, weight: 2 };

const LINKS: [(u8, u8, Line); 15] = [
    (1, 2, THICK),
    (1, 3, THICK),
    (2, 4, THICK),
    (1, 4, THIN),
    (2, 3, THIN),
    (3, 4, MEDIUM),
    (3, 5, MEDIUM),
    (4, 5, MEDIUM),
    (5, 6, MEDIUM),
    (5, 7, MEDIUM),
    (6, 7, MEDIUM),
    (6, 8, THICK),
    (6, 9, THIN),
    (7, 9, THIN),
    (7, 10, THICK),
];

fn router(number: u8) -> RouterId {
    router_at([10, 0, 0, number])
}

/// The ten routers with the same 67,000 routes as [`hubs`](super::hubs()).
pub fn ten() -> Network {
    let mut maker = Maker::default();
    for number in 1..=10 {
        maker.router(router(number), format!("router{number}"));
    }
    for (a, b, line) in LINKS {
        maker.link(router(a), router(b), line);
    }
    let clients = (1..=SEED_CLIENTS).map(seed_client).collect();
    for x in 1..=SEED_CLIENTS {
        maker.internal(seed_client(x), router(if x % 2 == 1 { 1 } else { 2 }));
    }
    let source = seed_client(221);
    maker.internal(source, router(5));
    let exits = [8, 9, 10].map(router).to_vec();
    let mut changes = maker.changes;
    changes.extend(random_routes(0, SEED_ROUTES, &exits));
    Network { changes, exits, clients, source }
}
