//! The thread that owns the state of flows: reads what the kernel copies out, decides, sends orders to
//! the kernel, and answers the operator in between.

use super::{
    ControlError, Prepared, ReloadError,
    attempts::Attempts,
    beat::Beat,
    clock::moment,
    core::{Bounds, Core, News},
    id::Id,
    internal::Internal,
    kernel,
    managed::{self, Around, Managers, NewFlow, WorkerCommand},
    namer::Namer,
    problems::Problems,
    records::{self, Log},
    rounds::Rounds,
    seen::{Seen, What, part},
    shape::Shapers,
};
use crate::{
    audit::Audit,
    check::check_applications,
    config::{Config, GateConfig, OnFailure},
    control::Request,
    policy::{Policy, RuntimeAction, RuntimeRule},
    scan::Report,
    status::{Status, render_rule},
};
use arc_swap::ArcSwap;
use datapath::{
    clock::monotonic_ns,
    gate::{Gate, Held, Injector, Pace, Reader, Rules, Table},
};
use job::pulse;
use serde_json::Value;
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError},
    },
    time::{Duration, Instant},
};
use tokio::sync::oneshot;
use tracing::{info, warn};

/// How long the thread waits for packets; the operator, and the heartbeat, wait as long.
const POLL: Duration = Duration::from_millis(50);
/// The same while packets wait for the scanner.
const QUICK: Duration = Duration::from_millis(5);
/// Least time between two wake-ups for records that nobody waits for.
const GATHER: Duration = Duration::from_millis(1);
/// Records that are read before the kernel hears the heartbeat, and the operator is heard.
const MOST: usize = 256;
/// Time from one look at the clock, and one status, to the next.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Most rules that the operator gives.
const MAX_RUNTIME: usize = 100;

/// Requests to the thread.
pub(super) enum Ask {
    Control(Request, oneshot::Sender<Result<Value, ControlError>>),
    /// Publishes a status of now.
    Refresh(oneshot::Sender<()>),
    /// Puts up what a configuration needs, before it is in force.
    Prepare(bool, oneshot::Sender<Result<(), ReloadError>>),
    Reload(Box<Prepared>, oneshot::Sender<()>),
    /// The scanner's.
    Report(Report),
    Stop,
}

/// What the thread has.
pub(super) struct Worker {
    pub(super) gate: Gate,
    pub(super) table: Table,
    pub(super) core: Core<Namer>,
    pub(super) managers: Managers,
    pub(super) log: Log,
    pub(super) audit: Option<Audit>,
    pub(super) injector: Injector,
    pub(super) shapers: Shapers,
    pub(super) internal: Internal,
    pub(super) config: Config,
    pub(super) runtime_rules: Vec<RuntimeRule>,
    pub(super) rounds: Rounds,
    pub(super) beat: Beat,
    /// Rules added since the start.
    pub(super) numbered: u64,
    pub(super) published: Arc<ArcSwap<Status>>,
    pub(super) problems: Problems,
    pub(super) attempts: Attempts,
}

/// Flows that are inspected, at most, for a table of decided ones.
pub(super) const fn undecided(max_flows: u32) -> u32 {
    if max_flows > 1 << 16 { 1 << 16 } else { max_flows }
}

/// The bounds that a configuration sets.
pub(super) fn bounds(config: &GateConfig) -> Bounds {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Bounds {
        // A state is some kilobytes; an entry in the kernel's table is not.
        undecided: undecided(config.max_flows) as usize / 4,
        packets: config.packets.into(),
        idle_tcp_ns: ns(config.idle_tcp),
        idle_udp_ns: ns(config.idle_udp),
        on_failure: config.on_failure,
    }
}

/// The settings of the kernel's programs for a configuration.
pub(super) fn rules(config: &GateConfig, queue: Option<u32>) -> Rules {
    Rules {
        on_failure: match config.on_failure {
            OnFailure::Pass => datapath::gate::OnFailure::Pass,
            OnFailure::Drop => datapath::gate::OnFailure::Drop,
        },
        packets: u32::from(config.packets),
        hold: holds(config),
        queue,
    }
}

/// Whether packets are held at all.
fn holds(config: &GateConfig) -> bool {
    config.hold || managed::holds(config)
}

