//! Programs that everybody has, through the lab.

use super::{TWO_HOSTS, lab};
use testbed::{
    Lab,
    lab::{HOSTS, row},
};

/// The round-trip times that ping shows, in milliseconds.
pub(super) fn times(output: &str) -> Vec<f64> {
    let times = output.lines().filter_map(|line| line.split_once("time=")?.1.split(' ').next());
    times.filter_map(|time| time.parse().ok()).collect()
}

#[test]
fn ping_sees_the_delay_of_both_ways() {
    let lab = lab(TWO_HOSTS);
    for (to, ttl) in [("30.0.0.10", "ttl=62"), ("2001:db8:30::10", "ttl=62")] {
        for size in ["56", "1400", "8000"] {
            let words = ["ping", "-c", "3", "-i", "0.1", "-s", size, to];
            let output = lab.check("pc", &words).unwrap();
            let times = times(&output);
            assert_eq!(times.len(), 3, "{output}");
            assert!(times.iter().all(|time| *time >= 20.0), "{output}");
            assert!(output.contains(ttl), "{output}");
        }
    }
}

#[test]
fn hosts_know_each_other_by_name() {
    let lab = lab(TWO_HOSTS);
    lab.check("pc", &["ping", "-4", "-c", "1", "server"]).unwrap();
    lab.check("server", &["ping", "-6", "-c", "1", "pc"]).unwrap();
}

/// Four routers in a row with 5 ms between them, and a host at each end; the link in the middle takes
/// packets of at most 1,280 bytes.
pub(super) fn chain() -> Lab {
    let delay = "delay = \"5ms\"";
    lab(&row([""; 4], [delay, "delay = \"5ms\"\nmtu = 1280", delay], HOSTS))
}

/// The addresses in the hops of `traceroute -n` and their first times in milliseconds.
fn hops(output: &str) -> Vec<(String, f64)> {
    let hop = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    output.lines().skip(1).filter_map(hop).collect()
}

#[test]
fn traceroute_sees_every_hop_after_its_time_by_udp_icmp_and_tcp() {
    let lab = chain();
    let _server = lab.spawn("server", &["python3", "-m", "http.server", "80"]).unwrap();
    // Hosts are Linux: a server says six times at once that a port is closed, then once a second.
    let limits =
        "echo 0 > /proc/sys/net/ipv4/icmp_ratelimit; echo 0 > /proc/sys/net/ipv6/icmp/ratelimit";
    lab.check("server", &["sh", "-c", limits]).unwrap();
    for family in ["-4", "-6"] {
        for mode in [&["-U"][..], &["-I"], &["-T", "-p", "80"], &[]] {
            let mut words = vec!["traceroute", "-n", family, "-q", "1", "-w", "20"];
            words.extend(mode);
            words.push("server");
            let output = lab.check("pc", &words).unwrap();
            let hops = hops(&output);
            assert_eq!(hops.len(), 5, "{words:?}: {output}");
            let ends = if family == "-4" { "30.0.0.10" } else { "2001:db8:30::10" };
            assert_eq!(hops[4].0, ends, "{words:?}: {output}");
            for (number, (_, time)) in hops.iter().enumerate() {
                // The first router is on the host's own link, the server on the last one's.
                let least = 10.0 * number.min(3) as f64;
                assert!(*time >= least, "{words:?}: {output}");
            }
        }
    }
}

#[test]
fn mtr_loses_nothing_on_the_way() {
    let lab = chain();
    for family in ["-4", "-6"] {
        let words = ["mtr", family, "-n", "-c", "3", "-i", "0.3", "--json", "server"];
        let report: serde_json::Value =
            serde_json::from_str(&lab.check("pc", &words).unwrap()).unwrap();
        let hubs = report["report"]["hubs"].as_array().unwrap();
        assert_eq!(hubs.len(), 5, "{report}");
        assert!(hubs.iter().all(|hub| hub["Loss%"] == 0.0), "{report}");
    }
}

#[test]
fn large_pings_are_fragmented_or_get_the_mtu() {
    let lab = chain();
    let ping = |words: &[&str]| {
        let words = [&["ping", "-c", "3", "-i", "0.2"], words].concat();
        lab.run("pc", &words, super::LIMIT).unwrap()
    };
    // IPv4 is fragmented on the way where it may be.
    assert!(ping(&["-M", "dont", "-s", "4000", "30.0.0.10"]).stdout.contains("3 received"));
    // Where it may not, the router before the link says so, with the MTU of the link.
    let output = ping(&["-M", "do", "-s", "1400", "30.0.0.10"]);
    assert!(output.stdout.contains("Frag needed and DF set (mtu = 1280)"), "{output:?}");
    let output = ping(&["-M", "do", "-s", "1400", "2001:db8:30::10"]);
    assert!(output.stdout.contains("Packet too big: mtu=1280"), "{output:?}");
    // Hosts of IPv6 learn it and fragment themselves.
    assert!(!ping(&["-s", "1400", "2001:db8:30::10"]).stdout.contains(" 0 received"));
}

#[test]
fn tcp_finds_the_mtu_of_the_path_and_curl_gets_its_file() {
    let lab = chain();
    let body: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(lab.folder().join("file"), &body).unwrap();
    let folder = lab.folder().to_str().unwrap();
    let words = ["python3", "-m", "http.server", "-b", "::", "-d", folder, "80"];
    let _server = lab.spawn("server", &words).unwrap();
    testbed::wait_until("the HTTP server", super::LIMIT, || {
        lab.check("server", &["ss", "-tln"]).unwrap().contains(":80 ")
    })
    .unwrap();
    for (family, address) in [("-4", "30.0.0.10"), ("-6", "2001:db8:30::10")] {
        let copy = format!("{folder}/copy{family}");
        let words = ["curl", "-sS", family, "-o", &copy, "http://server/file"];
        lab.check("pc", &words).unwrap();
        assert!(std::fs::read(&copy).unwrap() == body, "{family}: not the same bytes");
        let upload = ["ip", "route", "get", "20.0.0.10"];
        let upload =
            if family == "-4" { upload } else { ["ip", "route", "get", "2001:db8:20::10"] };
        let learned = lab.check("server", &upload).unwrap();
        assert!(learned.contains("mtu 1280"), "{address}: {learned}");
    }
}

#[test]
fn iperf3_measures_tcp_and_udp() {
    let lab = lab(TWO_HOSTS);
    let _server = lab.spawn("server", &["iperf3", "-s"]).unwrap();
    testbed::wait_until("iperf3", super::LIMIT, || {
        lab.check("server", &["ss", "-tln"]).unwrap().contains(":5201")
    })
    .unwrap();
    for family in ["-4", "-6"] {
        let tcp = ["iperf3", "-J", family, "-c", "server", "-n", "20M"];
        let udp = ["iperf3", "-J", family, "-u", "-b", "10M", "-t", "1", "-c", "server"];
        let report = |words: &[&str]| {
            let report: serde_json::Value =
                serde_json::from_str(&lab.check("pc", words).unwrap()).unwrap();
            assert!(report["error"].is_null(), "{report}");
            report["end"].clone()
        };
        let received = report(&tcp)["sum_received"]["bytes"].as_f64().unwrap();
        assert!(received > 1e6, "{family}: {received} bytes");
        // What the sender counts says nothing of what came.
        let sum = &report(&udp)["sum"];
        let count = |key: &str| sum[key].as_f64().unwrap();
        assert_eq!(count("lost_packets"), 0.0, "{sum}");
        assert!(count("packets") > 0.0 && count("bytes") > 1e6, "{sum}");
    }
}
