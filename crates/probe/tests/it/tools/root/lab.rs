//! Paths through simulated networks: who answers, who does not, and what links take and lose.

use super::{anywhere, wait};
use probe::{
    record::{Hop, Trace},
    tools::{Refusal, pmtu, trace},
};
use std::{net::IpAddr, time::Duration};
use testbed::{
    Lab,
    lab::{HOSTS, row},
};

/// Runs a scene.
pub(super) fn lab(scene: &str) -> Lab {
    Lab::start(&testbed::lab::binary().unwrap(), scene).unwrap()
}

/// Three routers in a row; the last link is narrower than the others, and the second router lets nothing
/// pass to one network behind the third.
fn three() -> Lab {
    lab(&row(
        [
            "",
            r#"prohibit = ["40.0.0.0/24", "2001:db8:40::/64"]"#,
            r#"prefix = ["40.0.0.0/24", "2001:db8:40::/64", "50.0.0.0/24"]"#,
        ],
        ["delay = \"5ms\"", "mtu = 1400"],
        HOSTS,
    ))
}

/// Two equal-cost paths with nothing in common but their ends.
const TWO_WAYS: &str = r#"
node = [
    { name = "in" }, { name = "out" },
    { name = "a1" }, { name = "a2" }, { name = "b1" }, { name = "b2" },
]
link = [
    { between = ["in", "a1"] }, { between = ["a1", "a2"] }, { between = ["a2", "out"] },
    { between = ["in", "b1"] }, { between = ["b1", "b2"] }, { between = ["b2", "out"] },
]
host = [
    { name = "pc", attach = "in", address = "20.0.0.10/24" },
    { name = "server", attach = "out", address = "30.0.0.10/24" },
]

[lab]
ecmp = true
"#;

/// Traces from the host pc.
fn traced(lab: &Lab, to: &str, settings: &trace::Settings) -> Trace {
    let context = anywhere();
    let run = trace::run(to.parse().unwrap(), settings, &context);
    let trace = lab.enter("pc", || wait(run)).unwrap().unwrap();
    assert_eq!(context.counters.refused(Refusal::Icmp), 0);
    trace
}

fn addresses(hops: &[Hop]) -> Vec<String> {
    let text = |hop: &Hop| hop.address.map_or("*".to_owned(), |address| address.to_string());
    hops.iter().map(text).collect()
}

