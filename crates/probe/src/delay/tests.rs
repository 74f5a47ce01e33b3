//! Sessions over loopback, with real sockets and the kernel's times.

use super::*;
use crate::interval::Interval;
use crate::{
    record::Delay,
    stamp::{
        Key, Refused,
        reflector::Rate,
        sender::{Peer, Sample},
        tlv::Ask,
    },
};
use datapath::clock::unix_ns;
use std::net::Ipv4Addr;
use testbed::wait_until;

const TIMEOUT: Duration = Duration::from_secs(30);

/// What a shell has reported so far.
type Reports = Arc<Mutex<Vec<(SessionId, News)>>>;

fn start(sender: &str, reflector: Option<&str>) -> (Delays, Reports) {
    let reported = Reports::default();
    let config = Config {
        sender: sender.parse().unwrap(),
        reflector: reflector.map(|address| address.parse().unwrap()),
        ..Config::default()
    };
    let list = Arc::clone(&reported);
    let report = move |id, news| list.lock().unwrap().push((id, news));
    let error = |_| MaximumError::known(250_000);
    (Delays::start(&config, error, report).unwrap(), reported)
}

fn reflected(address: std::net::IpAddr, ssid: u16, key: Option<Key>) -> SessionConfig {
    let rate = Rate { per_second: 10_000, burst: 1000 };
    SessionConfig { address, port: None, ssid: Some(ssid), key, extensions: true, rate }
}

fn session(to: SocketAddr, ssid: u16, key: Option<Key>) -> Session {
    Session {
        to,
        from: None,
        interval: Duration::from_millis(5),
        phase: Duration::ZERO,
        count: Some(20),
        settings: Settings {
            ssid,
            key,
            ssid_needed: true,
            limit: Duration::from_secs(1),
            ..Settings::default()
        },
    }
}

/// All that was reported of a session once its end was.
fn until_end(reported: &Reports, id: SessionId) -> Vec<News> {
    let of = || -> Vec<News> {
        reported.lock().unwrap().iter().filter(|one| one.0 == id).map(|one| one.1).collect()
    };
    wait_until("the session's end", TIMEOUT, || of().contains(&News::Ended)).unwrap();
    of()
}

fn samples(news: &[News]) -> Vec<Sample> {
    let sample = |news: &News| match news {
        News::Packet(Event::Arrived(sample)) => Some(*sample),
        _ => None,
    };
    news.iter().filter_map(sample).collect()
}

/// Packets sent: all that have a sample or are lost.
fn outcomes(news: &[News]) -> usize {
    let outcome =
        |news: &&News| matches!(news, News::Packet(Event::Arrived(_) | Event::Lost { .. }));
    news.iter().filter(outcome).count()
}

#[test]
fn sessions_of_both_families_and_modes_are_measured() {
    let (ours, reported) = start("[::]:0", None);
    let (theirs, _) = start("[::]:0", Some("[::]:0"));
    let port = theirs.reflector_address().unwrap().port();
    let mut ids = Vec::new();
    for (ssid, address) in [(1, "127.0.0.1"), (2, "::1"), (3, "127.0.0.1"), (4, "::1")] {
        let address = address.parse().unwrap();
        let key = (ssid > 2).then(|| Key::new(&[8; 32]).unwrap());
        theirs.admit(reflected(address, ssid, key.clone())).blocking_recv().unwrap();
        let to = SocketAddr::new(address, port);
        ours.permit(to);
        ids.push(ours.open(session(to, ssid, key)));
    }
    for id in ids {
        let news = until_end(&reported, id);
        let missed: u64 =
            news.iter().map(|news| if let News::Missed(many) = news { *many } else { 0 }).sum();
        // On a machine that is busy, a time may pass before its packet is sent: then that is reported.
        assert_eq!(outcomes(&news), 20, "{missed} missed: {news:?}");
        let samples = samples(&news);
        assert!(!samples.is_empty());
        for sample in samples {
            // Of one clock, so this is the true delay, and both errors are in the interval.
            let forward = sample.forward.unwrap();
            assert!(sample.kernel_sent);
            assert!(forward.estimate_ns > 0 && forward.contains(forward.estimate_ns));
            let width = forward.width_ns().unwrap();
            assert!((4 * 250_000..4 * 260_000).contains(&width), "{width}");
            assert!(sample.round_trip.estimate_ns > 0);
            assert_eq!(sample.ttl, if forward.low_ns.is_some() { 255 } else { 0 });
        }
    }
    let counters = ours.counters();
    assert_eq!((counters.sent, counters.not_sent, counters.refused.total()), (80, 0, 0));
}

