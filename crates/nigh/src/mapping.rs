//! The mask's address mappings for the gate's audit log.

use gate::audit::{Addresses, Mapping, MappingName};
use mask::{
    key::read_key,
    mapping::{CryptoPan, IpcryptPfx},
};
use std::{fmt, net::IpAddr, sync::Arc};

/// A function of addresses whose debug output hides its key.
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

/// The mapping that `gate.audit.addresses` names.
///
/// # Errors
/// When its key cannot be read.
pub(crate) fn mapping(wanted: &Addresses) -> Result<Arc<dyn Mapping>, job::Error> {
    let key = read_key::<32>(&wanted.key)?;
    Ok(match wanted.mapping {
        name @ MappingName::CryptoPan => {
            let mapping = CryptoPan::new(&key);
            Arc::new(By(name, move |address| mapping.map(address)))
        }
        name @ MappingName::IpcryptPfx => {
            let mapping = IpcryptPfx::new(&key)?;
            Arc::new(By(name, move |address| mapping.map(address)))
        }
    })
}
