//! The ten-AS internet shows what the paper saw, with plain BIRD and the kernel at the sites.

use std::time::Duration;
use testbed::{
    Bird, Namespace,
    dinr::{self, Internet},
    wait_until,
};

fn hops(from: &Namespace, to: &str) -> Vec<String> {
    let answer = from.check(&["traceroute", "-I", "-n", "-q", "1", "-w", "20", to]).unwrap();
    let hop = |line: &str| line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    answer.lines().skip(1).map(hop).collect()
}

#[test]
fn each_pc_reaches_the_near_site() {
    let internet = Internet::build().unwrap();
    internet.converge(Duration::from_secs(30)).unwrap();
    let _stand_ins: Vec<Bird> = dinr::SITES
        .map(|asn| {
            let host = internet.service(asn);
            for address in [dinr::SERVICE4, dinr::SERVICE6] {
                host.check(&["ip", "address", "add", address, "dev", "lo"]).unwrap();
            }
            Bird::start(host, &dinr::stand_in(asn)).unwrap()
        })
        .into();

    let paths = [(20, "4 12"), (21, "5 13")];
    for (asn, path) in paths {
        for prefix in [dinr::PREFIX4, dinr::PREFIX6] {
            let router = internet.router(asn);
            wait_until(&format!("{path} at AS {asn}"), Duration::from_secs(20), || {
                router.best_path(prefix).as_deref() == Some(path)
            })
            .unwrap();
        }
    }
    wait_until("both paths at ISP_Z", Duration::from_secs(20), || {
        let routes = internet.router(1).routes(dinr::Family::V4).unwrap();
        let mut service: Vec<_> =
            routes.into_iter().filter(|route| route.prefix == dinr::PREFIX4).collect();
        service.sort_by(|one, other| one.path.cmp(&other.path));
        let paths: Vec<_> = service.iter().map(|route| route.path.as_str()).collect();
        paths == ["2 4 12", "3 5 13"] && service.iter().filter(|route| route.best).count() == 1
    })
    .unwrap();

    let (pc_a, pc_b) = (internet.host(20), internet.host(21));
    assert_eq!(
        hops(pc_a, dinr::SERVICE4),
        ["20.0.0.1", "172.16.0.17", "172.16.0.30", "50.50.50.50"]
    );
    assert_eq!(
        hops(pc_b, dinr::SERVICE4),
        ["21.0.0.1", "172.16.0.21", "172.16.0.34", "50.50.50.50"]
    );
    assert_eq!(
        hops(pc_b, dinr::CENTRAL4),
        [
            "21.0.0.1",
            "172.16.0.21",
            "172.16.0.9",
            "172.16.0.5",
            "172.16.0.2",
            "172.16.0.14",
            "172.16.0.26",
            "11.0.0.10"
        ]
    );
    assert_eq!(
        hops(pc_a, dinr::SERVICE6),
        ["2001:db8:20::1", "2001:db8:ffff:16::17", "2001:db8:ffff:28::30", "2001:db8:50::50"]
    );
    assert_eq!(hops(pc_b, dinr::CENTRAL6).len(), 8);
}
