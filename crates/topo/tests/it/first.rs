//! A network small enough to work out by hand.

use std::net::IpAddr;
use topo::*;

fn router(text: &str) -> RouterId {
    text.parse().unwrap()
}

fn link(weight: u32, bandwidth: f64) -> LinkProperties {
    LinkProperties { bandwidth, latency: 1.5, weight, congestion: 0.25, loss: 0.5 }
}

/// A square 1-2-4, 1-3-4 with equal weights, and two exits: 2 and 4.
fn square() -> Builder {
    let mut builder = Builder::new(Options::default());
    for last in 1..=4 {
        let id = router(&format!("10.0.0.{last}"));
        builder.apply(Feed(2), Change::Router { id, name: None }).unwrap();
    }
    for (from, to, bandwidth) in [(1, 2, 10.0), (2, 4, 5.0), (1, 3, 100.0), (3, 4, 100.0)] {
        for (from, to) in [(from, to), (to, from)] {
            let key = LinkKey {
                from: router(&format!("10.0.0.{from}")),
                to: router(&format!("10.0.0.{to}")),
                id: 0,
            };
            builder.apply(Feed(2), Change::Link { key, properties: link(1, bandwidth) }).unwrap();
        }
    }
    for (exit, as_distance) in [("10.0.0.2", 3), ("10.0.0.4", 2)] {
        builder
            .apply(
                Feed(3),
                Change::Route {
                    prefix: "198.51.100.0/24".parse().unwrap(),
                    exit: router(exit),
                    path: ExternalPath { as_distance, as_number: 64500 },
                },
            )
            .unwrap();
    }
    builder
        .apply(
            Feed(2),
            Change::Internal {
                prefix: "192.0.2.0/24".parse().unwrap(),
                router: router("10.0.0.1"),
            },
        )
        .unwrap();
    builder
}

#[test]
fn the_lower_router_of_two_equal_ways_is_taken() {
    let view = square().view();
    let source = view.source("192.0.2.7".parse::<IpAddr>().unwrap()).unwrap();
    let tree = view.tree(source);
    let path = tree.to(RouterIndex(3)).unwrap();
    assert_eq!((path.weight, path.internal_hops, path.min_bandwidth), (2, 2, 5.0));
    assert_eq!((path.latency, path.congestion, path.loss), (3.0, 0.25, 0.75));
}

#[test]
fn the_exit_is_the_one_chosen() {
    let mut builder = square();
    let view = builder.view();
    let group = view.group("198.51.100.9".parse().unwrap());
    let near = view.tree(RouterIndex(0)).properties(view.groups.get(group)).unwrap();
    assert_eq!((near.as_distance, near.internal_hops), (3, 1));
    builder.set_options(Options { exits: ExitChoice::ShortestAsPath, ..Options::default() });
    let view = builder.view();
    let short = view.tree(RouterIndex(0)).properties(view.groups.get(group)).unwrap();
    assert_eq!((short.as_distance, short.internal_hops), (2, 2));
}

#[test]
fn an_explicit_next_hop_overrides_and_a_circle_is_unreachable() {
    let mut builder = square();
    let hop = |at: &str, to: &str, via: &str| Change::NextHop {
        at: router(at),
        to: router(to),
        via: LinkKey { from: router(at), to: router(via), id: 0 },
    };
    builder.apply(Feed(2), hop("10.0.0.1", "10.0.0.4", "10.0.0.3")).unwrap();
    let view = builder.view();
    assert_eq!(view.tree(RouterIndex(0)).to(RouterIndex(3)).unwrap().min_bandwidth, 100.0);
    builder.apply(Feed(2), hop("10.0.0.3", "10.0.0.4", "10.0.0.1")).unwrap();
    let view = builder.view();
    assert_eq!(view.tree(RouterIndex(0)).to(RouterIndex(3)), None);
    assert!(view.tree(RouterIndex(1)).to(RouterIndex(3)).is_some());
    assert_eq!(view.graph.loops().len(), 1);
    assert_eq!(view.graph.loops()[0].routers, [RouterIndex(0), RouterIndex(2)]);
}

#[test]
fn a_route_is_found_with_its_origin_though_groups_do_not_tell_origins_apart() {
    let mut builder = square();
    let (exit, to) = (router("10.0.0.2"), "198.51.100.7".parse().unwrap());
    let prefix: IpNet = "198.51.100.0/25".parse().unwrap();
    let path = ExternalPath { as_distance: 5, as_number: 64511 };
    builder.apply(Feed(4), Change::Route { prefix, exit, path }).unwrap();
    let topology = builder.topology();
    assert_eq!(topology.route(exit, to), Some((prefix, path)));
    let (shorter, path) = topology.route(router("10.0.0.4"), to).unwrap();
    assert_eq!((shorter.to_string().as_str(), path.as_number), ("198.51.100.0/24", 64500));
    assert_eq!(topology.route(exit, "192.0.2.7".parse().unwrap()), None, "an internal network");
    assert_eq!(topology.route(exit, "2001:db8::7".parse().unwrap()), None);
}
