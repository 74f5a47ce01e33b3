//! The job `probe`, for the registry.

use crate::stamp::ErrorEstimate;
use crate::{
    config::{Config, ProbeConfig, RENAMED},
    service::{Opened, Service},
};
use config::Problem;
use datapath::stamp::StampProgram;
use job::{
    Ability, Capabilities, Capability, Error, How, Interface, Job, Node, Renamed, Section, ability,
    file::Reader,
};

/// The measuring station.
#[derive(Clone, Copy, Debug)]
pub struct Probe;

impl Job for Probe {
    type Config = Config;
    type Opened = Opened;
    type Service = Service;

    fn name(&self) -> &'static str {
        "probe"
    }

    fn sections(&self) -> Vec<Section> {
        vec![Section::new::<ProbeConfig>("probe")]
    }

    fn renamed(&self) -> Renamed {
        RENAMED
    }

    /// BPF, PERFMON and NET_ADMIN load and attach the reflector's program, NET_RAW is for raw sockets,
    /// NET_BIND_SERVICE for what listens on ports below 1024. NET_RAW stays for pings where
    /// `net.ipv4.ping_group_range` leaves them out, NET_ADMIN for receive buffers beyond the system's
    /// bound.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            start: &[
                Capability::CAP_BPF,
                Capability::CAP_PERFMON,
                Capability::CAP_NET_ADMIN,
                Capability::CAP_NET_RAW,
                Capability::CAP_NET_BIND_SERVICE,
            ],
            keep: &[Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW],
        }
    }

    fn read(&self, file: &mut Reader<'_, '_>, node: &Node) -> Option<Config> {
        let Node { name, state } = node.clone();
        let probe = file.section::<ProbeConfig>("probe")??;
        Some(Config { node: name, state, probe })
    }

    fn interfaces(&self, config: &Config) -> Vec<String> {
        config.probe.reflector.interfaces.clone()
    }

    fn ability(&self, interfaces: &[Interface]) -> Ability {
        let ability = match StampProgram::load(ErrorEstimate::from_ns(None).0) {
            Ok(_) => Ability::in_xdp("reflects", interfaces),
            Err(error) => Ability::other_way("a socket reflects, later than the driver would")
                .without_program(&error),
        };
        if ability.how == How::Unknown {
            return ability;
        }
        let times = |it: &Interface| it.send_timestamps.is_some_and(|times| times.software);
        match ability::names(interfaces, |it| it.exists && !times(it)).as_str() {
            "" => ability,
            names => ability.and(&format!(
                "no times of sent packets on {names}, so larger error bounds of delays"
            )),
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
        Ok(opened.start()?)
    }
}
