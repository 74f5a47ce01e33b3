//! `nigh check --kernel`: what this kernel and its interfaces can do for each job. docs/kernels.md describes
//! the output.

use crate::jobs;
use datapath::{
    capabilities::{self, Capability},
    kernel::{self, FEATURES, Interface, Timestamps},
};
use job::{Ability, Configured, How};
use serde::Serialize;
use std::collections::BTreeMap;
use terminal::text;

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Kernel {
    /// The kernel's version, as `uname -r` prints it.
    kernel: String,
    /// Who asks.
    caller: Caller,
    /// Who may load programs: 0 everybody, 1 and 2 those with CAP_BPF.
    unprivileged_bpf_disabled: Option<u8>,
    /// What the kernel has; none if the caller may not find out.
    features: BTreeMap<&'static str, Option<bool>>,
    /// The interfaces.
    interfaces: Vec<Interface>,
    /// What each job can do.
    jobs: Vec<JobAbility>,
}

/// Who asks.
#[derive(Clone, Debug, Serialize)]
struct Caller {
    uid: u32,
    /// The capabilities that it has of those that jobs need.
    capabilities: Vec<String>,
    /// Those that it has not.
    missing: Vec<String>,
}

/// What a job can do.
#[derive(Clone, Debug, Serialize)]
struct JobAbility {
    job: &'static str,
    #[serde(flatten)]
    ability: Ability,
}

/// What jobs need at their start; CAP_SYS_ADMIN is the lab's, for namespaces.
const CAPABILITIES: [Capability; 6] = [
    Capability::CAP_BPF,
    Capability::CAP_PERFMON,
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_NET_BIND_SERVICE,
    Capability::CAP_SYS_ADMIN,
];

impl Kernel {
    /// Finds it out, for these interfaces; a job of the configuration is asked about its own.
    pub fn probe(interfaces: Vec<Interface>, configured: Option<&Configured>) -> Self {
        let missing = capabilities::missing(&CAPABILITIES);
        let (missing, has): (Vec<_>, Vec<_>) =
            CAPABILITIES.into_iter().partition(|it| missing.contains(it));
        let names = |these: &[Capability]| these.iter().map(ToString::to_string).collect();
        let caller = Caller {
            uid: nix::unistd::geteuid().as_raw(),
            capabilities: names(&has),
            missing: names(&missing),
        };
        let mut jobs = jobs::registry().abilities(configured, &interfaces);
        jobs.push(("mask", mask::live::ability()));
        jobs.push(("lab", lab::ability(&interfaces)));
        jobs.push(("psock", Ability::works("needs TCP sockets only")));
        Self {
            kernel: kernel::version(),
            caller,
            unprivileged_bpf_disabled: kernel::unprivileged_bpf_disabled(),
            features: FEATURES.iter().map(|it| (it.key, it.probe().ok())).collect(),
            interfaces,
            jobs: jobs.into_iter().map(|(job, ability)| JobAbility { job, ability }).collect(),
        }
    }

    /// Whether no job is known not to work.
    pub fn is_enough(&self) -> bool {
        self.jobs.iter().all(|job| job.ability.how != How::Fails)
    }

    /// For people.
    pub fn render(&self) -> String {
        let Caller { uid, capabilities, missing } = &self.caller;
        let list = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => names.join(" "),
        };
        let mut lines = format!("kernel        Linux {}\nuser          {uid}\n", self.kernel);
        lines += &format!("capabilities  {}", list(capabilities));
        if !missing.is_empty() {
            lines += &format!("; missing: {}", list(missing));
        }
        let disabled = match self.unprivileged_bpf_disabled {
            Some(number) => number.to_string(),
            None => "unknown".to_owned(),
        };
        lines += &format!("\nunprivileged_bpf_disabled  {disabled}\n\n");
        lines + &self.features() + "\n" + &self.interfaces() + "\n" + &self.jobs()
    }

    fn features(&self) -> String {
        let mut table = text::table(["FEATURE", "", "USED FOR"], 3);
        for feature in FEATURES {
            let answer = match feature.probe() {
                Ok(true) => "yes".to_owned(),
                Ok(false) => "no".to_owned(),
                Err(missing) => format!("unknown without {}", capabilities::list(&missing)),
            };
            table.add_row([feature.name, &answer, feature.used_for]);
        }
        text::lines(&table)
    }

    fn interfaces(&self) -> String {
        let header = ["INTERFACE", "DRIVER", "XDP", "ZERO COPY", "RECEIVE TIMES", "SEND TIMES"];
        let mut table = text::table(header, 6);
        for it in &self.interfaces {
            if !it.exists {
                table.add_row([it.name.as_str(), "there is no such interface"]);
                continue;
            }
            let xdp = it.xdp.map_or("unknown", |mode| mode.name());
            let xdp = match it.xdp_program {
                Some(number) => format!("{xdp}, program {number} is there"),
                None => xdp.to_owned(),
            };
            let zero_copy = it.zero_copy.map_or("unknown", |can| if can { "yes" } else { "no" });
            let driver = it.driver.as_deref().unwrap_or("unknown");
            let times = [it.receive_timestamps, it.send_timestamps].map(times);
            table.add_row([&it.name, driver, &xdp, zero_copy, times[0], times[1]]);
        }
        text::lines(&table)
    }

    fn jobs(&self) -> String {
        let mut lines = String::new();
        for JobAbility { job, ability } in &self.jobs {
            // The end of a verifier's log stands below its job.
            let text = ability.text.replace('\n', "\n    ");
            lines += &format!("{job:6}  {:13}  {text}\n", ability.how.name());
        }
        lines
    }
}

fn times(times: Option<Timestamps>) -> &'static str {
    match times {
        None => "unknown",
        Some(Timestamps { hardware: true, software: true }) => "hardware, software",
        Some(Timestamps { hardware: true, software: false }) => "hardware",
        Some(Timestamps { hardware: false, software: true }) => "software",
        Some(Timestamps { hardware: false, software: false }) => "none",
    }
}
