//! What follows from what was read: orders to the kernel, and packets that go on.

use super::{
    classes::Change,
    core::KernelCommand,
    id::Id,
    kernel,
    worker::{Worker, rules},
};
use datapath::gate::{FlowVerdict, Held, Key, TableError};
use rustc_hash::FxHashMap;

impl Worker {
    /// Sends the core's commands to the kernel, and releases packets that waited: a flow's as soon as
    /// the kernel knows what it is to do with those that follow, and all in one go, so that few of these
    /// overtake.
    pub(super) fn carry_out(&mut self, released: Vec<Held>) {
        let mut waited: FxHashMap<Key, Vec<Held>> = FxHashMap::default();
        for held in released {
            waited.entry(*held.key()).or_default().push(held);
        }
        self.core.lose_forgotten();
        while self.core.has_acts() {
            for command in self.core.commands() {
                let flow = self.perform(command);
                self.release(flow.and_then(|key| waited.remove(&key)).unwrap_or_default());
            }
            self.beat.give(&self.gate, &mut self.problems);
        }
        for held in waited.into_values() {
            self.release(held);
        }
    }

    fn release(&mut self, released: Vec<Held>) {
        for held in Held::join_all(released) {
            match self.injector.release(&held) {
                Ok(()) => self.managers.counts.released += 1,
                Err(error) => {
                    self.managers.counts.dropped += 1;
                    self.problems.report("a held packet was lost", &error);
                }
            }
        }
    }

    /// Sends one command to the kernel. Returns the flow whose packets it knows now how to handle.
    fn perform(&mut self, command: KernelCommand) -> Option<Key> {
        let Self { core, table, shapers, gate, config, problems, .. } = self;
        match command {
            decide @ KernelCommand::Decide { flow, .. } => {
                // As it is by now: another verdict may have followed, and what is held goes with that.
                let KernelCommand::Decide { action, class, label, .. } =
                    core.verdict(&Id::of(&flow)).unwrap_or(decide)
                else {
                    return None;
                };
                let verdict = FlowVerdict { action: kernel::action(action), limit: class, label };
                let (key, manage) =
                    (kernel::key(&flow), kernel::manage(&flow, core.managed(&flow)));
                match table.decide_managed(&key, &verdict, manage) {
                    Ok(()) => {}
                    Err(TableError::Full) => core.was_full(&flow),
                    Err(error) => problems.report("the kernel does not take a verdict", &error),
                }
                return Some(key);
            }
            KernelCommand::Refuse { flow, deny } => {
                let (key, action) = (kernel::refusal(&flow), kernel::refuse(deny));
                if !config.gate.refuse_for.is_zero()
                    && let Err(error) = table.refuse(&key, action, config.gate.refuse_for)
                {
                    problems.report("the kernel does not take a refusal", &error);
                }
            }
            KernelCommand::Watch { flow, packets } => {
                if let Err(error) = table.watch(&kernel::key(&flow), packets) {
                    problems.report("the kernel does not watch a flow", &error);
                }
            }
            KernelCommand::ForgetRefusals => table.forget_refusals(),
            KernelCommand::Forget { flow } => {
                if let Err(error) = table.remove(&kernel::key(&flow)) {
                    problems.report("the kernel does not forget a flow", &error);
                }
            }
            KernelCommand::Manage { flow } => {
                let key = kernel::key(&flow);
                let manage = kernel::manage(&flow, core.managed(&flow));
                if let Err(error) = table.manage(&key, manage) {
                    problems.report("the kernel does not manage a flow", &error);
                }
                return Some(key);
            }
            KernelCommand::Class(change) => {
                let opened = !shapers.is_open() && matches!(change, Change::Set(..));
                let result = shapers.open().and_then(|()| shapers.change(&change));
                if let Err(error) = result {
                    problems.report("a limit is not in force", &error);
                } else if opened
                    && let Err(error) = gate.configure(&rules(&config.gate, shapers.queue()))
                {
                    problems.report("the kernel does not take the rules", &error);
                }
            }
        }
        None
    }
}
