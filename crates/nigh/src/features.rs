//! The features whose sections are in the configuration file, started, asked and stopped together.
//!
//! A feature is a crate with a `Config`, a `Service` and a `control::Request`; this is the only place
//! that knows which features there are beside the command line and the file's sections.

mod live;

use crate::config::Sections;
use echo::config::Mode;
use prometheus_client::encoding::DescriptorEncoder;
use serde_json::{Map, Value};
use std::fmt;
use tokio::{sync::Mutex, task::JoinHandle};

/// A feature did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The responder.
    #[error(transparent)]
    Echo(#[from] echo::service::StartError),
    /// The oracle.
    #[error(transparent)]
    Oracle(#[from] oracle::service::StartError),
    /// The measuring station.
    #[error(transparent)]
    Probe(#[from] probe::service::StartError),
    /// The gate.
    #[error(transparent)]
    Gate(#[from] gate::service::StartError),
    /// The mapping of addresses in the gate's audit.
    #[error("gate.audit.addresses: {0}")]
    Mapping(#[from] crate::mapping::MappingError),
}

/// A changed configuration could not be put in force; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// A section came or went, and what a feature needs at its start is gone.
    #[error("[{0}] came or went: restart the daemon to apply")]
    Section(&'static str),
    /// It wants a program, and the right to load one is gone (docs/decisions/050-capabilities.md).
    #[error(
        "echo.mode: `kernel` was in force and the right to load a program was given up: restart the \
         daemon to apply"
    )]
    Mode,
    /// The responder refuses it.
    #[error(transparent)]
    Echo(#[from] echo::service::ReloadError),
    /// The oracle refuses it.
    #[error(transparent)]
    Oracle(#[from] oracle::service::ReloadError),
    /// The measuring station refuses it.
    #[error(transparent)]
    Probe(#[from] probe::service::ReloadError),
    /// The gate refuses it.
    #[error(transparent)]
    Gate(#[from] gate::service::ReloadError),
}

/// A request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The feature is not configured.
    #[error("there is no section [{0}] in the configuration of this node")]
    Absent(&'static str),
    /// The responder refuses it.
    #[error(transparent)]
    Echo(#[from] echo::service::ControlError),
    /// The oracle refuses it.
    #[error(transparent)]
    Oracle(#[from] oracle::service::ControlError),
    /// The measuring station refuses it.
    #[error(transparent)]
    Probe(#[from] probe::service::ControlError),
    /// The gate refuses it.
    #[error(transparent)]
    Gate(#[from] gate::service::ControlError),
}

/// Features that hold what needs a right, and not yet a thread: a thread that is started before rights
/// are given up keeps them.
pub struct Opened {
    echo: Option<(echo::service::Service, Mode)>,
    oracle: Option<oracle::service::Opened>,
    probe: Option<probe::service::Opened>,
    gate: Option<gate::service::Opened>,
}

impl Opened {
    /// Opens everything that the sections name.
    ///
    /// # Errors
    ///
    /// What is named cannot be had; what was done until then is undone.
    pub async fn open(sections: Sections, drained: bool) -> Result<Self, StartError> {
        let mapping = sections.gate.as_ref().map(crate::mapping::of_audit).transpose()?.flatten();
        let oracle = sections.oracle.map(oracle::service::Opened::open).transpose()?;
        let probe = sections.probe.map(probe::service::Opened::open).transpose()?;
        let open = |config| gate::service::Opened::open(config, mapping);
        let gate = sections.gate.map(open).transpose()?;
        let echo = match sections.echo {
            None => None,
            Some(config) => {
                let mode = config.echo.mode;
                match echo::service::Service::start(config, drained).await {
                    Ok(echo) => Some((echo, mode)),
                    Err(error) => {
                        if let Some(gate) = gate {
                            gate.give_back();
                        }
                        return Err(error.into());
                    }
                }
            }
        };
        Ok(Self { echo, oracle, probe, gate })
    }

    /// Starts what was opened; after rights were given up.
    ///
    /// # Errors
    ///
    /// A feature cannot start; what runs is stopped.
    pub async fn start(self) -> Result<Features, StartError> {
        let (echo, mode) = self.echo.unzip();
        let oracle = match self.oracle {
            None => None,
            Some(oracle) => match oracle.start().await {
                Ok(oracle) => Some(oracle),
                Err(error) => {
                    if let Some(echo) = &echo {
                        echo.stop().await;
                    }
                    if let Some(gate) = self.gate {
                        gate.give_back();
                    }
                    return Err(error.into());
                }
            },
        };
        let mode = Mutex::new(mode);
        let gate = self.gate.map(gate::service::Opened::start).transpose();
        let (gate, failed) = gate.map_or_else(|error| (None, Some(error)), |gate| (gate, None));
        let features = Features { echo, oracle, probe: None, live: None, gate, mode };
        if let Some(error) = failed {
            features.stop().await;
            return Err(error.into());
        }
        match self.probe.map(probe::service::Opened::start).transpose() {
            Ok(probe) => {
                let live = probe.as_ref().zip(features.oracle.as_ref()).map(live::join);
                Ok(Features { probe, live, ..features })
            }
            Err(error) => {
                features.stop().await;
                Err(error.into())
            }
        }
    }

    /// Takes back what was opened.
    pub async fn stop(self) {
        if let Some((echo, _)) = self.echo {
            echo.stop().await;
        }
        if let Some(gate) = self.gate {
            gate.stop();
        }
    }
}

/// The running features; at least one.
#[derive(Debug)]
pub struct Features {
    echo: Option<echo::service::Service>,
    oracle: Option<oracle::service::Service>,
    probe: Option<probe::service::Service>,
    gate: Option<gate::service::Service>,
    /// Tells the oracle what the station measures, where there are both.
    live: Option<JoinHandle<()>>,
    /// `echo.mode` in force; held while a reload runs, so that two do not mix.
    mode: Mutex<Option<Mode>>,
}

impl Features {
    /// Why the node is not healthy, a sentence each; empty when it is.
    pub fn ailments(&self) -> Vec<String> {
        let echo = self.echo.iter().flat_map(echo::service::Service::ailments);
        let oracle = self.oracle.iter().flat_map(oracle::service::Service::ailments);
        let probe = self.probe.iter().flat_map(probe::service::Service::ailments);
        let gate = self.gate.iter().flat_map(gate::service::Service::ailments);
        echo.chain(oracle).chain(probe).chain(gate).collect()
    }

    /// Adds each feature's state under its noun.
    pub fn status(&self, state: &mut Map<String, Value>) {
        if let Some(echo) = &self.echo {
            state.insert("echo".into(), echo.status());
        }
        if let Some(oracle) = &self.oracle {
            state.insert("oracle".into(), oracle.status());
        }
        if let Some(probe) = &self.probe {
            state.insert("probe".into(), probe.status());
        }
        if let Some(gate) = &self.gate {
            state.insert("gate".into(), gate.status());
        }
    }

    /// The same for people.
    pub fn render(&self) -> String {
        let echo = self.echo.iter().map(echo::service::Service::render);
        let oracle = self.oracle.iter().map(oracle::service::Service::render);
        let probe = self.probe.iter().map(probe::service::Service::render);
        let gate = self.gate.iter().map(gate::service::Service::render);
        echo.chain(oracle).chain(probe).chain(gate).collect::<Vec<_>>().join("\n")
    }

    /// Adds all metrics.
    ///
    /// # Errors
    ///
    /// The encoder's.
    pub fn collect(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.echo.iter().try_for_each(|echo| echo.collect(encoder))?;
        self.oracle.iter().try_for_each(|oracle| oracle.collect(encoder))?;
        self.probe.iter().try_for_each(|probe| probe.collect(encoder))?;
        self.gate.iter().try_for_each(|gate| gate.collect(encoder))
    }

    /// Asks the responder.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn echo(&self, request: echo::control::Request) -> Result<Value, ControlError> {
        let echo = self.echo.as_ref().ok_or(ControlError::Absent("echo"))?;
        Ok(echo.control(request).await?)
    }

    /// Asks the oracle.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn oracle(&self, request: oracle::control::Request) -> Result<Value, ControlError> {
        let oracle = self.oracle.as_ref().ok_or(ControlError::Absent("oracle"))?;
        let reloads = matches!(request, oracle::control::Request::Reload);
        let _alone = if reloads { Some(self.mode.lock().await) } else { None };
        Ok(oracle.control(request).await?)
    }

    /// Asks the measuring station.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn probe(&self, request: probe::control::Request) -> Result<Value, ControlError> {
        let probe = self.probe.as_ref().ok_or(ControlError::Absent("probe"))?;
        Ok(probe.control(request).await?)
    }

    /// Asks the gate.
    ///
    /// # Errors
    ///
    /// See [`ControlError`].
    pub async fn gate(&self, request: gate::control::Request) -> Result<Value, ControlError> {
        let gate = self.gate.as_ref().ok_or(ControlError::Absent("gate"))?;
        Ok(gate.control(request).await?)
    }

    /// Runs a test for who asks by HTTP; `None` without the section `[probe]`.
    pub async fn probe_request(
        &self,
        token: Option<&str>,
        body: &[u8],
    ) -> Option<Result<Value, probe::service::RequestError>> {
        Some(self.probe.as_ref()?.request(token, body).await)
    }

    /// Shows what was measured to who asks by HTTP; `None` without the section `[probe]`.
    pub async fn probe_show(
        &self,
        ask: probe::show::Ask,
    ) -> Option<Result<String, probe::service::ShowError>> {
        Some(self.probe.as_ref()?.show(ask).await)
    }

    /// Puts changed sections in force, all of them or none; what did not change keeps its counters
    /// and sessions.
    ///
    /// # Errors
    ///
    /// See [`ReloadError`].
    pub async fn reload(&self, sections: Sections) -> Result<(), ReloadError> {
        let mut mode = self.mode.lock().await;
        for (name, wanted, there) in [
            ("echo", sections.echo.is_some(), self.echo.is_some()),
            ("oracle", sections.oracle.is_some(), self.oracle.is_some()),
            ("probe", sections.probe.is_some(), self.probe.is_some()),
            ("gate", sections.gate.is_some(), self.gate.is_some()),
        ] {
            if wanted != there {
                return Err(ReloadError::Section(name));
            }
        }
        let wanted = sections.echo.as_ref().map(|config| config.echo.mode);
        if *mode == Some(Mode::Kernel) && wanted != Some(Mode::Kernel) {
            return Err(ReloadError::Mode);
        }
        // What can fail of probe and oracle is done beside what is in force, and put in force last.
        let measuring = match (&self.probe, sections.probe) {
            (Some(probe), Some(config)) => Some((probe, probe.prepare(config)?)),
            _ => None,
        };
        let gating = match (&self.gate, sections.gate) {
            (Some(gate), Some(config)) => Some((gate, gate.prepare(config).await?)),
            _ => None,
        };
        let prepared = match (&self.oracle, sections.oracle) {
            (Some(oracle), Some(config)) => Some((oracle, oracle.prepare(config).await?)),
            _ => None,
        };
        if let (Some(echo), Some(config)) = (&self.echo, sections.echo) {
            if let Err(error) = echo.reload(config).await {
                if let Some((oracle, prepared)) = prepared {
                    oracle.discard(prepared).await;
                }
                return Err(error.into());
            }
            *mode = wanted;
        }
        if let Some((oracle, prepared)) = prepared {
            oracle.put_in_force(prepared).await?;
        }
        if let Some((probe, prepared)) = measuring {
            probe.put_in_force(prepared);
        }
        if let Some((gate, prepared)) = gating {
            gate.put_in_force(prepared).await;
        }
        Ok(())
    }

    /// Drains what is announced; returns when arrivals are quiet.
    pub async fn drain(&self) {
        if let Some(echo) = &self.echo {
            echo.drain().await;
        }
    }

    /// Ends a drain.
    pub async fn undrain(&self) {
        if let Some(echo) = &self.echo {
            echo.undrain().await;
        }
    }

    /// Stops everything.
    pub async fn stop(&self) {
        if let Some(live) = &self.live {
            live.abort();
        }
        if let Some(probe) = &self.probe {
            probe.stop().await;
        }
        if let Some(oracle) = &self.oracle {
            oracle.stop().await;
        }
        if let Some(echo) = &self.echo {
            echo.stop().await;
        }
        if let Some(gate) = &self.gate {
            gate.stop().await;
        }
    }
}
