//! A station's clock beside real chronyd, in namespaces; none of them sets the machine's clock.

use probe::{
    clock::{Clock, chrony},
    config::ClockConfig,
};
use std::time::Duration;
use testbed::{Chrony, End, LIMIT, Namespace, link, wait_until};

/// Two namespaces with a link: 192.0.2.1 and 192.0.2.2.
fn pair(test: &str) -> (Namespace, Namespace) {
    let [server, client] =
        ["server", "client"].map(|end| Namespace::new(&format!("{test}-{end}")).unwrap());
    link(
        End::new(&server, "eth0").address("192.0.2.1/24"),
        End::new(&client, "eth0").address("192.0.2.2/24"),
    )
    .unwrap();
    (server, client)
}

fn watch(namespace: &Namespace, limit: Option<Duration>, servers: &[&str]) -> Clock {
    let servers = servers.iter().map(|address| address.parse().unwrap()).collect();
    let config = ClockConfig { limit, servers, interval: Duration::from_secs(1) };
    namespace.enter(|| Clock::start(&config)).unwrap()
}

#[test]
fn chrony_s_error_is_promised_and_its_reference_s_loss_noticed() {
    let (server, client) = pair("chrony");
    let mut source = Chrony::start(&server, "local stratum 3\nallow").unwrap();
    let follows = "server 192.0.2.1 iburst minpoll -2 maxpoll -2";
    let _chrony = Chrony::start(&client, follows).unwrap();
    let limit = Duration::from_secs(1);
    let clock = watch(&client, Some(limit), &[]);
    let mut state = clock.state();
    wait_until("chrony to follow the server", LIMIT, || {
        state = clock.state();
        state.source == "chrony" && state.maximum_error_ns.is_some()
    })
    .unwrap();
    assert_eq!((state.stratum, state.reference.as_deref()), (Some(4), Some("192.0.2.1")));
    assert!(state.reach.is_some_and(|reach| reach != 0) && !state.holdover, "{state:?}");
    // Both follow the one clock of this machine: what chrony takes for an offset is within its error.
    let (offset, error) = (state.offset_ns.unwrap(), state.maximum_error_ns.unwrap());
    assert!(offset.unsigned_abs() <= error, "{state:?}");
    // What chronyc reads of the same answer.
    let reported = client.check(&["chronyc", "-h", "127.0.0.1", "-c", "-n", "tracking"]).unwrap();
    let reported: Vec<&str> = reported.trim().split(',').collect();
    assert_eq!(
        (reported[0], reported[1], reported[2], reported[13]),
        ("C0000201", "192.0.2.1", "4", "Normal")
    );
    let chronyc_s: f64 = reported[4].parse::<f64>().unwrap().abs()
        + reported[10].parse::<f64>().unwrap() / 2.0
        + reported[11].parse::<f64>().unwrap();
    assert!((1e-7..1.0).contains(&chronyc_s) && error < 1_000_000_000, "{reported:?} {state:?}");
    assert_eq!(clock.problems(), [""; 0]);

    source.process().kill();
    wait_until("the clock to run on by itself", LIMIT, || clock.state().holdover).unwrap();
    let state = clock.state();
    assert!(state.maximum_error_ns.is_some(), "a bound that grows: {state:?}");
    assert!(state.since_update_seconds.is_some(), "{state:?}");
}

/// What chronyd says there.
fn chronyd_says(namespace: &Namespace) -> probe::record::Clock {
    namespace.enter(|| chrony::read(0)).unwrap().clock
}

#[test]
fn a_clock_that_follows_itself_promises_nothing() {
    let (server, client) = pair("local");
    let _source = Chrony::start(&server, "local stratum 3\nallow").unwrap();
    // chronyd answers and says that it is at stratum 3; what it says of itself is no bound.
    let clock = watch(&server, Some(Duration::from_millis(1)), &[]);
    assert_eq!(clock.state().source, "kernel");
    let record = chronyd_says(&server);
    assert_eq!((record.maximum_error_ns, record.reference.as_deref()), (None, Some("local")));
    drop(client);
}

#[test]
fn ntp_servers_are_asked_and_their_silence_shows() {
    let (server, client) = pair("ntp");
    let _source = Chrony::start(&server, "local stratum 3\nallow").unwrap();
    let follows = "server 192.0.2.1 iburst minpoll -2 maxpoll -2\nallow";
    let mut chrony = Chrony::start(&client, follows).unwrap();
    let clock = watch(&server, None, &["192.0.2.2", "127.0.0.1", "192.0.2.9"]);
    let of = |address: &str| {
        let address: std::net::IpAddr = address.parse().unwrap();
        clock.servers().into_iter().find(|(server, _)| *server == address).unwrap().1
    };
    wait_until("the server at stratum 4", LIMIT, || of("192.0.2.2").stratum == Some(4)).unwrap();
    let state = of("192.0.2.2");
    assert_eq!((state.source.as_str(), state.reference.as_deref()), ("ntp", Some("192.0.2.1")));
    // It is the same clock, so the difference is within the round trip.
    let (offset, estimate) = (state.offset_ns.unwrap(), state.estimated_error_ns.unwrap());
    assert!(offset.unsigned_abs() <= estimate + state.maximum_error_ns.unwrap(), "{state:?}");
    assert!(state.maximum_error_ns.is_some() && state.since_update_seconds.is_some(), "{state:?}");
    wait_until("the server that follows itself", LIMIT, || of("127.0.0.1").reach != Some(0))
        .unwrap();
    assert_eq!(of("127.0.0.1").maximum_error_ns, None);
    let silent = of("192.0.2.9");
    assert_eq!((silent.reach, silent.offset_ns, silent.stratum), (Some(0), None, None));

    chrony.process().kill();
    wait_until("eight polls without an answer", LIMIT, || of("192.0.2.2").reach == Some(0))
        .unwrap();
    assert_eq!(of("192.0.2.2").maximum_error_ns, None);
}
