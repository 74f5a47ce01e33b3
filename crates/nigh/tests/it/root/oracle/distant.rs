//! Clients that are far away: the node and its client are joined by a lab, so that requests take their
//! time, get lost, and meet a link that is narrower than the others.

use super::stage::{BINARY, EAST, LIMIT, Stage, UNKNOWN, WEST};
use serde_json::Value;
use std::path::Path;
use testbed::{
    Lab, Namespace,
    lab::{host, row},
};

const NODE: &str = "198.18.0.2";

/// The client in 192.0.2.0/24, which the oracle knows, the node in 198.18.0.0/24, and a link with those
/// settings between their routers.
fn far_apart(settings: &str, more: &str) -> (Lab, Stage) {
    let (client, node) = (Namespace::new("client").unwrap(), Namespace::new("node").unwrap());
    let route = "default_route = true";
    let hosts = [
        host("client", &client, &["192.0.2.2/24"], route),
        host("node", &node, &[&format!("{NODE}/24")], route),
    ];
    let scene = row(["", ""], [settings], hosts);
    let lab = Lab::start(Path::new(BINARY), &scene).unwrap();
    (lab, Stage::between((client, node), more))
}

/// Runs `nigh oracle` in the client's namespace.
fn ask(stage: &Stage, words: &[&str]) -> testbed::Finished {
    stage.client.run(&[&[BINARY, "oracle"], words, &["--server", NODE]].concat(), LIMIT).unwrap()
}

/// 20 ms there and back, and a tenth of the requests lost: `ping` counts each lost one as lost and no
/// other, no reply comes sooner than it can, and `rank` asks again until it has its answer, which is right.
#[test]
fn what_a_long_and_lossy_way_loses_is_counted_and_asked_again() {
    let (lab, stage) = far_apart("delay = \"10ms\"", "");
    lab.ask(&["link", "r1>r2", "set", "loss=10%"]).unwrap();
    let lost = || {
        let status = lab.ask(&["status"]).unwrap();
        status["packets"]["ended"]["loss"].as_u64().unwrap_or(0)
    };
    let pinged = ask(&stage, &["ping", "-n", "100", "-i", "1ms", "-t", "2s", "--json"]);
    assert!(pinged.success(), "{}{}", pinged.stdout, pinged.stderr);
    let summary: Value = serde_json::from_str(pinged.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(summary["sent"], 100, "{summary}");
    assert_eq!(summary["errors"], 0, "{summary}");
    assert_eq!(summary["lost"].as_u64().unwrap(), lost(), "{summary}");
    // Three sigma of a binomial distribution.
    assert!((1..=19).contains(&lost()), "{summary}");
    assert!(summary["rtt_ms"]["min"].as_f64().unwrap() >= 20.0, "{summary}");

    let (before, mut asked) = (lost(), 0);
    while lost() < before + 3 {
        let ranked = ask(&stage, &["rank", "--json", "-t", "2s", UNKNOWN, EAST, WEST]);
        assert!(ranked.success(), "{}{}", ranked.stdout, ranked.stderr);
        let answer: Value = serde_json::from_str(&ranked.stdout).unwrap();
        assert_eq!(answer["candidates"], serde_json::json!([WEST, EAST, UNKNOWN]));
        asked += 1;
    }
    let queries = &stage.status()["queries"];
    assert_eq!(queries["received"], 100 - before + asked, "{queries}");
    assert_eq!(queries["replies"]["no_error"], queries["received"], "{queries}");
}

/// ALTO over HTTPS through a link of 1,280 bytes: the node learns the path's MTU from the router before
/// it, and the client gets all of a long answer.
#[test]
fn alto_finds_the_mtu_of_a_narrow_path() {
    let alto = format!("[oracle.alto]\nlisten = [\"{NODE}:6671\"]");
    let (lab, stage) = far_apart("delay = \"5ms\"\nmtu = 1280", &alto);
    // A list of many endpoints: the question and the answer are longer than any packet.
    let endpoints: Vec<_> =
        (0..400).map(|n| format!("\"ipv4:198.51.{}.{}\"", 100 + n / 250, 1 + n % 250)).collect();
    let question = format!(
        "{{\"cost-type\":{{\"cost-mode\":\"ordinal\",\"cost-metric\":\"routingcost\"}},\
          \"endpoints\":{{\"srcs\":[\"ipv4:192.0.2.2\"],\"dsts\":[{}]}}}}",
        endpoints.join(",")
    );
    let file = lab.folder().join("question");
    std::fs::write(&file, question).unwrap();
    let url = format!("https://{NODE}:6671/endpointcost/lookup");
    let body = format!("@{}", file.display());
    let kind = "Content-Type: application/alto-endpointcostparams+json";
    let words = ["curl", "-sS", "-k", "--max-time", "8", "-H", kind, "--data-binary", &body, &url];
    let answer: Value = serde_json::from_str(&stage.client.check(&words).unwrap()).unwrap();
    let costs = answer["endpoint-cost-map"]["ipv4:192.0.2.2"].as_object().unwrap();
    assert_eq!(costs.len(), 250, "of 198.51.100.0/24 something is known: {answer}");
    for (namespace, other) in [(&stage.node, "192.0.2.2"), (&stage.client, NODE)] {
        let learned = namespace.check(&["ip", "route", "get", other]).unwrap();
        assert!(learned.contains("mtu 1280"), "{learned}");
    }
    let ended = &lab.ask(&["status"]).unwrap()["packets"]["ended"];
    assert!(ended["too_big"].as_u64().unwrap() >= 2, "{ended}");
}
