//! The STAMP reflector in the driver, loaded and attached while there are the rights to it.

use crate::{config::Config, stamp::ErrorEstimate};
use datapath::stamp::{AttachError, AttachMode, Attachment, LoadError, SessionError, StampProgram};
use std::{net::SocketAddr, sync::Arc};
use tracing::{info, warn};

/// The reflector cannot be put into the driver.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The kernel refuses the program.
    #[error("probe.reflector.interfaces: {0}")]
    Load(#[from] LoadError),
    /// There is no such interface.
    #[error("probe.reflector.interfaces: there is no interface {0}")]
    Interface(String),
    /// The interface refuses it.
    #[error("probe.reflector.interfaces: {interface}: {source}")]
    Attach {
        /// Which one.
        interface: String,
        /// Why.
        source: AttachError,
    },
    /// It cannot be given its addresses.
    #[error("probe.reflector.port: {0}")]
    Serve(#[from] SessionError),
}

/// The program, attached.
#[derive(Debug)]
pub(super) struct Driver {
    program: Arc<StampProgram>,
    _attachments: Vec<Attachment>,
}

impl Driver {
    pub(super) fn program(&self) -> Arc<StampProgram> {
        self.program.clone()
    }
}

/// Loads and attaches the program where the configuration wants it.
pub(super) fn open(config: &Config) -> Result<Option<Driver>, DriverError> {
    let reflector = &config.probe.reflector;
    if reflector.interfaces.is_empty() {
        return Ok(None);
    }
    let program = Arc::new(StampProgram::load(ErrorEstimate::from_ns(None).0)?);
    for address in config.own().into_iter().flat_map(|own| &own.addresses) {
        program.serve(SocketAddr::new(*address, reflector.port))?;
    }
    let mut attachments = Vec::new();
    for name in &reflector.interfaces {
        let index = nix::net::if_::if_nametoindex(name.as_str());
        let index = index.map_err(|_| DriverError::Interface(name.clone()))?;
        let attached = program.attach(index, AttachMode::Native).or_else(|error| {
            warn!(interface = name, %error, "reflects behind the driver instead of in it");
            program.attach(index, AttachMode::Generic)
        });
        let error = |source| DriverError::Attach { interface: name.clone(), source };
        attachments.push(attached.map_err(error)?);
        info!(interface = name, "reflects plain STAMP packets in the driver");
    }
    Ok(Some(Driver { program, _attachments: attachments }))
}
