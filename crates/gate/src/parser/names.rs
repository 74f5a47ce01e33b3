//! The parser that names flows: the engines of `classify`, by the first packets.

use super::{Parser, fits};
use classify::{
    Engine, Settings, State,
    flow::{Flow, Side},
    label::Classification,
    packet::{Packet, Tcp},
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Longest name of an application or of a part of it.
const MAX_NAME: usize = 64;

/// What the daemon tells.
#[derive(Debug, Deserialize, Serialize)]
pub enum Item<'a> {
    /// A flow's next packet.
    Packet {
        /// The flow's number.
        flow: u32,
        /// With the first one: the flow, and the sequence numbers of the client's and the server's SYN.
        new: Option<(Flow, [Option<u32>; 2])>,
        /// The packet.
        #[serde(borrow)]
        packet: Packet<'a>,
    },
    /// No more packets of a flow come: what is it?
    GiveUp(u32),
    /// A flow is of no interest any more.
    Forget(u32),
}

/// What the parser says of a flow after each packet, and when it has given up.
#[derive(Debug, Deserialize, Serialize)]
pub struct Answer {
    /// The flow's number.
    pub flow: u32,
    /// What it is.
    pub outcome: Classification,
    /// How many packets with payload are worth copying.
    pub wants: u8,
    /// Whether further packets are of use though it has a name.
    pub learns: bool,
}

/// The engines, and the flows that they know.
#[derive(Debug)]
pub struct Names {
    engine: Engine,
    flows: FxHashMap<u32, (Flow, State)>,
}

impl Names {
    /// Begins with a flow. Only packets with payload are copied out: the SYN shows where the bytes begin.
    fn begin(&mut self, flow: &Flow, begins: [Option<u32>; 2]) -> State {
        let mut state = State::new();
        for (from, begin) in [Side::Client, Side::Server].into_iter().zip(begins) {
            if let Some(sequence) = begin {
                let tcp = Some(Tcp { sequence, acknowledgement: 0, flags: Tcp::SYN });
                let syn = Packet { at_ns: 0, from, tcp, payload: &[], length: 0 };
                let _ = self.engine.packet(flow, &mut state, &syn);
            }
        }
        state
    }
}

impl Parser for Names {
    type Settings = Settings;
    type Item<'a> = Item<'a>;
    type Answer = Answer;

    const NAME: &'static str = "names";

    fn new(settings: &Settings) -> Result<Self, String> {
        let engine = Engine::new(settings).map_err(|error| error.to_string())?;
        Ok(Self { engine, flows: FxHashMap::default() })
    }

    fn take(&mut self, item: Item<'_>, answers: &mut Vec<Answer>) {
        let (flow, outcome) = match item {
            Item::Packet { flow: number, new, packet } => {
                if let Some((flow, begins)) = new {
                    let state = self.begin(&flow, begins);
                    self.flows.insert(number, (flow, state));
                }
                let Self { engine, flows } = self;
                let outcome =
                    flows.get_mut(&number).map(|(flow, state)| engine.packet(flow, state, &packet));
                (number, outcome.unwrap_or(Classification::Unknown))
            }
            Item::GiveUp(number) => {
                let Self { engine, flows } = self;
                let outcome =
                    flows.get_mut(&number).map(|(flow, state)| engine.give_up(flow, state));
                (number, outcome.unwrap_or(Classification::Unknown))
            }
            Item::Forget(number) => {
                self.flows.remove(&number);
                return;
            }
        };
        let state = self.flows.get(&flow).map(|(_, state)| state);
        let wants = state.map_or(0, |state| self.engine.wants(state));
        let learns = state.is_some_and(State::learns);
        answers.push(Answer { flow, outcome, wants, learns });
    }

    fn is_sound(answer: &Answer) -> bool {
        let name = |text: &str| text.len() <= MAX_NAME && !text.contains(char::is_control);
        let label = match &answer.outcome {
            Classification::Known(label) => label,
            Classification::Pending | Classification::Unknown => return true,
        };
        name(&label.application) && label.detail.as_deref().is_none_or(name) && fits(&label.reason)
    }
}
