//! The connections to stations of which this one asks something: those to which it measures by its
//! schedule, and others when they are asked for.

use super::error::RunError;
use crate::{
    config::Config,
    station::{
        Asker, Peer, PeerError, Tls,
        peer::{PeerState, Route},
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The connections.
#[derive(Debug, Default)]
pub(super) struct Peers(Mutex<BTreeMap<String, Peer>>);

impl Peers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Peer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects to the stations that the schedule wants, and gives up those that have left the mesh or
    /// moved. Within the runtime.
    pub(super) fn configure(&self, config: &Config, tls: Option<&Tls>) {
        let Some(tls) = tls else { return self.clear() };
        let wanted = wanted(config);
        let mut peers = self.lock();
        // Keys may be others now: who is connected stays so, and whoever connects does with the new ones.
        // A station that is not reached is tried again at once, and has not been reached as long as before.
        let mut unreached = BTreeMap::new();
        peers.retain(|name, peer| {
            let (stays, state) = (route(config, name).as_ref() == Some(peer.route()), peer.state());
            let reached = state.reached.is_ok();
            if stays && !reached {
                unreached.insert(name.clone(), state);
            }
            stays && reached
        });
        for peer in peers.values() {
            peer.set_tls(tls.clone());
        }
        for name in wanted {
            if !peers.contains_key(name)
                && let Some(route) = route(config, name)
            {
                let state = unreached.remove(name).unwrap_or_else(PeerState::unknown);
                peers.insert(name.to_owned(), Peer::start(route, tls.clone(), state));
            }
        }
    }

    /// Ends all connections.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Asks a station of the mesh. Within the runtime.
    pub(super) fn asker(
        &self,
        config: &Config,
        tls: Option<&Tls>,
        name: &str,
    ) -> Result<Asker, RunError> {
        let unreachable =
            |why: &str| PeerError::Unreachable { name: name.to_owned(), why: why.to_owned() };
        let mut peers = self.lock();
        if let Some(peer) = peers.get(name) {
            return Ok(peer.asker());
        }
        let tls = tls.ok_or_else(|| unreachable("this station has no [probe.security]"))?;
        let route = route(config, name).ok_or_else(|| unreachable("it is not in the mesh"))?;
        let peer = Peer::start(route, tls.clone(), PeerState::unknown());
        let asker = peer.asker();
        peers.insert(name.to_owned(), peer);
        Ok(asker)
    }

    /// Whether there is a connection to a station.
    pub(super) fn reached(&self, name: &str) -> bool {
        self.lock().get(name).is_some_and(|peer| peer.state().reached.is_ok())
    }

    /// How it is with each.
    pub(super) fn states(&self) -> Vec<(String, PeerState)> {
        self.lock().iter().map(|(name, peer)| (name.clone(), peer.state())).collect()
    }
}

/// The stations of which the schedule wants something.
pub(super) fn wanted(config: &Config) -> BTreeSet<&str> {
    let own = config.name();
    let pairs = config.probe.tests.iter().flat_map(|test| test.pairs());
    let wanted = pairs.filter(|(from, to)| *from == own && config.probe.station(to).is_some());
    wanted.map(|(_, to)| to).collect()
}

/// Where a station is.
fn route(config: &Config, name: &str) -> Option<Route> {
    let station = config.probe.station(name)?;
    Some(Route {
        own: config.name().to_owned(),
        from: config.own()?.addresses.clone(),
        name: name.to_owned(),
        to: station.control()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stations_of_the_schedule_are_wanted() {
        let probe = r#"
            [[test]]
            name = "mesh"
            what = "owd"
            mesh = ["alfa", "bravo"]
            interval = "1m"
            [[test]]
            name = "theirs"
            what = "owd"
            from = ["carol"]
            to = ["alfa"]
            interval = "1m"
            [[station]]
            name = "alfa"
            addresses = ["10.0.0.1"]
            [[station]]
            name = "bravo"
            addresses = ["10.0.0.2"]
            [[station]]
            name = "carol"
            addresses = ["10.0.0.3"]
        "#;
        let probe = toml::from_str(probe).expect("a configuration");
        let config = Config { node: "alfa".into(), state: "/nowhere".into(), probe };
        assert_eq!(wanted(&config), BTreeSet::from(["bravo"]));
    }
}
