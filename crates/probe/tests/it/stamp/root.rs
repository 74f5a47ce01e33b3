//! A sender's shell over a link to a reflector's, which has the driver reflect.

use super::{TIMEOUT, reflected, session, start};
use datapath::stamp::{AttachMode, StampProgram};
use probe::{
    delay::Config,
    stamp::{Key, reflector::SessionConfig, sender::Settings, tlv::Ask},
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use testbed::{Receiver, wait_until};

#[test]
fn plain_sessions_are_reflected_in_the_driver_and_others_at_the_socket() {
    let (here, there) = testbed::pair().unwrap();
    let _receiver = Receiver::new(&here, "eth0").unwrap();
    let program = Arc::new(StampProgram::load(0x0001).unwrap());
    let index = there.enter(|| nix::net::if_::if_nametoindex("eth0")).unwrap();
    let _attachment = there.enter(|| program.attach(index, AttachMode::Native)).unwrap();
    let to = |address: &str| SocketAddr::new(address.parse().unwrap(), 862);
    let config = Config { driver: Some(Arc::clone(&program)), ..Config::default() };
    let (ours, reported) = here.enter(|| start(&Config { reflector: None, ..Config::default() }));
    let (theirs, _) = there.enter(|| start(&config));
    let mut ids = Vec::new();
    let plans = [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")];
    for (from, address) in plans {
        program.serve(to(address)).unwrap();
        let from: IpAddr = from.parse().unwrap();
        ours.permit(to(address));
        let keyed = reflected(from, 2, Key::new(&[5; 16]));
        for reflected in [SessionConfig { extensions: false, ..reflected(from, 1, None) }, keyed] {
            let key = reflected.key.clone();
            theirs.admit(reflected).blocking_recv().unwrap();
            let ssid = if key.is_none() { 1 } else { 2 };
            let settings = Settings { ssid, key, ssid_needed: true, ..Settings::default() };
            // The driver stamps when it sends: nothing is to be followed up.
            let ask = Ask { follow_up: ssid == 2, ..Ask::default() };
            ids.push((ssid, to(address), Settings { ask, ..settings }));
        }
    }
    wait_until("the sessions", TIMEOUT, || theirs.counters().reflector_sessions == 4).unwrap();
    for (ssid, to, settings) in ids {
        let samples = reported.samples(ours.open(session(to, settings)));
        assert!(!samples.is_empty(), "SSID {ssid} to {to}");
        let mut bounded = 0;
        for sample in samples {
            let (forward, reverse) = (sample.forward.unwrap(), sample.reverse.unwrap());
            assert!(sample.kernel_sent && sample.ttl == 255);
            assert!(forward.estimate_ns > 0 && reverse.estimate_ns > 0, "{sample:?}");
            // Where the driver was interrupted, or its station held up, it does not know its clock.
            if let Some(width) = forward.width_ns() {
                assert!((4 * super::ERROR_NS..4 * super::ERROR_NS * 11 / 10).contains(&width));
                bounded += 1;
            }
        }
        assert!(bounded > 0, "SSID {ssid} to {to}");
    }
    // The driver has its sessions, the socket the others; no packet is seen by both.
    let (ledger, counters) = (program.ledger().unwrap(), theirs.counters());
    assert_eq!((ledger.reflected, ledger.passed_sender), (40, 40), "{ledger:?}");
    assert_eq!((counters.reflected, counters.reflector_refused.total()), (40, 0));
}