#[test]
fn most_replies_have_the_time_at_which_they_left() {
    let (ours, reported) = start("127.0.0.1:0", None);
    let (theirs, _) = start("127.0.0.1:0", Some("127.0.0.1:0"));
    let to = theirs.reflector_address().unwrap();
    theirs.admit(reflected(to.ip(), 9, None)).blocking_recv().unwrap();
    ours.permit(to);
    let slow = Session { interval: Duration::from_millis(20), ..session(to, 9, None) };
    let news = until_end(&reported, ours.open(slow));
    assert!(samples(&news).iter().any(|sample| sample.kernel_left));
    let mut report = Report::new(Peer::Stateful);
    for one in &news {
        if let News::Packet(event) = one {
            report.add(event);
        }
    }
    let Delay { forward, reverse, round_trip, .. } = report.take();
    assert_eq!(round_trip.sent, 20);
    assert!(forward.unwrap().median.is_some() && reverse.unwrap().median.is_some());
    assert_eq!(report.take().forward, None);
}

/// Clocks that become worse all the time: the error of a timestamp must have been read after it.
#[test]
fn errors_are_of_their_timestamps_and_not_of_before() {
    let begin_ns = unix_ns();
    let worse = move |_| MaximumError::known(unix_ns() - begin_ns);
    let config = |reflector: Option<&str>| Config {
        sender: "127.0.0.1:0".parse().unwrap(),
        reflector: reflector.map(|address| address.parse().unwrap()),
        ..Config::default()
    };
    let reported = Reports::default();
    let list = Arc::clone(&reported);
    let report = move |id, news| list.lock().unwrap().push((id, news));
    let ours = Delays::start(&config(None), worse, report).unwrap();
    let theirs = Delays::start(&config(Some("127.0.0.1:0")), worse, |_, _| {}).unwrap();
    let to = theirs.reflector_address().unwrap();
    theirs.admit(reflected(to.ip(), 9, None)).blocking_recv().unwrap();
    ours.permit(to);
    let samples = samples(&until_end(&reported, ours.open(session(to, 9, None))));
    assert!(!samples.is_empty());
    for sample in samples {
        let (forward, reverse) = (sample.forward.unwrap(), sample.reverse.unwrap());
        let half = |delay: Interval| delay.width_ns().unwrap() / 2;
        let sent_ns = sample.sent_ns - begin_ns;
        let arrived_ns = sent_ns.saturating_add_signed(forward.estimate_ns);
        assert!(half(forward) >= sent_ns + arrived_ns, "{sample:?}");
        let came_ns = arrived_ns.saturating_add_signed(reverse.estimate_ns);
        assert!(half(reverse) >= arrived_ns + came_ns, "{sample:?}");
    }
}

#[test]
fn packets_come_from_the_address_that_was_agreed_on() {
    let (ours, reported) = start("[::]:0", None);
    let (theirs, _) = start("127.0.0.1:0", Some("127.0.0.1:0"));
    let to = theirs.reflector_address().unwrap();
    let from = Ipv4Addr::new(127, 0, 0, 2).into();
    theirs.admit(reflected(from, 9, None)).blocking_recv().unwrap();
    ours.permit(to);
    let session = Session { from: Some(from), ..session(to, 9, None) };
    let news = until_end(&reported, ours.open(session));
    assert!(!samples(&news).is_empty());
    assert_eq!(theirs.counters().reflector_refused.total(), 0);
}

