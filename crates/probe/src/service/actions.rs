//! What this station does for others: it reflects their packets and is the other end of their tests.

use crate::{
    config::{Config, Transport},
    delay::Delays,
    stamp::{
        Key,
        reflector::{Rate, SessionConfig, SessionKey},
    },
    station::{
        Actions,
        admission::Action,
        message::{DelayAsk, Grant, ThroughputAsk},
        reservations::Lease,
    },
    tools::{self, Context, iperf3, throughput},
};
use ::config::hex;
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};
use tokio::task::AbortHandle;
use tracing::{info, warn};

/// Bytes of the key of a session.
pub(super) const KEY: usize = 32;

/// What is done for others.
#[derive(Debug)]
pub(crate) struct Commitments {
    delays: Option<Arc<Delays>>,
    /// Whether there is a reflector in the driver.
    driver: bool,
    config: RwLock<Arc<Config>>,
    /// What tests refuse.
    counters: Arc<tools::Counters>,
    leases: Mutex<HashMap<Lease, Commitment>>,
}

/// What is done for one lease.
#[derive(Debug)]
enum Commitment {
    Reflects(SessionKey),
    Serves(AbortHandle),
}

impl Commitments {
    /// What the station of this configuration does.
    pub(super) fn new(
        config: Arc<Config>,
        delays: Option<Arc<Delays>>,
        counters: Arc<tools::Counters>,
    ) -> Self {
        let driver = !config.probe.reflector.interfaces.is_empty();
        Self { delays, driver, config: RwLock::new(config), counters, leases: Mutex::default() }
    }

