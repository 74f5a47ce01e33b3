//! The mask's mappings for the addresses in the gate's audit.

use gate::audit::{Mapping, MappingName};
use mask::{
    key::{KeyError, read_key},
    mapping::{CryptoPan, EqualHalves, IpcryptPfx},
};
use std::{fmt, net::IpAddr, sync::Arc};
use wire::Problem;

/// There is no mapping.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// The file gives no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It is no key of this mapping.
    #[error(transparent)]
    Halves(#[from] EqualHalves),
}

/// A function of addresses that does not show its key.
struct By<F>(MappingName, F);

impl<F> fmt::Debug for By<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<F: Fn(IpAddr) -> IpAddr + Send + Sync> Mapping for By<F> {
    fn map(&self, address: IpAddr) -> IpAddr {
        (self.1)(address)
    }
}

/// The mapping that `gate.audit.addresses` names, if it does.
///
/// # Errors
/// When its key cannot be had.
pub fn of_audit(config: &gate::config::Config) -> Result<Option<Arc<dyn Mapping>>, MappingError> {
    let Some(wanted) = config.gate.audit.as_ref().and_then(|audit| audit.addresses.as_ref()) else {
        return Ok(None);
    };
    let key = read_key::<32>(&wanted.key)?;
    Ok(Some(match wanted.mapping {
        name @ MappingName::CryptoPan => {
            let mapping = CryptoPan::new(&key);
            Arc::new(By(name, move |address| mapping.map(address)))
        }
        name @ MappingName::IpcryptPfx => {
            let mapping = IpcryptPfx::new(&key)?;
            Arc::new(By(name, move |address| mapping.map(address)))
        }
    }))
}

/// What is wrong with the mapping that a configuration names.
pub(crate) fn problem(config: &gate::config::Config) -> Option<Problem> {
    let error = of_audit(config).err()?;
    Some(Problem { key: "gate.audit.addresses".into(), message: error.to_string() })
}