/// Whether a policy needs shapers.
pub(super) fn has_limits(config: &GateConfig, rules: &[RuntimeRule]) -> bool {
    !config.limits.is_empty()
        || rules.iter().any(|rule| matches!(rule.action, RuntimeAction::Limit(_)))
}

/// Does what follows from what managers found; the packets that go on then are added to `released`.
fn perform(commands: Vec<WorkerCommand>, core: &mut Core<Namer>, released: &mut Vec<Held>) {
    for command in commands {
        match command {
            WorkerCommand::Release(held) => released.push(held),
            WorkerCommand::Manage(flow, manage) => core.manage(&flow, manage),
            WorkerCommand::Refuse(flow, by) => core.refuse_for_file(&flow, by),
            WorkerCommand::Used(rule) => core.used_file_rule(rule),
        }
    }
}

impl Worker {
    /// What comes before the first packet: flows that an earlier process decided, and a first status.
    pub(super) fn begin(&mut self) {
        self.core.tick(monotonic_ns(), moment());
        self.round();
        self.keep_classes();
        self.publish();
    }

    /// Runs until it is stopped or all senders are dropped.
    pub(super) fn run(mut self, mut reader: Reader, asks: &Receiver<Ask>, alive: &pulse::Beat) {
        let mut next_tick = Instant::now();
        loop {
            panics::point("gate-worker");
            alive.beat();
            self.beat.give(&self.gate, &mut self.problems);
            let now = Instant::now();
            if now >= next_tick {
                self.core.tick(monotonic_ns(), moment());
                self.carry_out(Vec::new());
                next_tick = now + TICK;
            }
            if self.rounds.are_due() && self.part() {
                self.publish();
            }
            self.manage(|_, managers, around, _| managers.rest(around.now_ns));
            self.core.inspect_mut().keep();
            if let Err(error) = self.read(&mut reader) {
                self.problems.report("packets cannot be read", &error);
                std::thread::sleep(POLL);
            }
            loop {
                match asks.try_recv() {
                    Ok(Ask::Stop) | Err(TryRecvError::Disconnected) => return self.stop(),
                    Ok(ask) => self.answer(ask),
                    Err(TryRecvError::Empty) => break,
                }
            }
        }
    }

    /// Looks at what was copied out.
    fn read(&mut self, reader: &mut Reader) -> std::io::Result<()> {
        let unfinished = self.rounds.are_due();
        let Self { core, config, managers, log, gate, beat, problems, .. } = self;
        core.set_now(monotonic_ns());
        let policy = core.policy().clone();
        let (moment, now_ns) = (core.moment(), core.now_ns());
        let around = Around { policy: &policy, moment, now_ns, log };
        // A verdict of the scanner is not kept waiting.
        let timeout = match unfinished {
            true => Duration::ZERO,
            false if managers.waits() => QUICK,
            false => POLL,
        };
        // Nor is a packet that is held.
        let gather = if holds(&config.gate) { Duration::ZERO } else { GATHER };
        let mut seen = Vec::new();
        let count = reader.read(Pace { timeout, gather, most: MOST }, |record| {
            seen.push(Seen::of(&record, now_ns));
        })?;
        let (mut commands, mut released) = (Vec::new(), Vec::new());
        let mut seen = seen.into_iter().peekable();
        while seen.peek().is_some() {
            // The parsers may take a second for a part.
            beat.give(gate, problems);
            let part = part(&mut seen);
            for one in part.iter().filter(|one| matches!(one.what, What::Packet(_))) {
                let (namer, known, looks) = core.inspecting(&one.id);
                if looks {
                    namer.foresee(&one.flow, one.begins, known, one.packet.packet());
                }
            }
            core.inspect_mut().look();
            for one in part {
                one.take(core, managers, &around, &mut commands);
                perform(std::mem::take(&mut commands), core, &mut released);
            }
            core.inspect_mut().looked();
            managers.exchange(&around, &mut commands);
            perform(std::mem::take(&mut commands), core, &mut released);
        }
        // Unless more is to be read at once.
        if count < MOST {
            managers.settled(&mut commands);
        }
        perform(commands, core, &mut released);
        self.carry_out(released);
        Ok(())
    }

