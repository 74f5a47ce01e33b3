//! Room for control connections: unknown peers take none of that of stations, and no station that of others.

use ::permits::Permit;
use std::{net::IpAddr, sync::Arc};

/// Connections at once from one address of a station: the one it uses, and old ones that have not yet ended.
const EACH: usize = 8;
/// Connections at once of all who connect from an address that is no station's. They are taken only so that
/// a station behind another address learns why it is refused.
const UNKNOWN_PEERS: usize = 16;

/// Who is connected.
#[derive(Debug)]
pub(super) struct Permits {
    stations: Arc<::permits::Permits>,
    unknown_peers: Arc<::permits::Permits>,
}

impl Permits {
    /// At most `most` connections of stations at once.
    pub(super) fn new(most: usize) -> Self {
        Self {
            stations: ::permits::Permits::new(most, EACH),
            unknown_peers: ::permits::Permits::new(UNKNOWN_PEERS, UNKNOWN_PEERS),
        }
    }

    /// Room for one more connection from an address, at which a station is expected or not.
    pub(super) fn take(&self, address: IpAddr, expected: bool) -> Option<Permit> {
        let permits = if expected { &self.stations } else { &self.unknown_peers };
        permits.take(address).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_peers_never_keep_a_station_out_nor_does_a_station() {
        let permits = Permits::new(10);
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        let take = |last, expected| permits.take(address(last), expected);
        let unknown_peers: Vec<_> = (0..100).filter_map(|last| take(last, false)).collect();
        assert_eq!(unknown_peers.len(), UNKNOWN_PEERS);
        let one: Vec<_> = (0..100).filter_map(|_| take(1, true)).collect();
        assert_eq!(one.len(), EACH);
        let others: Vec<_> = (2..100).filter_map(|last| take(last, true)).collect();
        assert_eq!(others.len(), 10 - EACH, "as many as are taken in all");
        drop((unknown_peers, one, others));
        assert!(take(1, true).is_some() && take(200, false).is_some());
        assert!(permits.stations.is_idle() && permits.unknown_peers.is_idle());
    }
}
