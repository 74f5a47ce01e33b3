//! Room for control connections: unknown peers take none of that of stations, and no station that of others.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Connections at once from one address of a station: the one it uses, and old ones that have not yet ended.
const EACH: usize = 8;
/// Connections at once of all who connect from an address that is no station's. They are taken only so that
/// a station behind another address learns why it is refused.
const UNKNOWN_PEERS: usize = 16;

/// Who is connected.
#[derive(Debug, Default)]
pub(super) struct Permits(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    unknown_peers: usize,
    stations: usize,
    of: HashMap<IpAddr, usize>,
}

/// Room for one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    permits: Arc<Permits>,
    /// The station's; `None` of an unknown peer.
    address: Option<IpAddr>,
}

impl Permits {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for one more connection from an address, if a station is expected there among `most` at once.
    pub(super) fn take(
        self: &Arc<Self>,
        address: IpAddr,
        expected: bool,
        most: usize,
    ) -> Option<Permit> {
        let mut taken = self.lock();
        if expected {
            let room = taken.stations < most && taken.of.get(&address).is_none_or(|n| *n < EACH);
            if !room {
                return None;
            }
            taken.stations += 1;
            *taken.of.entry(address).or_default() += 1;
        } else {
            if taken.unknown_peers >= UNKNOWN_PEERS {
                return None;
            }
            taken.unknown_peers += 1;
        }
        Some(Permit { permits: self.clone(), address: expected.then_some(address) })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.permits.lock();
        let Some(address) = self.address else {
            taken.unknown_peers -= 1;
            return;
        };
        taken.stations -= 1;
        if let Some(count) = taken.of.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                taken.of.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_peers_never_keep_a_station_out_nor_does_a_station() {
        let permits = Arc::<Permits>::default();
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let take = |last, expected| permits.take(address(last), expected, 10);
        let unknown_peers: Vec<_> = (0..100).filter_map(|last| take(last, false)).collect();
        assert_eq!(unknown_peers.len(), UNKNOWN_PEERS);
        let one: Vec<_> = (0..100).filter_map(|_| take(1, true)).collect();
        assert_eq!(one.len(), EACH);
        let others: Vec<_> = (2..100).filter_map(|last| take(last, true)).collect();
        assert_eq!(others.len(), 10 - EACH, "as many as are taken in all");
        drop((unknown_peers, one, others));
        assert!(take(1, true).is_some() && take(200, false).is_some());
        assert!(permits.lock().of.is_empty());
    }
}
