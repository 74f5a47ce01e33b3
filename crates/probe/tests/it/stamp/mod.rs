//! STAMP sessions against what others have made, and the reflector in the driver over a link.

mod root;
mod scapy;
mod suite;

use probe::{
    delay::{Config, Delays, News, Session, SessionId},
    interval::MaximumError,
    stamp::{
        Key,
        reflector::{Rate, SessionConfig},
        sender::{Event, Sample, Settings},
    },
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

/// How long anything may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum error that our clocks state.
const ERROR_NS: u64 = 250_000;

/// What a shell has reported so far.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<(SessionId, News)>>>);

impl Reports {
    /// All of a session, once it has ended.
    fn until_end(&self, id: SessionId) -> Vec<News> {
        let of = || -> Vec<News> {
            let reported = self.0.lock().unwrap();
            reported.iter().filter(|one| one.0 == id).map(|one| one.1).collect()
        };
        testbed::wait_until("the session's end", TIMEOUT, || of().contains(&News::Ended)).unwrap();
        of()
    }

    /// The samples of a session, once it has ended.
    fn samples(&self, id: SessionId) -> Vec<Sample> {
        let sample = |news| match news {
            News::Packet(Event::Arrived(sample)) => Some(sample),
            _ => None,
        };
        self.until_end(id).into_iter().filter_map(sample).collect()
    }
}

/// A shell in the calling thread's namespace.
fn start(config: &Config) -> (Delays, Reports) {
    let reported = Reports::default();
    let list = reported.clone();
    let report = move |id, news| list.0.lock().unwrap().push((id, news));
    let error = |_| MaximumError::known(ERROR_NS);
    (Delays::start(config, error, report).unwrap(), reported)
}

fn reflected(address: IpAddr, ssid: u16, key: Option<Key>) -> SessionConfig {
    let rate = Rate { per_second: 10_000, burst: 1000 };
    SessionConfig { address, port: None, ssid: Some(ssid), key, extensions: true, rate }
}

/// Twenty packets.
fn session(to: SocketAddr, settings: Settings) -> Session {
    Session {
        to,
        from: None,
        interval: Duration::from_millis(10),
        phase: Duration::ZERO,
        count: Some(20),
        settings,
    }
}
