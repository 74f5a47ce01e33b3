//! The job `echo`, for the registry.

use crate::{
    config::{AnycastConfig, Config, EchoConfig},
    service::Service,
};
use config::Problem;
use datapath::echo::EchoProgram;
use job::{
    Ability, Capabilities, Capability, Error, Interface, Job, Node, Section, Service as _,
    file::Reader,
};

/// The responder and its anycast announcement.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl Job for Echo {
    type Config = Config;
    /// It works as soon as it is open and has no threads.
    type Opened = Service;
    type Service = Service;

    fn name(&self) -> &'static str {
        "echo"
    }

    fn sections(&self) -> Vec<Section> {
        vec![Section::new::<EchoConfig>("echo"), Section::new::<AnycastConfig>("anycast")]
    }

    /// BPF, PERFMON and NET_ADMIN load programs and attach them, NET_RAW opens the packet sockets of
    /// health probes. NET_ADMIN stays, to add service addresses to `lo` and remove them, and NET_RAW
    /// for the probes of an interface that appears later. A loaded program is attached, configured and
    /// read without capabilities.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            start: &[
                Capability::CAP_BPF,
                Capability::CAP_PERFMON,
                Capability::CAP_NET_ADMIN,
                Capability::CAP_NET_RAW,
            ],
            keep: &[Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW],
        }
    }

    fn read(&self, file: &mut Reader<'_, '_>, node: &Node) -> Option<Config> {
        let echo = file.section::<EchoConfig>("echo");
        let anycast = file.section::<AnycastConfig>("anycast");
        if echo.is_none() && anycast.is_some() && !file.found_unknown_section() {
            let message = "[anycast] announces what [echo] answers: add a section `[echo]`";
            file.error_at("anycast", "echo", message.into());
        }
        let anycast = match anycast {
            None => None,
            Some(anycast) => Some(anycast?),
        };
        let Node { name, state } = node.clone();
        Some(Config { node: name, state, echo: echo??, anycast })
    }

    fn interfaces(&self, config: &Config) -> Vec<String> {
        config.echo.interfaces.clone()
    }

    fn ability(&self, interfaces: &[Interface]) -> Ability {
        const WITHOUT: &str =
            "the kernel itself answers (`mode = \"kernel\"`), without limits and counters";
        match EchoProgram::load() {
            Ok(_) => Ability::in_xdp("answers", interfaces),
            Err(error) => Ability::other_way(WITHOUT).without_program(&error),
        }
    }

    fn problems(&self, config: &Config) -> Vec<Problem> {
        config.problems()
    }

    fn warnings(&self, config: &Config) -> Vec<Problem> {
        config.warnings()
    }

    async fn open(&self, config: Config, drained: bool) -> Result<Service, Error> {
        Ok(Service::start(config, drained).await?)
    }

    async fn start(&self, opened: Service) -> Result<Service, Error> {
        Ok(opened)
    }

    async fn close(&self, opened: Service) {
        opened.stop().await;
    }
}