    /// Lets the managers do something, and does what follows from it.
    fn manage(
        &mut self,
        what: impl FnOnce(&Core<Namer>, &mut Managers, &Around<'_>, &mut Vec<WorkerCommand>),
    ) {
        let Self { core, managers, log, .. } = self;
        let policy = core.policy().clone();
        let (moment, now_ns) = (core.moment(), monotonic_ns());
        let (mut commands, mut released) = (Vec::new(), Vec::new());
        let around = Around { policy: &policy, moment, now_ns, log };
        what(core, managers, &around, &mut commands);
        managers.exchange(&around, &mut commands);
        perform(commands, core, &mut released);
        self.carry_out(released);
    }

    /// Flows that were decided without a packet at hand are managed from here on, if there may be
    /// something in them.
    pub(super) fn adopt(&mut self) {
        let adopted = self.core.adopted();
        self.take_up(adopted);
    }

    fn take_up(&mut self, flows: Vec<(Id, bool)>) {
        self.manage(|core, managers, around, commands| {
            for (id, interrupted) in flows {
                let Some(entry) = core.flow(&id).filter(|_| !core.refuses(&id)) else { continue };
                let (flow, internal, label) = (entry.flow, entry.internal, entry.label().cloned());
                let began_ns = entry.began_ns;
                let new = NewFlow {
                    flow,
                    internal,
                    label,
                    began_ns,
                    expectation: None,
                    syns: [None; 2],
                    now: None,
                };
                managers.adopt(new, interrupted, around, commands);
            }
        });
    }

    /// Forgets managers of flows that are gone or refused.
    pub(super) fn managers_retain(&mut self) {
        self.manage(|core, managers, _, _| {
            managers.retain(|id| core.flow(id).is_some() && !core.refuses(id));
        });
    }

    /// Writes down the outcome of flows.
    pub(super) fn news(&mut self) {
        for news in self.core.news() {
            if self.log.is_on()
                && let News::Refused { flow, began_ns, internal, label, deny, rule } = &news
            {
                let subject = self.log.subject(*flow, *internal, label.clone(), *began_ns);
                let (key, action) = (kernel::refusal(flow), records::refusal(*deny));
                self.attempts.remember(key, subject, action, rule.clone());
            }
            records::write(&self.log, news);
        }
    }

    /// Removes the classes of an earlier process that no flow is in any more.
    fn keep_classes(&mut self) {
        let wanted: BTreeSet<u16> = self.core.classes().list().map(|(number, ..)| number).collect();
        if let Err(error) = self.shapers.keep(&wanted) {
            warn!(%error, "limits of an earlier process were not removed");
        }
    }

    pub(super) fn configure(&mut self, queue: Option<u32>) {
        let rules = rules(&self.config.gate, queue);
        if let Err(error) = self.gate.configure(&rules) {
            self.problems.report("the kernel does not take the rules", &error);
        }
    }

    fn answer(&mut self, ask: Ask) {
        // Who does not wait for the answer any more has no use for it.
        match ask {
            Ask::Control(request, reply) => {
                let answer = self.control(request);
                let _ = reply.send(answer);
            }
            Ask::Refresh(reply) => {
                self.refresh();
                self.publish();
                let _ = reply.send(());
            }
            Ask::Prepare(limits, reply) => {
                let result = if limits { self.open_shapers() } else { Ok(()) };
                let _ = reply.send(result.map_err(ReloadError::Shaper));
            }
            Ask::Reload(prepared, reply) => {
                self.reload(*prepared);
                let _ = reply.send(());
            }
            Ask::Report(report) => self.manage(|_, managers, around, commands| {
                managers.report(report, around, commands);
            }),
            Ask::Stop => {}
        }
    }

    pub(super) fn open_shapers(&mut self) -> Result<(), datapath::shaper::Error> {
        self.shapers.open()?;
        self.configure(self.shapers.queue());
        Ok(())
    }

    /// Puts another configuration in force; rules added at run time end.
    fn reload(&mut self, Prepared { config, names, scanner }: Prepared) {
        let bypass = config.gate.bypass;
        if bypass != self.config.gate.bypass {
            self.bypass(bypass);
        }
        self.config = config;
        self.runtime_rules.clear();
        self.core.set_bounds(bounds(&self.config.gate));
        if let Some(names) = names {
            self.core.inspect_mut().replace(names);
            self.core.begin_again();
        }
        if let Some(scanner) = scanner {
            self.manage(|_, managers, around, commands| {
                managers.set_scanner(scanner, around, commands);
            });
        }
        self.managers.configure(&self.config.gate);
        self.configure(self.shapers.queue());
        self.set_policy();
        self.manage(|_, managers, _, _| managers.configured());
        // Rules about files that are new act on running flows, too.
        self.take_up(self.core.ids().map(|id| (id, false)).collect());
        self.publish();
    }

    fn bypass(&mut self, on: bool) {
        match self.gate.bypass(on) {
            Ok(()) if on => warn!("the gate is switched off: everything passes"),
            Ok(()) => info!("the gate works"),
            Err(error) => self.problems.report("the kernel does not switch the gate", &error),
        }
    }

    fn set_policy(&mut self) {
        let policy = Policy::new(&self.config.gate, &self.runtime_rules);
        self.core.set_policy(Arc::new(policy));
        self.carry_out(Vec::new());
    }

    fn control(&mut self, request: Request) -> Result<Value, ControlError> {
        if matches!(request, Request::Flows(_) | Request::Top(_)) {
            self.refresh();
        }
        let json = |value| serde_json::to_value(value).unwrap_or_default();
        match request {
            Request::Flows(order) => Ok(json(self.flows(&order))),
            Request::Top(order) => Ok(serde_json::to_value(self.top(order)).unwrap_or_default()),
            Request::Why { flow } => {
                let why = self.why(flow)?;
                Ok(serde_json::to_value(why).unwrap_or_default())
            }
            Request::Add(order) => {
                if self.runtime_rules.len() >= MAX_RUNTIME {
                    let text = format!(
                        "there are already {MAX_RUNTIME} runtime rules: write them into the file"
                    );
                    return Err(ControlError::Rule(text));
                }
                check_applications(&order.application, &self.config.gate.signatures)
                    .map_err(ControlError::Rule)?;
                if let Some(host) = order.host.filter(|host| self.core.is_external(host)) {
                    let text = format!(
                        "{host} is external according to its flows: --host takes hosts behind {}",
                        self.config.gate.internal.join(", ")
                    );
                    return Err(ControlError::Rule(text));
                }
                if let RuntimeAction::Limit(limit) = &order.action {
                    limit.check(&self.config.gate.internal).map_err(ControlError::Rule)?;
                    self.open_shapers()?;
                }
                self.numbered += 1;
                let rule = RuntimeRule {
                    name: format!("runtime-{}", self.numbered),
                    application: order.application,
                    category: order.category,
                    host: order.host,
                    direction: order.direction,
                    action: order.action,
                };
                info!("{}, added by the operator", render_rule(&rule).trim_end());
                self.runtime_rules.push(rule.clone());
                self.set_policy();
                Ok(serde_json::to_value(rule).unwrap_or_default())
            }
            Request::Forget { name } => {
                match &name {
                    None => self.runtime_rules.clear(),
                    Some(name) => {
                        let index = self.runtime_rules.iter().position(|rule| rule.name == *name);
                        let index = index.ok_or_else(|| ControlError::NoRule(name.clone()))?;
                        self.runtime_rules.remove(index);
                    }
                }
                self.set_policy();
                Ok(serde_json::to_value(&self.runtime_rules).unwrap_or_default())
            }
            Request::Unblock { torrent } => {
                if !self.managers.torrents.unblock(&torrent) {
                    return Err(ControlError::NoTorrent(torrent));
                }
                info!(torrent, "no longer refused, by the operator");
                Ok(serde_json::json!({ "torrent": torrent }))
            }
            Request::Bypass { on } => {
                self.gate.bypass(on).map_err(|error| ControlError::Kernel(error.to_string()))?;
                warn!(on, "bypass, by the operator");
                self.publish();
                Ok(serde_json::json!({ "bypass": on }))
            }
        }
    }

    fn publish(&mut self) {
        let status = self.status();
        self.published.store(Arc::new(status));
    }

    /// Writes down what is known. Flows go on in the kernel, and the next process writes of them.
    fn stop(mut self) {
        self.manage(|_, managers, _, _| managers.retain(|_| false));
        self.news();
        drop(self.audit.take());
    }
}
