//! The interfaces towards the internal hosts, by name: one that went and came again has another number, and
//! the gate is put on it again.

use super::{StartError, classes::Classes, problems::Problems, shape::Shapers};
use crate::config::{GateConfig, RefuseAt};
use datapath::gate::{AttachError, AttachMode, Gate};
use nix::net::if_::if_nametoindex;
use tracing::{info, warn};

/// An interface.
#[derive(Debug)]
struct Interface {
    name: String,
    index: u32,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Internal {
    interfaces: Vec<Interface>,
    refuse_at: RefuseAt,
}

impl Internal {
    /// Finds those that a configuration names.
    pub(super) fn find(config: &GateConfig) -> Result<Self, StartError> {
        let find = |name: &String| {
            let index = if_nametoindex(name.as_str()).map_err(|error| StartError::Interface {
                name: name.clone(),
                source: error.into(),
            })?;
            Ok(Interface { name: name.clone(), index })
        };
        let interfaces = config.internal.iter().map(find).collect::<Result<_, StartError>>()?;
        Ok(Self { interfaces, refuse_at: config.refuse_at })
    }

    /// Their numbers.
    pub(super) fn indices(&self) -> Vec<u32> {
        self.interfaces.iter().map(|interface| interface.index).collect()
    }

    /// Puts the gate on all of them, and takes it off all others.
    pub(super) fn attach(&self, gate: &Gate) -> Result<(), AttachError> {
        let indices = self.indices();
        for index in gate.interfaces() {
            if !indices.contains(&index) || !gate.is_attached(index) {
                gate.detach(index);
            } else if self.refuse_at == RefuseAt::Stack {
                gate.detach_driver(index);
            }
        }
        self.interfaces.iter().try_for_each(|interface| attach(gate, interface, self.refuse_at))
    }

    /// Looks whether all are there as they were; takes up those that came again.
    pub(super) fn look(
        &mut self,
        gate: &Gate,
        shapers: &mut Shapers,
        classes: &Classes,
        problems: &mut Problems,
    ) {
        for interface in &mut self.interfaces {
            let name = interface.name.as_str();
            let Ok(index) = if_nametoindex(name) else {
                problems.report("an interface is gone", &name);
                continue;
            };
            if index == interface.index && gate.is_attached(index) {
                continue;
            }
            gate.detach(interface.index);
            let before = std::mem::replace(&mut interface.index, index);
            if let Err(error) = attach(gate, interface, self.refuse_at) {
                problems.report(
                    "the gate is not attached to an interface that was created again",
                    &error,
                );
                continue;
            }
            info!(interface = %interface.name, "is there again");
            if let Err(error) = shapers.replace(before, index, classes) {
                problems.report("a limit is not in force", &error);
            }
        }
    }
}

fn attach(gate: &Gate, interface: &Interface, refuse_at: RefuseAt) -> Result<(), AttachError> {
    let Interface { name, index } = interface;
    gate.attach(*index)?;
    if refuse_at == RefuseAt::Stack {
        return Ok(());
    }
    gate.attach_driver(*index, AttachMode::Native).or_else(|error| {
        warn!(interface = %name, %error, "refuses where packets are made for the stack");
        gate.attach_driver(*index, AttachMode::Generic)
    })
}
