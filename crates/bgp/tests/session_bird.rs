//! The embedded session against BIRD 2 in namespaces.

mod common;

use bgp::{Advertised, Desired, State};
use common::{LIMIT, PREFIXES, Pair, bird, session};
use testbed::{Bird, wait_until};

/// What BIRD knows of a prefix, every attribute.
fn route(bird: &Bird, prefix: &str) -> String {
    bird.query(&format!("show route {prefix} all")).unwrap_or_default()
}

#[test]
fn both_families_arrive_with_every_attribute_over_one_session() {
    if !testbed::require_root() {
        return;
    }
    let pair = Pair::new();
    let router = Bird::start(&pair.router, &bird("")).unwrap();
    let node = pair.start(&session(
        r#"
        communities = ["12:100", "no-export", "12:99"]
        large_communities = ["4200000000:1:1"]
        prepend = 2
        med = 50
        "#,
    ));
    node.until("an established session", |seen| seen.state == State::Established);
    assert_eq!(node.announcer().observed().advertised, Advertised::Nothing);
    node.announcer().set(Desired::Announced { graceful_shutdown: false });
    node.until("the announcement", |seen| {
        seen.advertised == Advertised::All { graceful_shutdown: false }
    });
    for (prefix, hop) in PREFIXES.into_iter().zip(["172.16.0.30", "2001:db8:1::30"]) {
        wait_until(prefix, LIMIT, || route(&router, prefix).contains(prefix)).unwrap();
        let route = route(&router, prefix);
        for line in [
            "BGP.origin: IGP",
            "BGP.as_path: 12 12 12",
            &format!("BGP.next_hop: {hop}"),
            "BGP.med: 50",
            "BGP.community: (12,99) (12,100) (65535,65281)",
            "BGP.large_community: (4200000000, 1, 1)",
        ] {
            assert!(route.contains(line), "{line} in {route}");
        }
    }
}
