//! The job `oracle`, for the registry.

use crate::{
    config::{Config, OracleConfig, RENAMED},
    service::{Opened, Service},
};
use config::Problem;
use datapath::oracle::{OracleProgram, lacks};
use job::{
    Ability, Capabilities, Capability, Error, Interface, Job, Node, Renamed, Section, file::Reader,
};

/// The oracle.
#[derive(Clone, Copy, Debug)]
pub struct Oracle;

impl Job for Oracle {
    type Config = Config;
    type Opened = Opened;
    type Service = Service;

    fn name(&self) -> &'static str {
        "oracle"
    }

    fn sections(&self) -> Vec<Section> {
        vec![Section::new::<OracleConfig>("oracle")]
    }

    fn renamed(&self) -> Renamed {
        RENAMED
    }

    /// BPF, PERFMON and NET_ADMIN load and attach the program that answers in the driver, and
    /// NET_BIND_SERVICE is for what listens on ports below 1024. NET_ADMIN stays, for socket buffers
    /// beyond the system's bound after a reload.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            start: &[
                Capability::CAP_BPF,
                Capability::CAP_PERFMON,
                Capability::CAP_NET_ADMIN,
                Capability::CAP_NET_BIND_SERVICE,
            ],
            keep: &[Capability::CAP_NET_ADMIN],
        }
    }

    fn read(&self, file: &mut Reader<'_, '_>, node: &Node) -> Option<Config> {
        let Node { name, state } = node.clone();
        let oracle = file.section::<OracleConfig>("oracle")??;
        Some(Config { node: name, state, oracle })
    }

    fn interfaces(&self, config: &Config) -> Vec<String> {
        config.oracle.interfaces.clone()
    }

    fn ability(&self, interfaces: &[Interface]) -> Ability {
        let without = Ability::other_way("sockets answer all requests, which is slower");
        match (OracleProgram::load(), lacks()) {
            (Err(error), _) => without.without_program(&error),
            (Ok(_), Some(lacks)) => without.and(&format!("this kernel has no {lacks}")),
            (Ok(_), None) => Ability::in_xdp("answers plain requests", interfaces),
        }
    }

    fn problems(&self, config: &Config) -> Vec<Problem> {
        config.problems()
    }

    fn warnings(&self, config: &Config) -> Vec<Problem> {
        config.warnings()
    }

    async fn open(&self, config: Config, _: bool) -> Result<Opened, Error> {
        Ok(Opened::open(config)?)
    }

    async fn start(&self, opened: Opened) -> Result<Service, Error> {
        Ok(opened.start().await?)
    }
}