#[test]
fn sessions_to_one_responder_of_twamp_light_run_side_by_side() {
    let (ours, reported) = start("127.0.0.1:0", None);
    let (theirs, _) = start("127.0.0.1:0", Some("127.0.0.1:0"));
    let to = theirs.reflector_address().unwrap();
    theirs
        .admit(SessionConfig { ssid: None, extensions: false, ..reflected(to.ip(), 0, None) })
        .blocking_recv()
        .unwrap();
    ours.permit(to);
    let settings = || Settings { peer: Peer::TwampLight, ..session(to, 0, None).settings };
    let open = |_| ours.open(Session { settings: settings(), ..session(to, 0, None) });
    for id in [0, 1, 2].map(open) {
        let news = until_end(&reported, id);
        assert_eq!(outcomes(&news), 20, "{news:?}");
        assert!(!samples(&news).is_empty(), "{news:?}");
    }
    assert_eq!(ours.counters().refused.total(), 0);
}

#[test]
fn nothing_is_sent_to_who_has_not_agreed() {
    let (ours, reported) = start("127.0.0.1:0", None);
    let silent = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    silent.set_nonblocking(true).unwrap();
    let to = silent.local_addr().unwrap();
    let id = ours.open(session(to, 1, None));
    wait_until("the refusal", TIMEOUT, || {
        reported.lock().unwrap().contains(&(id, News::NotPermitted))
    })
    .unwrap();
    ours.permit(to);
    let id = ours.open(Session { count: None, ..session(to, 1, None) });
    let twin = ours.open(session(to, 1, None));
    wait_until("the first packet", TIMEOUT, || silent.recv(&mut [0; 100]).is_ok()).unwrap();
    wait_until("the twin's refusal", TIMEOUT, || {
        reported.lock().unwrap().contains(&(twin, News::SsidInUse))
    })
    .unwrap();
    ours.forbid(to);
    let news = until_end(&reported, id);
    let lost = news.iter().filter(|one| matches!(one, News::Packet(Event::Lost { .. }))).count();
    assert_eq!(lost as u64, ours.counters().sent);
    let after = ours.open(session(to, 1, None));
    wait_until("the refusal", TIMEOUT, || {
        reported.lock().unwrap().contains(&(after, News::NotPermitted))
    })
    .unwrap();
}

#[test]
fn unknown_peers_and_wrong_keys_are_counted_and_get_no_answer() {
    let (theirs, _) = start("127.0.0.1:0", Some("127.0.0.1:0"));
    let to = theirs.reflector_address().unwrap();
    let (ours, reported) = start("127.0.0.1:0", None);
    ours.permit(to);
    let unknown_peer = ours.open(session(to, 5, None));
    let news = until_end(&reported, unknown_peer);
    assert_eq!((outcomes(&news), samples(&news).len()), (20, 0));
    theirs.admit(reflected(to.ip(), 6, Key::new(&[1; 16]))).blocking_recv().unwrap();
    let wrong = ours.open(session(to, 6, Key::new(&[2; 16])));
    let news = until_end(&reported, wrong);
    assert_eq!((outcomes(&news), samples(&news).len()), (20, 0));
    wait_until("the counters", TIMEOUT, || theirs.counters().reflector_refused.total() == 40)
        .unwrap();
    let refused = theirs.counters().reflector_refused;
    assert_eq!((refused.of(Refused::UnknownSession), refused.of(Refused::NotAuthentic)), (20, 20));
    assert_eq!(theirs.counters().reflected, 0);
}

#[test]
fn extensions_come_back_with_what_was_asked_for() {
    let (ours, reported) = start("127.0.0.1:0", None);
    let (theirs, _) = start("127.0.0.1:0", Some("127.0.0.1:0"));
    let to = theirs.reflector_address().unwrap();
    theirs.admit(reflected(to.ip(), 3, Key::new(&[1; 16]))).blocking_recv().unwrap();
    ours.permit(to);
    let mut asked = session(to, 3, Key::new(&[1; 16]));
    asked.settings.ask = Ask { class_of_service: true, ..Ask::default() };
    asked.settings.dscp = 46;
    asked.settings.length = 1400;
    let news = until_end(&reported, ours.open(asked));
    let samples = samples(&news);
    assert!(!samples.is_empty());
    assert!(samples.iter().all(|sample| sample.traffic_class == Some(46 << 2)));
}
