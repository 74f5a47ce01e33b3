//! Routing settings of scenes: which paths are best, whether flows are spread, whether
//! super-packets cross whole, and where the network comes from.

use super::{LIMIT, TWO_HOSTS, binary, lab, using::ask};
use std::process::Command;
use testbed::{Lab, wait_until};

/// Two customers of one provider who also both peer with a third network; over that it is shorter, but
/// nobody carries what goes from one of his peers to the other.
const BUSINESS: &str = r#"
[[node]]
name = "a"
[[node]]
name = "b"
[[node]]
name = "peer"
[[node]]
name = "provider"

[[link]]
between = ["a", "peer"]
relation = "peer"
[[link]]
between = ["peer", "b"]
relation = "peer"
[[link]]
between = ["a", "provider"]
relation = "provider"
weight = 10
[[link]]
between = ["provider", "b"]
relation = "customer"
weight = 10

[[host]]
name = "pc"
attach = "a"
address = ["20.0.0.10/24", "2001:db8:20::10/64"]
[[host]]
name = "server"
attach = "b"
address = ["30.0.0.10/24", "2001:db8:30::10/64"]
"#;

/// The names of the nodes on the path from pc to an address.
fn nodes(lab: &mut Lab, to: &str) -> Vec<String> {
    let path = ask(lab, &["path", "pc", to]);
    assert!(path["stopped"].is_null(), "{path}");
    let hops = path["hops"].as_array().unwrap();
    hops.iter().map(|hop| hop["node"].as_str().unwrap().to_owned()).collect()
}

/// The addresses of the nodes on the path from pc to an address.
pub(super) fn addresses(lab: &mut Lab, to: &str) -> Vec<String> {
    let path = ask(lab, &["path", "pc", to]);
    let hops = path["hops"].as_array().unwrap();
    hops.iter().map(|hop| hop["address"].as_str().unwrap().to_owned()).collect()
}

/// The addresses that answer `traceroute -n`, the destination's last.
fn traceroute(lab: &Lab, to: &str) -> Vec<String> {
    let family = if to.contains(':') { "-6" } else { "-4" };
    // One probe at a time: a host reports only six times at once that a port is closed.
    let words = ["traceroute", "-n", family, "-q", "1", "-N", "1", "-w", "20", to];
    let output = lab.check("pc", &words).unwrap();
    let hops = output.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    hops.map(str::to_owned).collect()
}

#[test]
fn paths_follow_relations_where_there_are_any_unless_the_scene_overrides_it() {
    let (long, short) = (["a", "provider", "b"], ["a", "peer", "b"]);
    let without: String = BUSINESS
        .lines()
        .filter(|line| !line.contains("relation"))
        .map(|l| l.to_owned() + "\n")
        .collect();
    for (scene, right) in [
        (BUSINESS.to_owned(), long),
        (format!("[lab]\nrouting = \"valley-free\"\n{BUSINESS}"), long),
        (format!("[lab]\nrouting = \"shortest\"\n{BUSINESS}"), short),
        (without, short),
    ] {
        let mut lab = lab(&scene);
        for to in ["30.0.0.10", "2001:db8:30::10"] {
            assert_eq!(nodes(&mut lab, to), right, "{scene}");
            let path = addresses(&mut lab, to);
            let went = traceroute(&lab, to);
            assert_eq!(went, [&path[..], &[to.to_owned()]].concat(), "{scene}");
        }
    }
}

/// Two equal-cost paths: `ecmp` spreads traceroute's flows, one to a port, over both.
#[test]
fn flows_are_spread_where_the_scene_wants_it() {
    let scene = BUSINESS
        .lines()
        .filter(|line| !line.contains("relation") && !line.contains("weight"))
        .fold(String::new(), |text, line| text + line + "\n");
    for ecmp in [true, false] {
        let mut lab = lab(&format!("[lab]\necmp = {ecmp}\n{scene}"));
        let path = ask(&mut lab, &["path", "pc", "server"]);
        assert_eq!(path["ecmp"], ecmp, "{path}");
        let shown = addresses(&mut lab, "server")[1].clone();
        // 40 flows: with two paths, the same for all once in 2^39 times.
        let words = ["traceroute", "-n", "-q", "10", "-w", "20", "-f", "2", "-m", "2", "30.0.0.10"];
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..4 {
            let output = lab.check("pc", &words).unwrap();
            let words = output.lines().skip(1).flat_map(str::split_whitespace);
            let hops = words.filter(|word| word.parse::<std::net::IpAddr>().is_ok());
            seen.extend(hops.map(str::to_owned));
        }
        assert_eq!(seen.len(), if ecmp { 2 } else { 1 }, "{seen:?}");
        assert!(seen.contains(&shown), "{shown} is not among {seen:?}");
    }
}

#[test]
fn super_packets_are_split_at_the_first_router_where_the_scene_wants_exactness() {
    for gso in [true, false] {
        let mut lab = lab(&TWO_HOSTS.replace("seed = 7", &format!("seed = 7\ngso = {gso}")));
        let _server = lab.spawn("server", &["iperf3", "-s"]).unwrap();
        wait_until("iperf3", LIMIT, || {
            lab.check("server", &["ss", "-tln"]).unwrap().contains(":5201")
        })
        .unwrap();
        lab.check("pc", &["iperf3", "-c", "server", "-n", "10M"]).unwrap();
        let status = ask(&mut lab, &["status"]);
        let packets = &status["packets"];
        let segments = packets["made"]["segment"].as_u64().unwrap_or(0);
        // 10 MB in segments of 1,448 bytes are some 7,000.
        assert_eq!(segments > 5_000, !gso, "{status}");
        assert_eq!(segments > 0, !gso, "{status}");
        let links = ask(&mut lab, &["links"]);
        let bytes: u64 = links["links"]
            .as_array()
            .unwrap()
            .iter()
            .map(|link| link["bytes"].as_u64().unwrap() / link["packets"].as_u64().unwrap())
            .max()
            .unwrap();
        assert_eq!(bytes > 1_500, gso, "a mean of {bytes} bytes: {links}");
    }
}

/// A generated internet: its relations choose the paths, and traceroute sees what `path` shows.
#[test]
fn a_scene_takes_its_network_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("internet.nigh");
    let output = Command::new(binary())
        .args(["lab", "gen", "--nodes", "300", "--seed", "7"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let scene = |routing: &str| {
        format!(
            "[lab]\nnetwork = \"{}\"\n{routing}\n\
             [[host]]\nname = \"pc\"\nattach = \"as10\"\naddress = \"2a00:a::10/48\"\n\
             [[host]]\nname = \"server\"\nattach = \"as60\"\naddress = \"2a00:3c::10/48\"\n",
            file.display()
        )
    };
    let [free, configured, shortest] = ["", "routing = \"valley-free\"", "routing = \"shortest\""]
        .map(|routing| {
            let mut lab = lab(&scene(routing));
            let path = addresses(&mut lab, "server");
            assert!(path.len() > 2, "{path:?}");
            let went = traceroute(&lab, "2a00:3c::10");
            assert_eq!(went, [&path[..], &["2a00:3c::10".to_owned()]].concat());
            path
        });
    assert_eq!(free, configured);
    assert_ne!(free, shortest, "choose other hosts: here both are the same");
}
