//! The interfaces towards the internal hosts, by name: one that went and came again has another number, and
//! the gate is put on it again.

use super::{classes::Classes, problems::Problems, shape::Shapers};
use crate::config::{GateConfig, RefuseAt};
use datapath::gate::{AttachError, AttachMode, Gate};
use nix::net::if_::if_nametoindex;
use tracing::{info, warn};

/// An interface.
#[derive(Debug)]
struct Interface {
    name: String,
    /// 0 while there is none.
    index: u32,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Internal {
    interfaces: Vec<Interface>,
    refuse_at: RefuseAt,
}

impl Internal {
    /// Finds those that a configuration names; one that is missing is waited for.
    pub(super) fn find(config: &GateConfig) -> Self {
        let find = |name: &String| {
            let index = if_nametoindex(name.as_str()).unwrap_or(0);
            if index == 0 {
                warn!("there is no interface {name} yet; it is used when it appears");
            }
            Interface { name: name.clone(), index }
        };
        let interfaces = config.internal.iter().map(find).collect();
        Self { interfaces, refuse_at: config.refuse_at }
    }

    /// The numbers of those that are there.
    pub(super) fn indices(&self) -> Vec<u32> {
        self.there().map(|interface| interface.index).collect()
    }

    fn there(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.iter().filter(|interface| interface.index != 0)
    }

    /// Puts the gate on all that are there, and takes it off all others.
    pub(super) fn attach(&self, gate: &Gate) -> Result<(), AttachError> {
        let indices = self.indices();
        for index in gate.interfaces() {
            if !indices.contains(&index) || !gate.is_attached(index) {
                gate.detach(index);
            } else if self.refuse_at == RefuseAt::Stack {
                gate.detach_driver(index);
            }
        }
        self.there().try_for_each(|interface| attach(gate, interface, self.refuse_at))
    }

    /// Looks whether all are there as they were; takes up those that have appeared or came again. Whether there
    /// were any.
    pub(super) fn look(
        &mut self,
        gate: &Gate,
        shapers: &mut Shapers,
        classes: &Classes,
        problems: &mut Problems,
    ) -> bool {
        let mut any = false;
        let mut missing = Vec::new();
        for interface in &mut self.interfaces {
            let name = interface.name.as_str();
            let Ok(index) = if_nametoindex(name) else {
                missing.push(name);
                continue;
            };
            if index == interface.index && gate.is_attached(index) {
                continue;
            }
            if interface.index != 0 {
                gate.detach(interface.index);
            }
            let before = std::mem::replace(&mut interface.index, index);
            if let Err(error) = attach(gate, interface, self.refuse_at) {
                problems.report("the gate is not attached to an interface that appeared", &error);
                continue;
            }
            info!(interface = %interface.name, "is there");
            any = true;
            if let Err(error) = shapers.replace(before, index, classes) {
                problems.report("a limit is not in force", &error);
            }
        }
        if !missing.is_empty() {
            problems.report("an interface does not exist", &missing.join(", "));
        }
        any
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
