//! `nigh run` at both sites of the ten-AS internet: who answers whom when a site dies, returns, is
//! drained or stopped. No figure is asserted, only the order of events and what may be lost.

use nix::sys::signal::Signal;
use serde_json::json;
use std::{path::Path, time::Duration};
use testbed::{
    LIMIT, Pings,
    dinr::{self, Enterprise, Internet, Mesh, Site, station_address},
    pings::lost,
    wait_until,
};

const BINARY: &str = env!("CARGO_BIN_EXE_nigh");
const FROM_A: u8 = dinr::TTL_AT_ENT_A[0];
const FROM_B: u8 = dinr::TTL_AT_ENT_A[1];

/// Both sites in service, without limit for a source.
fn sites(internet: &Internet) -> [Site<'_>; 2] {
    internet.converge(LIMIT).unwrap();
    let sites = dinr::SITES.map(|asn| Site::start(internet, asn, Path::new(BINARY)).unwrap());
    for (site, (enterprise, path)) in sites.iter().zip([(20, "4 12"), (21, "5 13")]) {
        for prefix in [dinr::PREFIX4, dinr::PREFIX6] {
            site.wait_for_path(internet, enterprise, prefix, path, LIMIT).unwrap();
        }
        site.ask(&json!({"do": "limit", "rate": 0})).unwrap();
    }
    sites
}

fn pings(internet: &Internet) -> Pings {
    Pings::start(internet.host(20), dinr::SERVICE4, Duration::from_millis(5)).unwrap()
}

/// Waits until a hundred replies in a row came from one site.
fn wait_for(pings: &Pings, ttl: u8) {
    wait_until(&format!("a hundred replies with TTL {ttl}"), LIMIT, || {
        let replies = pings.replies();
        replies.len() >= 100 && replies.iter().rev().take(100).all(|reply| reply.ttl == ttl)
    })
    .unwrap();
}

#[test]
fn a_killed_site_is_replaced_and_returns() {
    let internet = Internet::build().unwrap();
    let [mut site_a, site_b] = sites(&internet);
    let pings = pings(&internet);
    wait_for(&pings, FROM_A);
    let before = site_b.ledger().unwrap();
    site_a.nigh().process().signal(Signal::SIGKILL).unwrap();
    wait_for(&pings, FROM_B);
    let path = || internet.router(20).best_path(dinr::PREFIX4);
    assert_eq!(path().as_deref(), Some("4 2 1 3 5 13"));
    assert!(site_b.ledger().unwrap().since(&before).answered >= 100);

    site_a.restart().unwrap();
    site_a.ask(&json!({"do": "limit", "rate": 0})).unwrap();
    wait_for(&pings, FROM_A);
    assert_eq!(path().as_deref(), Some("4 12"));
    let order: Vec<u8> = pings.finish().unwrap().iter().map(|reply| reply.ttl).collect();
    let mut changes = order.clone();
    changes.dedup();
    assert_eq!(changes, [FROM_A, FROM_B, FROM_A]);
}

/// Real BIRD over wires of the lab: eBGP comes up, and every AS on the path adds what its wire takes.
#[test]
fn routers_of_ten_ases_talk_over_wires_of_the_lab() {
    let internet = Internet::through_lab(Path::new(BINARY), 10).unwrap();
    internet.converge(LIMIT).unwrap();
    let words = ["ping", "-n", "-c", "3", "-i", "0.2", dinr::CENTRAL4];
    let output = internet.host(21).check(&words).unwrap();
    // Seven routers, six wires in each direction.
    assert!(output.contains("ttl=57"), "{output}");
    let times = output.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next());
    let times: Vec<f64> = times.map(|time| time.parse().unwrap()).collect();
    assert!(times.len() == 3 && times.iter().all(|time| *time >= 120.0), "{output}");
    let lab = internet.lab().unwrap().pid().to_string();
    let words = ["lab", "link", "isp-a-central", "--lab", &lab, "set", "delay=50ms"];
    assert!(std::process::Command::new(BINARY).args(words).status().unwrap().success());
    let output = internet.host(21).check(&["ping", "-n", "-c", "1", dinr::CENTRAL4]).unwrap();
    let time = output.split_once("time=").unwrap().1.split(' ').next().unwrap();
    assert!(time.parse::<f64>().unwrap() >= 200.0, "{output}");
}

