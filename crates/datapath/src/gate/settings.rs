//! The settings of a gate, at its start and while it runs.

use crate::link::HookKind;
use std::path::PathBuf;

/// What happens to packets of undecided flows while user space does not respond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// They pass.
    #[default]
    Pass,
    /// They are dropped.
    Drop,
}

/// What may change while the gate runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The outcome of undecided packets when user space is silent for two seconds or the ring is full.
    pub on_failure: OnFailure,
    /// First packets with payload that are copied of each flow.
    pub packets: u32,
    /// Holds what is undecided, until it is decided and released.
    pub hold: bool,
    /// Interface index of the device where limited packets from internal hosts queue.
    pub queue: Option<u32>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { on_failure: OnFailure::Pass, packets: 8, hold: false, queue: None }
    }
}

/// What a gate is opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The folder in a BPF file system where maps and links stay when the process ends, such as
    /// [`super::home`]; `None`: they go with it.
    pub pin: Option<PathBuf>,
    /// Decided flows that there is room for.
    pub max_flows: u32,
    /// Undecided flows that there is room for; the longest unused is evicted.
    pub fresh_flows: u32,
    /// Refusals that there is room for; the longest unused is evicted.
    pub refusals: u32,
    /// Bytes of the ring, a power of two, 256 KiB at least.
    pub ring_bytes: u32,
    /// By what the programs get to interfaces; `None`: TCX if the kernel has it, else clsact.
    pub hook_kind: Option<HookKind>,
    /// What may change.
    pub rules: Rules,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pin: None,
            max_flows: 262_144,
            fresh_flows: 65_536,
            refusals: 65_536,
            ring_bytes: 16 << 20,
            hook_kind: None,
            rules: Rules::default(),
        }
    }
}
