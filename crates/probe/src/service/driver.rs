//! The STAMP reflector in the driver, loaded and attached while there are the rights to it.

use crate::{config::Config, stamp::ErrorEstimate};
use datapath::{
    port::{Attached, Port},
    stamp::{AttachError, AttachMode, LoadError, SessionError, StampProgram},
};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tracing::info;

/// Time from one look for interfaces to the next.
const LOOK: Duration = Duration::from_secs(1);

/// The reflector cannot be put into the driver.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The kernel refuses the program.
    #[error("probe.reflector.interfaces: {0}")]
    Load(#[from] LoadError),
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
    ports: Mutex<Vec<Port>>,
}

impl Driver {
    pub(super) fn program(&self) -> Arc<StampProgram> {
        self.program.clone()
    }

    fn ports(&self) -> MutexGuard<'_, Vec<Port>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The problems, a sentence each.
    pub(super) fn problems(&self) -> Vec<String> {
        let ports = self.ports();
        let not_there = ports.iter().filter(|port| port.mode().is_none());
        let problem = not_there.map(|port| match port.why() {
            Some(why) => format!("probe: interface {}: {why}", port.name()),
            None => format!(
                "probe: interface {} does not exist, or the XDP program was detached from it",
                port.name()
            ),
        });
        problem.collect()
    }

    /// Takes the program off its interfaces.
    pub(super) fn close(&self) {
        self.ports().clear();
    }

    /// Looks for interfaces that have appeared, once a second, until it is aborted.
    pub(super) async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            for port in self.ports().iter_mut() {
                port.look(|index| attach(&self.program, index));
            }
        }
    }
}

/// Loads and attaches the program where the configuration wants it.
pub(super) fn open(config: &Config) -> Result<Option<Arc<Driver>>, DriverError> {
    let reflector = &config.probe.reflector;
    if reflector.interfaces.is_empty() {
        return Ok(None);
    }
    let program = Arc::new(StampProgram::load(ErrorEstimate::from_ns(None).0)?);
    for address in config.own().into_iter().flat_map(|own| &own.addresses) {
        program.serve(SocketAddr::new(*address, reflector.port))?;
    }
    let open = |name: &String| {
        let port = Port::open(name, |index| attach(&program, index))
            .map_err(|source| DriverError::Attach { interface: name.clone(), source })?;
        if let Some(mode) = port.mode() {
            info!(interface = name, ?mode, why = port.why(), "reflects plain STAMP packets in XDP");
        }
        Ok::<_, DriverError>(port)
    };
    let ports = reflector.interfaces.iter().map(open).collect::<Result<_, _>>()?;
    Ok(Some(Arc::new(Driver { program, ports: Mutex::new(ports) })))
}

/// In the driver, or behind it where that does not work.
fn attach(program: &StampProgram, index: u32) -> Result<Attached, AttachError> {
    match program.attach(index, AttachMode::Native) {
        Ok(attachment) => Ok((Some(attachment), None)),
        Err(native) => {
            let attachment = program.attach(index, AttachMode::Generic)?;
            Ok((Some(attachment), Some(native.to_string())))
        }
    }
}