/// Waits until each enterprise's oracle has this site's station first.
fn wait_for_first(what: &str, enterprises: &mut [Enterprise<'_>; 2], wanted: [u32; 2]) {
    let [a, b] = dinr::SITES.map(station_address);
    let ranked = |enterprise: &Enterprise<'_>| enterprise.rank(&[&b, &a]);
    let so = || {
        let mut both = enterprises.iter().zip(wanted.map(station_address));
        both.all(|(one, first)| ranked(one).is_ok_and(|order| order[0] == first))
    };
    if wait_until(what, LIMIT, so).is_err() {
        let orders = enterprises.each_ref().map(ranked);
        panic!("{what}: {orders:?}\n{}", enterprises[0].nigh().wrote());
    }
}

/// Each enterprise's oracle ranks by what its station measures: the near site first, until the link to it
/// has become slow, and again when it is quick.
#[test]
fn enterprises_rank_sites_by_what_stations_measure() {
    let binary = Path::new(BINARY);
    let internet = Internet::through_lab(binary, 10).unwrap();
    internet.converge(LIMIT).unwrap();
    let mesh = Mesh::new().unwrap();
    let _sites = dinr::SITES
        .map(|asn| Site::start_with(&internet, asn, binary, &mesh.sections(asn)).unwrap());
    let mut enterprises =
        [20, 21].map(|asn| Enterprise::start(&internet, asn, &mesh, binary).unwrap());
    let enterprises = &mut enterprises;
    wait_for_first("the near site at each", enterprises, [12, 13]);
    // Two wires in each direction.
    let mut seen = None;
    wait_until("a record of what was measured", LIMIT, || {
        seen = enterprises[0].round_trip("dinr-a").ok().flatten();
        seen.is_some_and(|seen| seen.median.is_some())
    })
    .unwrap();
    assert!(seen.unwrap().median.unwrap() >= 40.0 && seen.unwrap().error.is_finite(), "{seen:?}");
    let lab = internet.lab().unwrap();
    lab.ask(&["link", "isp-a>dinr-a", "set", "delay=400ms"]).unwrap();
    wait_for_first("the other site, for the near one is far", enterprises, [13, 13]);
    lab.ask(&["link", "isp-a>dinr-a", "set", "delay=10ms"]).unwrap();
    wait_for_first("the near site again", enterprises, [12, 13]);
}

/// Beside the internet a line joins an enterprise and a site, which only certain addresses take.
#[test]
fn two_addresses_of_a_site_are_reached_over_two_paths() {
    let internet = Internet::through_lab(Path::new(BINARY), 10).unwrap();
    internet.converge(LIMIT).unwrap();
    let [pc, site] = dinr::ON_THE_LINE;
    let hops = |from: &str, to: &str| {
        let words = ["ping", "-n", "-c", "1", "-I", from, to];
        let answer = internet.host(20).check(&words).unwrap();
        let (_, after) = answer.split_once("ttl=").unwrap();
        64 - after.split(' ').next().unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(hops(&station_address(20), &station_address(12)), 3);
    assert_eq!(hops(pc, site), 2);
}

#[test]
fn a_drain_and_a_stop_lose_nothing() {
    let internet = Internet::build().unwrap();
    let [mut site_a, _site_b] = sites(&internet);
    let pings = pings(&internet);
    wait_for(&pings, FROM_A);
    site_a.drain().unwrap();
    wait_for(&pings, FROM_B);
    site_a.nigh().control(&json!({"do": "undrain"})).unwrap();
    wait_for(&pings, FROM_A);
    // SIGTERM drains by itself before the daemon ends.
    site_a.nigh().process().signal(Signal::SIGTERM).unwrap();
    wait_until("the end of nigh", LIMIT, || site_a.nigh().process().ended().is_some()).unwrap();
    wait_for(&pings, FROM_B);
    let replies = pings.finish().unwrap();
    let mut changes: Vec<u8> = replies.iter().map(|reply| reply.ttl).collect();
    changes.dedup();
    assert_eq!(changes, [FROM_A, FROM_B, FROM_A, FROM_B]);
    assert_eq!(lost(&replies), 0, "of {}", replies.len());
}
