//! The job `gate`, for the registry.

use crate::{
    audit::{Addresses, Mapping},
    config::{Config, GateConfig, RENAMED},
    service::{self, Opened, Service},
};
use config::Problem;
use job::{
    Capabilities, Capability, Close, Error, Job, Node, Renamed, Section, User, file::Reader,
};
use std::{fmt, sync::Arc};

/// The gate.
#[derive(Clone, Copy)]
pub struct Gate {
    /// Gives the mapping that `gate.audit.addresses` names. Mappings are not the gate's: who puts the
    /// jobs together has them.
    pub mapping: fn(&Addresses) -> Result<Arc<dyn Mapping>, Error>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

/// There is no mapping for the addresses in the audit.
#[derive(Debug, thiserror::Error)]
#[error("gate.audit.addresses: {0}")]
struct MappingError(Error);

impl Gate {
    fn mapping(&self, config: &Config) -> Result<Option<Arc<dyn Mapping>>, Error> {
        let audit = config.gate.audit.as_ref();
        audit.and_then(|audit| audit.addresses.as_ref()).map(self.mapping).transpose()
    }
}

impl Job for Gate {
    type Config = Config;
    type Opened = Opened;
    type Service = Service;

    fn name(&self) -> &'static str {
        "gate"
    }

    fn sections(&self) -> Vec<Section> {
        vec![Section::new::<GateConfig>("gate")]
    }

    fn renamed(&self) -> Renamed {
        RENAMED
    }

    /// BPF, PERFMON and NET_ADMIN load programs and attach them, NET_RAW opens the socket for held
    /// packets. NET_ADMIN stays for shapers and for an interface that comes again.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            start: &[
                Capability::CAP_BPF,
                Capability::CAP_PERFMON,
                Capability::CAP_NET_ADMIN,
                Capability::CAP_NET_RAW,
            ],
            keep: &[Capability::CAP_NET_ADMIN],
        }
    }

    fn read(&self, file: &mut Reader<'_, '_>, node: &Node) -> Option<Config> {
        let Node { name, state } = node.clone();
        let gate = file.section::<GateConfig>("gate")??;
        Some(Config { node: name, state, gate })
    }

    fn problems(&self, config: &Config) -> Vec<Problem> {
        let mut problems = config.problems();
        if let Err(error) = self.mapping(config) {
            problems.push(Problem::new("gate.audit.addresses", error.to_string()));
        }
        problems
    }

    fn warnings(&self, config: &Config) -> Vec<Problem> {
        config.warnings()
    }

    /// Maps that outlive the process need a file system of their own.
    fn privileged(&self, _: &Config, becomes: Option<&User>) {
        service::mount(becomes);
    }

    async fn open(&self, config: Config, _: bool) -> Result<Opened, Error> {
        let mapping = self.mapping(&config).map_err(MappingError)?;
        Ok(Opened::open(config, mapping)?)
    }

    async fn start(&self, opened: Opened) -> Result<Service, Error> {
        Ok(opened.start()?)
    }

    async fn close(&self, opened: Opened, why: Close) {
        match why {
            Close::Failed => opened.give_back(),
            Close::Stopped => opened.stop(),
        }
    }
}
