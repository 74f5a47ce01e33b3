//! What follows from what was read: orders to the kernel, packets that go on, and the heartbeat.

use super::{
    answer,
    classes::Change,
    core::{Act, Core},
    kernel,
    managed::{Effect, Managers},
    shape::Shapers,
    worker::rules,
};
use crate::{classify::Engine, config::Config};
use datapath::gate::{Gate, Held, Injector, Side, Table, TableError, Verdict};
use std::time::{Duration, Instant};

/// Time from one heartbeat to the next; the kernel's patience is two seconds. It is also longer than any
/// packet is on its way that was looked up before a decision.
const BEAT: Duration = Duration::from_millis(100);

/// The heartbeat.
#[derive(Debug, Default)]
pub(super) struct Beat(Option<Instant>);

impl Beat {
    /// Gives it if it is time.
    pub(super) fn give(&mut self, gate: &Gate, ailments: &mut answer::Ailing) {
        let now = Instant::now();
        if self.0.is_some_and(|last| now.duration_since(last) < BEAT) {
            return;
        }
        self.0 = Some(now);
        if let Err(error) = gate.heartbeat() {
            ailments.say("the kernel does not take the heartbeat", &error);
        }
    }
}

/// Does what follows from what managers found; the packets that go on then.
pub(super) fn perform(effects: Vec<Effect>, core: &mut Core<Engine>) -> Vec<Held> {
    let mut released = Vec::new();
    for effect in effects {
        match effect {
            Effect::Release(held) => released.push(held),
            Effect::Manage(flow, manage) => core.manage(&flow, manage),
            Effect::Refuse(flow, rule) => core.refuse_for_file(&flow, rule),
            Effect::Used(rule) => core.used_file_rule(rule),
        }
    }
    released
}

/// Sends packets on that waited: the kernel knows by then what it is to do with those that follow.
pub(super) fn release(
    released: Vec<Held>,
    managers: &mut Managers,
    injector: &Injector,
    ailments: &mut answer::Ailing,
) {
    for held in released {
        match injector.release(&held) {
            Ok(()) => managers.counts.released += 1,
            Err(error) => {
                managers.counts.dropped += 1;
                ailments.say("a held packet was lost", &error);
            }
        }
    }
}

/// Tells the kernel what the core wants of it.
pub(super) fn tell(
    core: &mut Core<Engine>,
    table: &Table,
    shapers: &mut Shapers,
    gate: &Gate,
    config: &Config,
    beat: &mut Beat,
    ailments: &mut answer::Ailing,
) {
    while core.has_acts() {
        some(core, table, shapers, gate, config, ailments);
        beat.give(gate, ailments);
    }
}

/// Tells it some of that.
fn some(
    core: &mut Core<Engine>,
    table: &Table,
    shapers: &mut Shapers,
    gate: &Gate,
    config: &Config,
    ailments: &mut answer::Ailing,
) {
    for act in core.acts() {
        match act {
            Act::Decide { flow, action, class, label } => {
                let verdict = Verdict { action: kernel::action(action), limit: class, label };
                let manage = kernel::manage(&flow, core.managed(&flow));
                match table.decide_managed(&kernel::key(&flow), &verdict, manage) {
                    Ok(()) => {}
                    Err(TableError::Full) => core.was_full(&flow),
                    Err(error) => ailments.say("the kernel does not take a verdict", &error),
                }
            }
            Act::Refuse { flow, deny } => {
                let (key, action) = (kernel::refusal(&flow), kernel::refuse(deny));
                if config.gate.refuse_for.is_zero() {
                    continue;
                }
                if let Err(error) = table.refuse(&key, action, config.gate.refuse_for) {
                    ailments.say("the kernel does not take a refusal", &error);
                }
            }
            Act::Watch { flow, packets } => {
                if let Err(error) = table.watch(&kernel::key(&flow), packets) {
                    ailments.say("the kernel does not watch a flow", &error);
                }
            }
            Act::ForgetRefusals => table.forget_refusals(),
            Act::Forget { flow } => {
                if let Err(error) = table.remove(&kernel::key(&flow)) {
                    ailments.say("the kernel does not forget a flow", &error);
                }
            }
            Act::Manage { flow } => {
                let manage = kernel::manage(&flow, core.managed(&flow));
                for (side, manage) in [Side::Lower, Side::Higher].into_iter().zip(manage) {
                    if let Err(error) = table.manage(&kernel::key(&flow), side, manage) {
                        ailments.say("the kernel does not manage a flow", &error);
                    }
                }
            }
            Act::Class(change) => {
                let opened = !shapers.is_open() && matches!(change, Change::Set(..));
                let result = shapers.open().and_then(|()| shapers.change(&change));
                if let Err(error) = result {
                    ailments.say("a limit is not in force", &error);
                } else if opened
                    && let Err(error) = gate.configure(&rules(&config.gate, shapers.queue()))
                {
                    ailments.say("the kernel does not take the rules", &error);
                }
            }
        }
    }
}
