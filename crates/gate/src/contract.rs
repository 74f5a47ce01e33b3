//! The job `gate`, for the registry.

use crate::{
    audit::{Addresses, Mapping},
    config::{Config, GateConfig, RENAMED},
    parser::link::Program,
    service::{self, Opened, Service},
};
use config::Problem;
use datapath::{
    gate::{OpenError, Settings},
    kernel,
};
use job::{
    Ability, Capabilities, Capability, Error, How, Interface, Job, Node, Renamed, Section, User,
    file::Reader,
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

    fn interfaces(&self, config: &Config) -> Vec<String> {
        config.gate.internal.clone()
    }

    fn ability(&self, interfaces: &[Interface]) -> Ability {
        // As small as can be: nothing is attached.
        let settings = Settings {
            max_flows: 1024,
            fresh_flows: 1024,
            refusals: 1024,
            ring_bytes: 256 << 10,
            ..Settings::default()
        };
        let ability = match datapath::gate::Gate::open(&settings) {
            Err(OpenError::Load(error)) => {
                Ability::fails("no flow is seen").without_program(&error)
            }
            Err(error) => Ability::fails(error.to_string()),
            Ok(_) if kernel::tcx() => Ability::works("attached by TCX"),
            Ok(_) => Ability::other_way("attached by clsact, as this kernel has no TCX"),
        };
        let missing: Vec<_> = interfaces.iter().filter(|it| !it.exists).collect();
        let missing = missing.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
        let ability = match missing.as_str() {
            "" => ability,
            names => ability.and(&format!("waiting for {names}")),
        };
        match ability.how {
            How::Works | How::OtherWay if !kernel::htb() => Ability::other_way(ability.text)
                .and("limits do not work: there is no HTB (`modprobe sch_htb`)"),
            _ => ability,
        }
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
        Ok(Opened::open(config, mapping, Program::default())?)
    }

    async fn start(&self, opened: Opened) -> Result<Service, Error> {
        Ok(opened.start()?)
    }

    async fn close(&self, opened: Opened) {
        opened.give_back();
    }
}