/// The addresses with which the routers between pc and an address answer, as the lab knows them.
fn routers(lab: &Lab, to: &str) -> Vec<String> {
    let path = lab.ask(&["path", "pc", to]).unwrap();
    let hops = path["hops"].as_array().unwrap();
    hops.iter().map(|hop| hop["address"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_trace_names_the_routers_in_their_order_and_the_mtu_of_the_path() {
    let lab = three();
    for transport in [trace::Transport::Udp, trace::Transport::Icmp] {
        for to in ["30.0.0.10", "2001:db8:30::10"] {
            let settings = trace::Settings { transport, mtu: true, ..trace::Settings::default() };
            let trace = traced(&lab, to, &settings);
            let right = [routers(&lab, to), vec![to.to_owned()]].concat();
            assert_eq!((right.len(), trace.reached), (4, true));
            assert_eq!(addresses(&trace.hops), right);
            assert_eq!(trace.mtu_bytes, Some(1400), "{transport:?} to {to}");
            for (index, hop) in trace.hops.iter().enumerate() {
                assert!(!hop.round_trips_ns.is_empty() && hop.others.is_empty(), "{hop:?}");
                // The first router is before the link of 5 ms in each direction, the others behind it.
                let least = if index == 0 { 0 } else { 10_000_000 };
                assert!(hop.round_trips_ns.iter().all(|trip| *trip >= least), "{index}: {hop:?}");
                assert_eq!(hop.answer, None);
            }
        }
    }
}

#[test]
fn who_prohibits_and_who_has_no_such_host_are_quoted() {
    let lab = three();
    let (four, six) = (routers(&lab, "30.0.0.10"), routers(&lab, "2001:db8:30::10"));
    for (to, end, reported) in [
        ("40.0.0.1", &four[1], "administratively prohibited"),
        ("2001:db8:40::1", &six[1], "administratively prohibited"),
        ("50.0.0.1", &four[2], "host unreachable"),
        ("60.0.0.1", &four[0], "net unreachable"),
    ] {
        let trace = traced(&lab, to, &trace::Settings::default());
        assert!(!trace.reached);
        let last = trace.hops.last().unwrap();
        assert_eq!(last.address, Some(end.parse::<IpAddr>().unwrap()), "{to}: {trace:?}");
        assert_eq!(last.answer.as_deref(), Some(reported), "{to}: {trace:?}");
    }
}

/// The server answers no echo, and nobody says so.
#[test]
fn a_path_that_is_lost_from_sight_ends_with_silent_hops() {
    let lab = three();
    let deaf = || std::fs::write("/proc/sys/net/ipv4/icmp_echo_ignore_all", "1");
    lab.enter("server", deaf).unwrap().unwrap();
    let settings = trace::Settings {
        transport: trace::Transport::Icmp,
        silent: 2,
        ..trace::Settings::default()
    };
    let trace = traced(&lab, "30.0.0.10", &settings);
    let right = [routers(&lab, "30.0.0.10"), vec!["*".to_owned(); 2]].concat();
    assert_eq!(addresses(&trace.hops), right);
    assert!(!trace.reached);
}

/// Ten tests, each another flow. Routers limit how many errors they send as Linux does, so some of the
/// later ones are not answered; the nodes that answer are always on one path.
#[test]
fn all_packets_of_a_test_take_one_of_the_ways() {
    let lab = lab(TWO_WAYS);
    let shown = routers(&lab, "30.0.0.10");
    let mut both = 0;
    for port in 33_434..33_444 {
        let transport = if port % 2 == 0 { trace::Transport::Udp } else { trace::Transport::Icmp };
        let wait = Duration::from_millis(300);
        let settings =
            trace::Settings { transport, port, wait, silent: 9, ..trace::Settings::default() };
        let trace = traced(&lab, "30.0.0.10", &settings);
        assert!(trace.hops.iter().all(|hop| hop.others.is_empty()), "{trace:?}");
        let path = addresses(&trace.hops);
        let on_shown = |index: usize| Some(path.get(index).filter(|a| *a != "*")? == &shown[index]);
        if let (Some(one), Some(other)) = (on_shown(1), on_shown(2)) {
            assert_eq!(one, other, "{path:?} crosses over from {shown:?}");
            both += 1;
        }
    }
    // The first two tests find all tokens there.
    assert!(both >= 2, "{both}");
}

/// Where ICMP is filtered, what routers say of long packets never arrives; the search finds the MTU by
/// what is not answered.
#[test]
fn the_mtu_is_found_where_icmp_is_filtered() {
    let lab = three();
    let rules = "table inet filter {
        chain input {
            type filter hook input priority 0
            ip protocol icmp ip saddr != 30.0.0.10 drop
            icmpv6 type packet-too-big drop
        }
    }";
    let file = lab.folder().join("rules");
    std::fs::write(&file, rules).unwrap();
    lab.check("pc", &["nft", "-f", &file.display().to_string()]).unwrap();
    let settings = pmtu::Settings { wait: Duration::from_millis(500), ..pmtu::Settings::default() };
    for to in ["30.0.0.10", "2001:db8:30::10"] {
        let context = anywhere();
        let run = pmtu::run(to.parse().unwrap(), &settings, &context);
        assert_eq!(lab.enter("pc", || wait(run)).unwrap().unwrap(), Some(1400), "{to}");
    }
    // Nobody there: nothing is known.
    let context = anywhere();
    let run = pmtu::run("30.0.0.99".parse().unwrap(), &settings, &context);
    assert_eq!(lab.enter("pc", || wait(run)).unwrap().unwrap(), None);
}
