//! How much of a listener unknown peers may use: permits, in all and for one source.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

/// What counts as one source: an IPv4 address, or the /64 of an IPv6 address, of which one host may
/// have them all.
pub(super) fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let network = u128::from(v6) & !u128::from(u64::MAX);
            IpAddr::V6(network.into())
        }
        v4 => v4,
    }
}

/// A number of permits, some of which each source may have.
#[derive(Debug)]
pub(super) struct Permits {
    most: usize,
    most_per_source: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

impl Permits {
    pub(super) fn new(most: usize, most_per_source: usize) -> Arc<Self> {
        Arc::new(Self { most, most_per_source, taken: Mutex::default() })
    }

    /// A permit, if one is free; it is free again when it is dropped.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Permit> {
        let source = source(address);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.get(&source).copied().unwrap_or(0);
        if own >= self.most_per_source || taken.values().sum::<usize>() >= self.most {
            return None;
        }
        taken.insert(source, own + 1);
        Some(Permit { permits: Arc::clone(self), source })
    }
}

/// A permit that is taken.
#[derive(Debug)]
pub(super) struct Permit {
    permits: Arc<Permits>,
    source: IpAddr,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.permits.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.source) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_in_all_and_for_one_source() {
        let permits = Permits::new(3, 2);
        let address = |text: &str| text.parse().unwrap();
        let first = permits.take(address("192.0.2.1")).unwrap();
        let _second = permits.take(address("::ffff:192.0.2.1")).unwrap();
        assert!(permits.take(address("192.0.2.1")).is_none(), "a third of one source");
        let _third = permits.take(address("2001:db8::1")).unwrap();
        assert!(permits.take(address("2001:db8:0:1::1")).is_none(), "a fourth in all");
        drop(first);
        let _fourth = permits.take(address("2001:db8::ffff:1")).unwrap();
        assert!(permits.take(address("192.0.2.2")).is_none(), "a fourth in all");
    }

    #[test]
    fn a_network_of_64_bits_is_one_source() {
        let permits = Permits::new(9, 1);
        let _held = permits.take("2001:db8::1".parse().unwrap()).unwrap();
        assert!(permits.take("2001:db8::ffff:0:0:2".parse().unwrap()).is_none());
        assert!(permits.take("2001:db8:0:1::1".parse().unwrap()).is_some());
    }
}
