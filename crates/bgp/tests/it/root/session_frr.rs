//! The embedded session against FRR's bgpd in namespaces.

use super::common::{ANNOUNCED, LEAVING, LIMIT, PREFIXES, Pair, frr, session};
use bgp::{Advertised, Desired, State};
use serde_json::Value;
use testbed::{Frr, wait_until};

/// FRR's only path to a prefix.
fn path(router: &Frr, prefix: &str) -> Option<Value> {
    let family = if prefix.contains(':') { "ipv6" } else { "ipv4" };
    let text = router.query(&format!("show bgp {family} unicast {prefix} json")).ok()?;
    let mut route: Value = serde_json::from_str(&text).ok()?;
    let paths = route.get_mut("paths")?.as_array_mut()?;
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths.pop()
}

/// Waits until FRR has both prefixes, or neither.
fn wait_for_routes(router: &Frr, there: bool) {
    wait_until("the routes at FRR", LIMIT, || {
        PREFIXES.iter().all(|prefix| path(router, prefix).is_some() == there)
    })
    .unwrap();
}

#[test]
fn both_families_arrive_with_every_attribute_and_leave_again() {
    let pair = Pair::new();
    let router = pair.frr("");
    let node = pair.announce(&session(
        r#"
        communities = ["12:100", "no-export"]
        large_communities = ["4200000000:1:1"]
        prepend = 1
        med = 50
        "#,
    ));
    wait_for_routes(&router, true);
    for (prefix, hop) in PREFIXES.into_iter().zip(["172.16.0.30", "2001:db8:1::30"]) {
        let path = path(&router, prefix).unwrap();
        assert_eq!(path["aspath"]["string"], "12 12", "{path:#}");
        assert_eq!(path["origin"], "IGP");
        assert_eq!(path["metric"], 50);
        assert_eq!(path["community"]["string"], "12:100 no-export");
        assert_eq!(path["largeCommunity"]["string"], "4200000000:1:1");
        assert_eq!(path["nexthops"][0]["ip"], hop);
    }
    node.announcer().set(LEAVING);
    wait_until("GRACEFUL_SHUTDOWN", LIMIT, || {
        PREFIXES.iter().all(|prefix| {
            path(&router, prefix).is_some_and(|path| {
                path["community"]["string"]
                    .as_str()
                    .is_some_and(|text| text.contains("graceful-shutdown"))
            })
        })
    })
    .unwrap();
    node.announcer().set(Desired::Withdrawn);
    wait_for_routes(&router, false);
    node.until("no route advertised", |seen| seen.advertised == Advertised::Nothing);
    assert_eq!(node.announcer().observed().state, State::Established);
    // FRR asks for everything again (RFC 2918).
    node.announcer().set(ANNOUNCED);
    wait_for_routes(&router, true);
    let before = node.announcer().observed().counters.updates_out;
    router.query("clear bgp * soft in").unwrap();
    node.until("the routes sent again", |seen| seen.counters.updates_out >= before + 2);
    node.stop();
    wait_for_routes(&router, false);
}

#[test]
fn the_right_password_opens_the_session_and_the_wrong_one_does_not() {
    let pair = Pair::new();
    let secured = " neighbor 172.16.0.30 password right\n neighbor 172.16.0.30 passive";
    let router = pair.frr(secured);
    let node = pair.announce(&session(r#"password = "wrong""#));
    node.until("a failed attempt", |seen| {
        seen.problem.as_ref().is_some_and(|problem| problem.contains("does not answer"))
    });
    assert_eq!(node.announcer().observed().counters.established, 0);
    node.stop();
    let _node = pair.announce(&session(r#"password = "right""#));
    wait_for_routes(&router, true);
}

#[test]
fn ttl_security_is_agreed() {
    let pair = Pair::new();
    let secured = frr(" neighbor 172.16.0.30 ttl-security hops 1")
        .replace(" neighbor 172.16.0.30 disable-connected-check\n", "");
    let router = Frr::start(&pair.router, &secured).unwrap();
    let _node = pair.announce(&session("ttl_security = true"));
    wait_for_routes(&router, true);
}

#[test]
fn a_speaker_that_knows_small_as_numbers_only_sees_as_trans() {
    let pair = Pair::new();
    // Without capabilities the neighbour is a speaker of RFC 4271 alone: IPv4, AS numbers of two octets.
    let old = frr(" neighbor 172.16.0.30 dont-capability-negotiate")
        .replace("remote-as 12\n", "remote-as 4200000012\n");
    let router = Frr::start(&pair.router, &old).unwrap();
    let node =
        pair.announce(&session("prepend = 1").replace("local_as = 12", "local_as = 4200000012"));
    node.until("a part of the announcement", |seen| seen.advertised == Advertised::Partly);
    wait_until("the route at FRR", LIMIT, || path(&router, PREFIXES[0]).is_some()).unwrap();
    // FRR has seen our capability and so ignores AS4_PATH (RFC 6793 section 4.2.3), which the table of
    // messages covers; AS_TRANS shows that the path came in two octets a number and was read so.
    let path = path(&router, PREFIXES[0]).unwrap();
    assert_eq!(path["aspath"]["string"], "23456 23456", "{path:#}");
}
