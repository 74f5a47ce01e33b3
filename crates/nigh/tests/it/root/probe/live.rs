//! What a station measures is what the oracle of its node ranks by, also while a link is congested.

use super::stage::{BINARY, LIMIT, NAMES, Proof, Stage};
use serde_json::json;
use std::path::Path;
use testbed::{Namespace, Nigh, wait_until};

/// alfa has a link of its own to bravo, whose latency the file has wrong and the stations measure, and one of
/// 20 ms to carol.
const NETWORK: &str = r#"
[[router]]
id = "10.77.0.1"
[[router]]
id = "10.77.0.2"
[[router]]
id = "10.77.0.3"

[[link]]
from = "10.77.0.1"
to = "10.77.0.2"
latency = 1000
bandwidth = 1000
weight = 10
both = true

[[link]]
from = "10.77.0.1"
to = "10.77.0.3"
latency = 20
bandwidth = 1000
weight = 10
both = true

[[internal]]
prefix = "10.77.0.0/24"
router = "10.77.0.1"
[[internal]]
prefix = "10.2.0.0/16"
router = "10.77.0.2"
[[internal]]
prefix = "10.3.0.0/16"
router = "10.77.0.3"
"#;

const ALWAYS: &str = r#"
[[probe.test]]
name = "always"
what = "owd"
mesh = ["alfa", "bravo"]
interval = "1s"
rate = 20
"#;

const MEASURED: &str = r#"
[[probe.measured]]
station = "bravo"
from = "10.77.0.1"
to = "10.77.0.2"
both = true
"#;

const AT_BRAVO: &str = "10.2.0.1";
const AT_CAROL: &str = "10.3.0.1";

/// Asks the oracle of alfa.
fn rank(host: &Namespace) -> Option<Vec<String>> {
    let words = [BINARY, "oracle", "rank", "--json", "--server", "10.77.0.1", AT_CAROL, AT_BRAVO];
    let answer: serde_json::Value = serde_json::from_str(&host.check(&words).ok()?).ok()?;
    let list = answer["candidates"].as_array()?.iter();
    list.map(|candidate| candidate.as_str().map(str::to_owned)).collect()
}

#[test]
fn a_congested_link_is_ranked_by_what_stations_measure_of_it() {
    let mut stage = Stage::empty(2, Proof::SharedKey);
    let file = stage.file("network.toml");
    std::fs::write(&file, NETWORK).unwrap();
    let with_oracle = format!(
        "[oracle]\ncost = \"latency\"\n[oracle.topology]\nfile = \"{}\"\n{MEASURED}",
        file.display()
    );
    for (number, more) in [with_oracle.as_str(), ""].into_iter().enumerate() {
        let sections = stage.sections(number, ALWAYS) + more;
        let nigh = Nigh::start(&stage.places[number], Path::new(BINARY), NAMES[number], &sections);
        stage.stations.push(nigh.unwrap());
    }
    let Stage { places, stations, switch, .. } = &mut stage;
    let [here, there] = &mut stations[..] else { panic!("two were started") };
    let alfa = &places[0];
    let first = |what: &str, wanted: &str| {
        let so = || rank(alfa).is_some_and(|order| order[0] == wanted);
        if wait_until(what, LIMIT, so).is_err() {
            let links = here.control(&json!({"do": "oracle", "request": {"do": "links"}}));
            panic!("{what}: {:?} {links:?}\n{}", rank(alfa), here.wrote());
        }
    };
    first("bravo, which is nearer than the file says", AT_BRAVO);

    // A quarter of a megabit a second and a queue of half a second, and three times as much to send.
    let limit = "tc qdisc add dev port2 root tbf rate 256kbit burst 3kb latency 500ms";
    switch.check(&limit.split(' ').collect::<Vec<_>>()).unwrap();
    let load = ["ping", "-q", "-i", "0.01", "-s", "1000", "10.77.0.2"];
    let mut load = alfa.spawn(&load).unwrap();
    first("carol, for the link to bravo is congested", AT_CAROL);

    load.kill();
    first("bravo again", AT_BRAVO);

    there.process().kill();
    first("carol, for nobody measures the link to bravo any more", AT_CAROL);
}
