//! What looks at a flow's first packets: the engines.

use super::core::Inspect;
use crate::{config::GateConfig, event::Expectation};
use classify::{
    self, Engine,
    flow::{Flow, Side},
    label::{self, Category, Certainty, Classification, Label},
    packet::{Packet, Tcp},
};

/// The engines' settings from a configuration.
pub(super) fn settings(config: &GateConfig) -> classify::Settings {
    config.into()
}

/// The label of a flow that another one has announced.
pub(super) fn announced(expectation: &Expectation) -> Label {
    Label {
        application: expectation.application.into(),
        detail: None,
        category: Category::FileTransfer,
        certainty: Certainty::Certain,
        engine: label::Engine::Parser,
        reason: "announced by another flow".into(),
    }
}

impl Inspect for Engine {
    type State = classify::State;

    fn begin(&mut self, flow: &Flow, begins: [Option<u32>; 2]) -> Self::State {
        let mut state = classify::State::new();
        // Only packets with payload are copied out: the SYN shows where the bytes begin.
        for (from, begin) in [Side::Client, Side::Server].into_iter().zip(begins) {
            if let Some(sequence) = begin {
                let tcp = Some(Tcp { sequence, acknowledgement: 0, flags: Tcp::SYN });
                let syn = Packet { at_ns: 0, from, tcp, payload: &[], length: 0 };
                let _ = Engine::packet(self, flow, &mut state, &syn);
            }
        }
        state
    }

    fn packet(
        &mut self,
        flow: &Flow,
        state: &mut Self::State,
        packet: &Packet<'_>,
    ) -> Classification {
        Engine::packet(self, flow, state, packet)
    }

    fn wants(&self, state: &Self::State) -> u32 {
        Engine::wants(self, state).into()
    }

    fn give_up(&mut self, flow: &Flow, state: &mut Self::State) -> Classification {
        Engine::give_up(self, flow, state)
    }

    fn learns(&self, state: &Self::State) -> bool {
        state.learns()
    }
}