    /// Another configuration from now on.
    pub(super) fn configure(&self, config: Arc<Config>) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn config(&self) -> Arc<Config> {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This station's address of a family.
    fn own(&self, ipv6: bool) -> Result<IpAddr, String> {
        let config = self.config();
        let mut addresses = config.own().into_iter().flat_map(|own| &own.addresses);
        let own = addresses.find(|own| own.is_ipv6() == ipv6);
        own.copied().ok_or_else(|| "this station has no address of that family".to_owned())
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<Lease, Commitment>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reflect(&self, lease: Lease, ask: &DelayAsk) -> Result<Grant, String> {
        let none = || "no reflector runs here".to_owned();
        let delays = self.delays.as_ref().ok_or_else(none)?;
        let port = delays.reflector_address().ok_or_else(none)?.port();
        let address = ask.from.ip();
        let own = self.own(address.is_ipv6())?;
        let secret: Option<[u8; KEY]> = ask.authenticated.then(rand::random);
        let in_driver = self.driver && !ask.authenticated;
        let accepted = SessionConfig {
            address,
            // A driver knows senders by address and number.
            port: (!in_driver).then_some(ask.from.port()),
            ssid: Some(ask.ssid),
            key: secret.as_ref().and_then(|secret| Key::new(secret)),
            extensions: !in_driver,
            // Packets gather at a sender that was held up for a moment.
            rate: Rate { per_second: ask.rate.saturating_mul(2), burst: ask.rate.max(16) },
        };
        let session = accepted.session();
        let admitted = {
            // Held, so that what ends is reported before what begins in its place.
            let mut leases = self.leases();
            let runs = |commitment: &Commitment| matches!(commitment, Commitment::Reflects(other) if *other == session);
            if leases.values().any(runs) {
                return Err(format!("a session of the number {} runs already", ask.ssid));
            }
            leases.insert(lease, Commitment::Reflects(session));
            delays.admit(accepted)
        };
        // The first packets come as soon as this is answered.
        admitted.await.map_err(|_| none())?;
        let key = secret.map(|secret| hex::encode(&secret));
        Ok(Grant::Delay { to: SocketAddr::new(own, port), key })
    }
}

impl Commitments {
    async fn serve(
        &self,
        lease: Lease,
        peer: String,
        test: &ThroughputAsk,
    ) -> Result<Grant, String> {
        let own = self.own(test.ipv6)?;
        let config = self.config();
        let station = config.probe.station(&peer).ok_or("it has left the mesh")?;
        let from = station.addresses.iter().find(|from| from.is_ipv6() == test.ipv6);
        let from = *from.ok_or("it has no address of that family")?;
        if test.transport == Transport::Iperf3 {
            return self.serve_iperf3(lease, peer, test, own);
        }
        let settings = throughput_settings(test)?;
        let token = throughput::Token::random();
        let accepted = throughput::Accepted { token, settings, from };
        let server = throughput::Server::bind(own, accepted).await.map_err(|e| e.to_string())?;
        let to = server.address();
        // Who asks for packets accepts them.
        let mut context = Context::new(Arc::new(move |to: IpAddr| to == from));
        context.counters = self.counters.clone();
        let task = tokio::spawn(async move {
            match server.serve(&context).await {
                Ok(figures) => info!(peer, bytes = figures.bytes, "served a test"),
                Err(error) => warn!(peer, %error, "served a test that failed"),
            }
        });
        self.leases().insert(lease, Commitment::Serves(task.abort_handle()));
        let token = serde_json::to_value(token).ok().and_then(|v| Some(v.as_str()?.to_owned()));
        Ok(Grant::Throughput { to, token })
    }
}

impl Commitments {
    fn serve_iperf3(
        &self,
        lease: Lease,
        peer: String,
        test: &ThroughputAsk,
        own: IpAddr,
    ) -> Result<Grant, String> {
        let server =
            iperf3::Server::start(own, &iperf3_settings(test)).map_err(|e| e.to_string())?;
        let to = server.address();
        let mut context = Context::new(Arc::new(|_: IpAddr| false));
        context.counters = self.counters.clone();
        // What runs is killed with the task.
        let task = tokio::spawn(async move {
            match server.serve(&context).await {
                Ok(figures) => info!(peer, bytes = figures.bytes, "served a test"),
                Err(error) => warn!(peer, %error, "served a test that failed"),
            }
        });
        self.leases().insert(lease, Commitment::Serves(task.abort_handle()));
        Ok(Grant::Throughput { to, token: None })
    }
}

/// The same for iperf3, which knows whole seconds only.
pub(super) fn iperf3_settings(test: &ThroughputAsk) -> iperf3::Settings {
    iperf3::Settings {
        udp: test.bandwidth.is_some(),
        duration: Duration::from_secs(test.duration_ms.div_ceil(1000)),
        rate: test.bandwidth.map(|bandwidth| bandwidth.0),
        ..iperf3::Settings::default()
    }
}

/// What both ends of a test understand by what was accepted.
pub(super) fn throughput_settings(test: &ThroughputAsk) -> Result<throughput::Settings, String> {
    let transport = match test.transport {
        Transport::Tcp => throughput::Transport::Tcp,
        Transport::Psock => throughput::Transport::Psock,
        Transport::Udp => throughput::Transport::Udp,
        Transport::Iperf3 => return Err("iperf3 has settings of its own".to_owned()),
    };
    Ok(throughput::Settings {
        transport,
        duration: Duration::from_millis(test.duration_ms),
        rate: test.bandwidth.map(|bandwidth| bandwidth.0),
        ..throughput::Settings::default()
    })
}

impl Actions for Commitments {
    async fn begin(&self, action: Action) -> Result<Option<Grant>, String> {
        match action {
            Action::Reflect { lease, session, .. } => self.reflect(lease, &session).await.map(Some),
            Action::Serve { lease, peer, test } => self.serve(lease, peer, &test).await.map(Some),
            Action::End(leases) => {
                self.end(&leases);
                Ok(None)
            }
        }
    }

    fn end(&self, leases: &[Lease]) {
        let mut commitments = self.leases();
        for lease in leases {
            match (commitments.remove(lease), &self.delays) {
                (Some(Commitment::Reflects(session)), Some(delays)) => delays.remove(session),
                (Some(Commitment::Serves(task)), _) => task.abort(),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{delay, interval::MaximumError};

    #[tokio::test]
    async fn a_session_that_runs_is_not_taken_by_another_lease() {
        let section = r#"station = [{ name = "here", addresses = ["127.0.0.1"] }]"#;
        let probe = toml::from_str(section).expect("it parses");
        let config = Config { node: "here".into(), state: "/s".into(), probe };
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let sockets =
            delay::Config { sender: loopback, reflector: Some(loopback), ..Default::default() };
        let unknown = |_: u64| MaximumError::UNKNOWN;
        let delays = Delays::start(&sockets, unknown, |_, _| {}).expect("sockets on loopback");
        let commitments =
            Commitments::new(Arc::new(config), Some(Arc::new(delays)), Arc::default());
        let ask = DelayAsk {
            from: SocketAddr::from(([127, 0, 0, 2], 5000)),
            ssid: 7,
            rate: 10,
            duration_ms: 1000,
            authenticated: true,
        };
        assert!(commitments.reflect(Lease(1), &ask).await.is_ok());
        let again = commitments.reflect(Lease(2), &ask).await.expect_err("it runs already");
        assert!(again.contains("number 7"), "{again}");
        commitments.end(&[Lease(2)]);
        assert!(commitments.leases().contains_key(&Lease(1)), "the first goes on");
        let other = DelayAsk { ssid: 8, ..ask.clone() };
        assert!(commitments.reflect(Lease(3), &other).await.is_ok());
        commitments.end(&[Lease(1)]);
        assert!(commitments.reflect(Lease(4), &ask).await.is_ok(), "its number is free again");
    }
}
