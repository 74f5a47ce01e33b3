//! How much of a server unknown peers may use at once: permits, in all and for one source.
#![forbid(unsafe_code)]

mod fair;
mod lines;

pub use fair::{Holding, gives_way};
pub use lines::Lines;

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What counts as one source: an IPv4 address, or the /64 of an IPv6 address, of which one host may
/// have them all.
pub fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !0 << 64)),
        v4 => v4,
    }
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// All permits are taken.
    All,
    /// All that one source may have are taken.
    Source,
}

/// A number of permits, some of which each source may have.
#[derive(Debug)]
pub struct Permits {
    most: usize,
    most_per_source: usize,
    taken: Mutex<HashMap<IpAddr, usize>>,
}

impl Permits {
    /// At most `most` permits at once, and `most_per_source` for one source.
    pub fn new(most: usize, most_per_source: usize) -> Arc<Self> {
        Arc::new(Self { most, most_per_source, taken: Mutex::default() })
    }

    /// A permit for `source`, if one is free; it is free again when it is dropped. For unknown peers
    /// give the [`source`] of their address.
    ///
    /// # Errors
    ///
    /// Which limit is reached.
    pub fn take(self: &Arc<Self>, source: IpAddr) -> Result<Permit, Full> {
        let mut taken = self.lock();
        if taken.values().sum::<usize>() >= self.most {
            return Err(Full::All);
        }
        let own = taken.get(&source).copied().unwrap_or(0);
        if own >= self.most_per_source {
            return Err(Full::Source);
        }
        taken.insert(source, own + 1);
        Ok(Permit { permits: Arc::clone(self), source })
    }

    /// Whether no permit is taken.
    pub fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit that is taken.
#[derive(Debug)]
pub struct Permit {
    permits: Arc<Permits>,
    source: IpAddr,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.permits.lock();
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

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn permits_are_bounded_in_all_and_for_one_source() {
        let permits = Permits::new(3, 2);
        let take = |text| permits.take(source(address(text)));
        let first = take("192.0.2.1").unwrap();
        let second = take("::ffff:192.0.2.1").unwrap();
        assert_eq!(take("192.0.2.1").unwrap_err(), Full::Source, "a third of one source");
        let third = take("2001:db8::1").unwrap();
        assert_eq!(take("2001:db8:0:1::1").unwrap_err(), Full::All, "a fourth in all");
        drop(first);
        let fourth = take("2001:db8::ffff:1").unwrap();
        assert_eq!(take("192.0.2.2").unwrap_err(), Full::All, "a fourth in all");
        assert!(!permits.is_idle());
        drop((second, third, fourth));
        assert!(permits.is_idle());
    }

    #[test]
    fn a_network_of_64_bits_is_one_source() {
        let permits = Permits::new(9, 1);
        let take = |text| permits.take(source(address(text)));
        let _held = take("2001:db8::1").unwrap();
        assert!(take("2001:db8::ffff:0:0:2").is_err());
        assert!(take("2001:db8:0:1::1").is_ok());
    }

    #[test]
    fn a_source_is_an_ipv4_address_or_an_ipv6_64() {
        for (whole, counted) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(source(address(whole)), address(counted), "{whole}");
        }
    }
}
