//! The large test network of *The P2P-Oracle Server*: 216 routers in nine hubs (section 5.2 and figure 18).
//!
//! The figure is lost; its text gives the following, and all of it holds here. Each hub has 12 client,
//! 10 intermediate and 2 backbone routers. Primary links have weight 1; backup links have weight 2,
//! less bandwidth and more latency. Each router of a hub has at least two independent links to the
//! backbone routers. The hubs form a binary tree with one primary and one secondary line between a hub
//! and the next. A router's address is 10.hub.ring.router, rings counted from the outside. Each client
//! router has one 130.149.x.0/24; 130.149.221.0/24 is a second network at 10.1.0.1. Three routers are
//! exits, with 67,000 routes together.
//!
//! What the text leaves open is chosen like this:
//!
//! ```text
//!                     hub 1                    ring 2: backbone 1 and 2, joined
//!                   /       \                  ring 1: intermediates 1 to 10, the odd ones primarily
//!              hub 2         hub 3 (exit)              to backbone 1, the even ones to 2
//!             /     \        /    \            ring 0: client c primarily to intermediate c (11 and 12
//!          hub 4  hub 5   hub 6  hub 7                 to 1 and 2), its backup is the next one: always
//!         /    \  (exit)                               one odd and one even
//!     hub 8   hub 9
//!     (exit)
//! ```
//!
//! Hubs, rings and routers count: hubs from 1, rings from 0, routers from 1. Between hubs the primary
//! line joins the first backbone routers, the secondary line the second ones. Client networks are
//! numbered through the hubs, x from 1 to 108. The exits are the first backbone routers of hubs 3, 5
//! and 8: one, two and three hubs away from the source.

use super::{Line, Maker, Network, SEED_ROUTES, random_routes, router_at, seed_client};
use crate::value::RouterId;

const HUBS: u8 = 9;
const CLIENTS: u8 = 12;
const INTERMEDIATES: u8 = 10;
const BACKBONES: u8 = 2;
const EXITS: [u8; 3] = [3, 5, 8];

const BETWEEN_HUBS: Line = Line { bandwidth: 10_000.0, latency: 2.0, weight: 1 };
const BETWEEN_HUBS_BACKUP: Line = Line { bandwidth: 2_500.0, latency: 6.0, weight: 2 };
const BACKBONE: Line = Line { bandwidth: 10_000.0, latency: 0.5, weight: 1 };
const UPLINK: Line = Line { bandwidth: 1_000.0, latency: 1.0, weight: 1 };
const UPLINK_BACKUP: Line = Line { bandwidth: 100.0, latency: 4.0, weight: 2 };
const ACCESS: Line = Line { bandwidth: 100.0, latency: 1.0, weight: 1 };
const ACCESS_BACKUP: Line = Line { bandwidth: 10.0, latency: 5.0, weight: 2 };

fn client(hub: u8, number: u8) -> RouterId {
    router_at([10, hub, 0, number])
}

fn intermediate(hub: u8, number: u8) -> RouterId {
    router_at([10, hub, 1, number])
}

fn backbone(hub: u8, number: u8) -> RouterId {
    router_at([10, hub, 2, number])
}

/// The 216 routers with 67,000 routes.
pub fn hubs() -> Network {
    let mut maker = Maker::default();
    for hub in 1..=HUBS {
        for number in 1..=CLIENTS {
            maker.router(client(hub, number), format!("hub{hub}-client{number}"));
        }
        for number in 1..=INTERMEDIATES {
            maker.router(intermediate(hub, number), format!("hub{hub}-intermediate{number}"));
        }
        for number in 1..=BACKBONES {
            maker.router(backbone(hub, number), format!("hub{hub}-backbone{number}"));
        }
    }
    for hub in 1..=HUBS {
        for number in 1..=CLIENTS {
            let primary = (number - 1) % INTERMEDIATES + 1;
            let backup = number % INTERMEDIATES + 1;
            maker.link(client(hub, number), intermediate(hub, primary), ACCESS);
            maker.link(client(hub, number), intermediate(hub, backup), ACCESS_BACKUP);
        }
        for number in 1..=INTERMEDIATES {
            let primary = (number - 1) % BACKBONES + 1;
            let backup = number % BACKBONES + 1;
            maker.link(intermediate(hub, number), backbone(hub, primary), UPLINK);
            maker.link(intermediate(hub, number), backbone(hub, backup), UPLINK_BACKUP);
        }
        maker.link(backbone(hub, 1), backbone(hub, 2), BACKBONE);
        if hub > 1 {
            maker.link(backbone(hub, 1), backbone(hub / 2, 1), BETWEEN_HUBS);
            maker.link(backbone(hub, 2), backbone(hub / 2, 2), BETWEEN_HUBS_BACKUP);
        }
    }
    let mut clients = Vec::new();
    let routers = (1..=HUBS).flat_map(|hub| (1..=CLIENTS).map(move |number| client(hub, number)));
    for (x, router) in (1..).zip(routers) {
        clients.push(seed_client(x));
        maker.internal(seed_client(x), router);
    }
    let source = seed_client(221);
    maker.internal(source, client(1, 1));
    let exits = EXITS.map(|hub| backbone(hub, 1)).to_vec();
    let mut changes = maker.changes;
    changes.extend(random_routes(0, SEED_ROUTES, &exits));
    Network { changes, exits, clients, source }
}
