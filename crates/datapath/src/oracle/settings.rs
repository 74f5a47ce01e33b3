//! The settings of the programs, and how they become the struct that the programs read.

use super::skeleton::types;
use crate::limit::{Limit, LimitError, Rate, SourceLimit, mask4, mask6, source_rates};
use crate::load::random;
use crate::slots;
use std::collections::HashSet;
use std::net::SocketAddrV4;
use std::time::Duration;

/// Addresses and ports that one program answers for at most.
pub const MAX_SERVICES: usize = 64;

/// All settings of the programs. The default answers for nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses and ports of the service. None may be a wildcard: which addresses are the node's is
    /// nothing that the driver knows.
    pub services: Vec<SocketAddrV4>,
    /// For how long a ranking holds; whole seconds.
    pub ttl: Duration,
    /// The limit of each source prefix, in the driver and at the sockets together.
    pub source: SourceLimit,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            services: Vec::new(),
            ttl: Duration::from_secs(60),
            source: SourceLimit { limit: Limit::NONE, prefix4: 24, prefix6: 56 },
        }
    }
}

/// Settings that cannot be applied.
#[derive(Debug, thiserror::Error)]
pub enum ConfigureError {
    /// Too many addresses.
    #[error("{0} addresses and ports; at most {MAX_SERVICES} can be answered for in the driver")]
    TooMany(usize),
    /// An address is given twice.
    #[error("{0} is given twice")]
    Twice(SocketAddrV4),
    /// An address that cannot be that of a service.
    #[error(
        "{0} cannot be answered for in the driver: it is not a unicast address that others can reach, with a port"
    )]
    NotUnicast(SocketAddrV4),
    /// A time that a reply cannot say.
    #[error("a ranking cannot hold for {0:?}; at most 65,535 seconds")]
    Ttl(Duration),
    /// A limit that cannot be kept.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// No table of slots was found for the addresses.
    #[error("no perfect hash function for the addresses was found; try again")]
    NoSlots,
    /// No random numbers.
    #[error("cannot read /dev/urandom: {0}")]
    Random(std::io::Error),
}

impl Settings {
    /// Whether these can be applied where the limits' clock steps `tick_ns`.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self, tick_ns: u64) -> Result<(), ConfigureError> {
        if self.services.len() > MAX_SERVICES {
            return Err(ConfigureError::TooMany(self.services.len()));
        }
        let mut seen = HashSet::new();
        for service in &self.services {
            // As `is_bogon4` in bpf/include/parse.h.
            if matches!(service.ip().octets()[0], 0 | 127 | 224..) || service.port() == 0 {
                return Err(ConfigureError::NotUnicast(*service));
            }
            if !seen.insert(service) {
                return Err(ConfigureError::Twice(*service));
            }
        }
        if u16::try_from(self.ttl.as_secs()).is_err() {
            return Err(ConfigureError::Ttl(self.ttl));
        }
        Ok(self.source.check(tick_ns)?)
    }

    /// The struct that the programs read; the settings must have been checked.
    pub(super) fn compile(&self) -> Result<types::oracle_config, ConfigureError> {
        let key = |service: &SocketAddrV4| {
            let address = u32::from_ne_bytes(service.ip().octets());
            u64::from(address) | u64::from(service.port().to_be()) << 32
        };
        let keys: Vec<_> = self.services.iter().map(key).collect();
        let seed = random().map_err(ConfigureError::Random)?;
        let rate =
            |rate: Rate| types::limit_rate { interval: rate.interval, tolerance: rate.tolerance };
        let mut config = types::oracle_config {
            hash: slots::search4(&keys, seed).ok_or(ConfigureError::NoSlots)?,
            source: source_rates(self.source.limit).map(rate),
            mask6: mask6(self.source.prefix6),
            mask4: mask4(self.source.prefix4),
            limited: u16::from(self.source.limit.rate != 0),
            ttl: (self.ttl.as_secs() as u16).to_be(),
            ..Default::default()
        };
        for key in keys {
            let slot = &mut config.slot[slots::slot4(key, config.hash)];
            (slot.address, slot.port, slot.used) = (key as u32, (key >> 32) as u16, 1);
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_cannot_work() {
        let refused = |settings: Settings| {
            settings.check(4_000_000).expect_err("must be refused").to_string()
        };
        let services = |text: &str| Settings {
            services: text.split(' ').map(|one| one.parse().unwrap()).collect(),
            ..Settings::default()
        };
        services("192.0.2.1:8899 192.0.2.1:8900").check(4_000_000).unwrap();
        for bogon in ["0.0.0.0:1", "127.0.0.1:1", "224.0.0.1:1", "255.255.255.255:1", "10.0.0.1:0"]
        {
            assert!(refused(services(bogon)).contains("cannot be answered for"), "{bogon}");
        }
        assert!(refused(services("10.0.0.1:1 10.0.0.1:1")).contains("twice"));
        let many = (1..66).map(|port| format!("10.0.0.1:{port}")).collect::<Vec<_>>().join(" ");
        assert!(refused(services(&many)).starts_with("65 addresses"));
        let ttl = Duration::from_secs(65_536);
        assert!(refused(Settings { ttl, ..Settings::default() }).contains("at most 65,535"));
        let source = SourceLimit { prefix4: 0, ..Settings::default().source };
        assert!(refused(Settings { source, ..Settings::default() }).contains("must be 1 to 32"));
    }
}
