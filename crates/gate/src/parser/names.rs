//! The parser that names flows: the engines of `classify`, by the first packets.

use super::{Parser, fits, syns};
use classify::{Engine, Settings, State, flow::Flow, label::Classification, packet::Packet};
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
    /// What it is; none where that was said before.
    pub outcome: Option<Classification>,
    /// How many packets with payload are worth copying.
    pub wants: u8,
    /// Whether further packets are of use though it has a name.
    pub learns: bool,
}

/// The engines, and the flows that they know.
#[derive(Debug)]
pub struct Names {
    engine: Engine,
    flows: FxHashMap<u32, Box<Known>>,
}

/// A flow that they know.
#[derive(Debug)]
struct Known {
    flow: Flow,
    state: State,
    /// Whether it was said what it is.
    said: bool,
}

/// Begins with a flow.
fn begin(engine: &mut Engine, flow: &Flow, begins: [Option<u32>; 2]) -> Known {
    let mut state = State::new();
    for syn in syns(begins) {
        let _ = engine.packet(flow, &mut state, &syn);
    }
    Known { flow: *flow, state, said: false }
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
        let Self { engine, flows } = self;
        let (number, packet) = match item {
            Item::Packet { flow: number, new, packet } => {
                if let Some((flow, begins)) = new {
                    flows.insert(number, Box::new(begin(engine, &flow, begins)));
                }
                (number, Some(packet))
            }
            Item::GiveUp(number) => (number, None),
            Item::Forget(number) => {
                flows.remove(&number);
                return;
            }
        };
        let mut answer = Answer {
            flow: number,
            outcome: Some(Classification::Unknown),
            wants: 0,
            learns: false,
        };
        if let Some(known) = flows.get_mut(&number) {
            let Known { flow, state, said } = &mut **known;
            let outcome = match packet {
                Some(packet) => engine.packet(flow, state, &packet),
                None => engine.give_up(flow, state),
            };
            let is_said = std::mem::replace(said, outcome != Classification::Pending);
            answer.outcome = Some(outcome).filter(|_| !is_said);
            (answer.wants, answer.learns) = (engine.wants(state), state.learns());
        }
        answers.push(answer);
    }

    fn is_sound(answer: &Answer) -> bool {
        let name = |text: &str| text.len() <= MAX_NAME && !text.contains(char::is_control);
        let label = match &answer.outcome {
            Some(Classification::Known(label)) => label,
            Some(Classification::Pending | Classification::Unknown) | None => return true,
        };
        name(&label.application) && label.detail.as_deref().is_none_or(name) && fits(&label.reason)
    }
}
