//! The task that owns the attached program, the interfaces, the checks and the sessions.
//!
//! It wakes for: a change of a link (netlink), the watch tick (links and attachments, so that a fault
//! that the kernel does not report is seen soon), the round of checks, the upkeep once a second
//! (interfaces that came back, addresses, the route to the gateways), results of commands, and requests.
//! After each it decides what to advertise to every upstream, and publishes the status.

use super::{
    Ask, ControlError, ReloadError, Shared, StartError, change,
    command::{Commands, Finding},
    kernel::{self, Kernel},
    loopback::Loopback,
    port::Port,
    probe, read,
    upstreams::Slot,
    wanted::{assigned, health_config, rules, times},
};
use crate::{
    config::{Config, Limit, Mode, Probe},
    control::Request,
    drain::{Drain, Phase},
    health::{Check, Health, Outcome},
    status::{InterfaceMode, Status},
};
use arc_swap::{ArcSwap, ArcSwapOption};
use datapath::echo::{AttachError, EchoProgram};
use ipnet::IpNet;
use job::pulse::Beat;
use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{self, MissedTickBehavior},
};

/// How often links and attachments are checked, at least.
const WATCH: Duration = Duration::from_millis(50);
/// How often the upkeep runs.
const UPKEEP: Duration = Duration::from_secs(1);

/// A reload in progress.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) config: Config,
    /// Sessions with upstreams that no running session fits.
    pub(super) fresh: Vec<Slot>,
    /// New interfaces.
    pub(super) ports: Vec<Port>,
    /// What was in force before, limits and lists included, once the new configuration is.
    pub(super) before: Option<(Config, Limit, [Vec<IpNet>; 2])>,
}

/// The task; see the top of this file.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) config: Config,
    /// The limits and lists in force; they differ from the configuration's after a request.
    pub(super) limit: Limit,
    pub(super) lists: [Vec<IpNet>; 2],
    pub(super) kernel: Kernel,
    pub(super) loopback: Loopback,
    pub(super) program: Option<Arc<EchoProgram>>,
    /// Why there is no program, if one is configured.
    pub(super) no_program: String,
    pub(super) probe_id: u16,
    /// The interfaces' own addresses at which the program answers probes.
    pub(super) own: Vec<IpAddr>,
    pub(super) ports: Vec<Port>,
    /// Next hops towards upstreams: index of the interface and address.
    pub(super) next_hops: Vec<(u32, IpAddr)>,
    pub(super) health: Health,
    pub(super) commands: Commands,
    pub(super) findings: (mpsc::Sender<Finding>, mpsc::Receiver<Finding>),
    pub(super) drain: Drain,
    drained: Vec<oneshot::Sender<()>>,
    /// A reload that is neither finished nor rolled back.
    pub(super) change: Option<Pending>,
    pub(super) upstreams: Vec<Slot>,
    /// Where the BFD sessions with the upstreams receive.
    pub(super) bfd: bgp::bfd::Listener,
    /// Arrivals and our own drops at the last round.
    counted: [u64; 2],
    epoch: Instant,
    pub(super) shared: Arc<Shared>,
}

impl Worker {
    /// Applies the configuration; nothing is announced yet.
    pub(super) async fn start(config: Config, drained: bool) -> Result<Self, StartError> {
        let kernel = Kernel::open()?;
        let loopback = Loopback::open(kernel.clone(), &config.state);
        let rules = rules(&health_config(&config));
        let mut worker = Self {
            limit: config.echo.limit,
            lists: [config.echo.allow.clone(), config.echo.deny.clone()],
            loopback,
            program: None,
            no_program: String::new(),
            // Not 0: that is the program's initial value.
            probe_id: rand::random::<u16>().max(1),
            own: Vec::new(),
            ports: Vec::new(),
            next_hops: Vec::new(),
            health: Health::new(rules),
            commands: Commands::default(),
            findings: mpsc::channel(16),
            drain: Drain::new(times(&config), drained),
            drained: Vec::new(),
            change: None,
            bfd: bgp::bfd::Listener::default(),
            upstreams: Vec::new(),
            counted: [0, 0],
            epoch: Instant::now(),
            shared: Arc::new(Shared {
                program: ArcSwapOption::empty(),
                status: ArcSwap::from_pointee(Status::starting()),
            }),
            kernel,
            config: config.clone(),
        };
        match worker.put_in_force(config).await {
            Ok(()) => Ok(worker),
            Err(error) => {
                worker.ports.clear();
                if let Err(error) = worker.loopback.set(&[]).await {
                    tracing::warn!("{error}");
                }
                Err(error)
            }
        }
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Works until it is stopped, or all handles are gone, or it panics; in any case it then withdraws.
    pub(super) async fn run(mut self, mut asked: mpsc::Receiver<Ask>, beat: Beat) {
        let end = panics::caught_here(self.work(&mut asked, &beat)).await;
        self.stop().await;
        if let Some(Some(answer)) = end {
            let _ = answer.send(());
        }
    }

    /// Works until it is stopped, with whom to tell, or all handles are gone.
    async fn work(
        &mut self,
        asked: &mut mpsc::Receiver<Ask>,
        beat: &Beat,
    ) -> Option<oneshot::Sender<()>> {
        let ticker = |every| {
            let mut ticker = time::interval(every);
            ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticker
        };
        let mut interval = health_config(&self.config).interval;
        let mut round = ticker(interval);
        let mut watch = ticker(WATCH);
        let mut upkeep = ticker(UPKEEP);
        loop {
            panics::point("echo-worker");
            beat.beat();
            tokio::select! {
                () = self.kernel.link_changed() => self.watch().await,
                _ = watch.tick() => self.watch().await,
                _ = round.tick() => self.round().await,
                _ = upkeep.tick() => self.upkeep().await,
                Some((index, finding)) = self.findings.1.recv() => {
                    self.report(Check::Command(index), Outcome::Bad, finding);
                    self.decide(Instant::now());
                }
                ask = asked.recv() => match ask {
                    Some(Ask::Stop(answer)) => return Some(answer),
                    Some(ask) => self.answer(ask).await,
                    None => return None,
                },
            }
            let wanted = health_config(&self.config).interval;
            if wanted != interval {
                interval = wanted;
                round = ticker(interval);
            }
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    fn report(&mut self, check: Check, bad: Outcome, finding: Result<String, String>) -> bool {
        let (outcome, detail) = match &finding {
            Ok(detail) => (Outcome::Good, detail),
            Err(detail) => (bad, detail),
        };
        let changed = self.health.report(self.epoch.elapsed(), &check, outcome, detail);
        if changed && outcome != Outcome::Good {
            tracing::warn!("check {check}: {detail}");
        }
        changed
    }

    /// Checks links and attachments; a fault counts at once.
    async fn watch(&mut self) {
        let mut changed = false;
        for i in 0..self.ports.len() {
            let link = self.kernel.link(&self.ports[i].name).await;
            let detected = Instant::now();
            let port = &mut self.ports[i];
            let link = match link {
                Ok(link) => link,
                Err(error) => {
                    // The round reports it, and the upkeep logs it: neither twenty times a second.
                    port.unseen = Some(error.to_string());
                    continue;
                }
            };
            let was_up = port.is_up();
            let is_new = port.see(link);
            let verified = port.verify();
            let name = port.name.clone();
            let up = port.is_up();
            let mut fault = false;
            if !up {
                let down = if port.link.is_some() { "is down" } else { "does not exist" };
                let finding = Err(format!("{name} {down}"));
                fault |= self.report(Check::Link(name.clone()), Outcome::Fault, finding);
            }
            if let Err(why) = verified {
                fault |= self.report(Check::Program(name.clone()), Outcome::Fault, Err(why));
            }
            if fault {
                self.decide(detected);
            }
            changed |= is_new || was_up != up;
        }
        if changed {
            self.upkeep().await;
        }
    }

    /// One round of all checks.
    async fn round(&mut self) {
        // Probes through the gateway prove more than a test run.
        let test_run = match (&self.program, health_config(&self.config).probe) {
            (Some(program), Probe::Program) => probe::test_run(program, self.probe_id),
            (Some(_), Probe::Loop) => Ok("attached".into()),
            (None, _) => Err("no program is loaded".into()),
        };
        for i in 0..self.ports.len() {
            let name = self.ports[i].name.clone();
            // A down interface was reported when it was seen; what was not seen is not a success.
            let unseen = self.ports[i].unseen.clone();
            if unseen.is_some() || self.ports[i].is_up() {
                let finding = unseen.map_or_else(|| Ok(format!("{name} is up")), Err);
                self.report(Check::Link(name.clone()), Outcome::Bad, finding);
            }
            let (bad, finding) = match self.ports[i].verify() {
                Err(why) => (Outcome::Fault, Err(why)),
                Ok(InterfaceMode::Kernel) => (Outcome::Bad, Ok("the kernel itself answers".into())),
                Ok(_) => (Outcome::Bad, test_run.clone()),
            };
            self.report(Check::Program(name.clone()), bad, finding);
            for (v4, check) in [(true, Check::Probe4(name.clone())), (false, Check::Probe6(name))] {
                self.probe(i, v4, check).await;
            }
        }
        self.check_addresses().await;
        self.check_drops();
        self.tick();
        self.decide(Instant::now());
    }

    /// Evaluates the last probe through the gateway and sends the next.
    async fn probe(&mut self, i: usize, v4: bool, check: Check) {
        if !self.health.expects(&check) {
            return;
        }
        let port = &mut self.ports[i];
        let probe = if v4 { &mut port.probe4 } else { &mut port.probe6 };
        let finding = probe.is_pending().then(|| probe.collect());
        let failed = finding.as_ref().is_none_or(Result::is_err);
        if let Some(finding) = finding {
            self.report(check.clone(), Outcome::Bad, finding);
        }
        // The path is looked up again only while there is none or it does not work.
        if failed && let Err(why) = self.aim(i, v4).await {
            self.report(check, Outcome::Bad, Err(why));
            return;
        }
        let port = &mut self.ports[i];
        let probe = if v4 { &mut port.probe4 } else { &mut port.probe6 };
        if let Err(why) = probe.send(self.probe_id) {
            self.report(check, Outcome::Bad, Err(why));
        }
    }

    /// Finds the gateway of an interface and aims its probe at it.
    async fn aim(&mut self, i: usize, v4: bool) -> Result<(), String> {
        let name = &self.ports[i].name;
        let link = self.ports[i].link.clone().ok_or_else(|| format!("{name} does not exist"))?;
        let mac = link.mac.ok_or_else(|| format!("{name} has no Ethernet address"))?;
        let family = if v4 { "IPv4" } else { "IPv6" };
        let own = self.own_address(link.index, v4).await;
        let own = own.ok_or_else(|| format!("{name} has no {family} address of its own"))?;
        let hops = self.next_hops.iter().filter(|(index, _)| *index == link.index);
        let mut gateways: Vec<IpAddr> = hops.map(|(_, hop)| *hop).collect();
        // The same router serves both families; prefer its address of the probe's.
        gateways.sort_by_key(|gateway| gateway.is_ipv4() != v4);
        gateways.extend(self.kernel.default_gateway(link.index, kernel::any(v4)).await);
        let Some(first) = gateways.first() else {
            return Err(format!(
                "no gateway on {name}: no upstream and no default route is there; set \
                 anycast.health.probe = \"program\""
            ));
        };
        let unresolved = format!("the gateway {first} does not answer ARP or neighbour discovery");
        for gateway in gateways {
            if let Some(gateway_mac) = self.kernel.neighbour(link.index, gateway).await {
                let target =
                    probe::Target { interface: link.index, mac, own, gateway, gateway_mac };
                let port = &mut self.ports[i];
                let probe = if v4 { &mut port.probe4 } else { &mut port.probe6 };
                return probe
                    .aim(target, self.probe_id)
                    .map_err(|error| format!("no packet socket: {error}"));
            }
        }
        Err(unresolved)
    }

    /// An interface's own address of a family that others can reach.
    async fn own_address(&self, index: u32, v4: bool) -> Option<IpAddr> {
        let addresses = self.kernel.addresses(index).await.ok()?;
        let usable = |ip: &IpAddr| match ip {
            IpAddr::V4(ip) => v4 && !ip.is_link_local() && !ip.is_loopback(),
            IpAddr::V6(ip) => !v4 && !ip.is_unicast_link_local() && !ip.is_loopback(),
        };
        addresses.into_iter().find(|ip| usable(ip) && !self.config.echo.addresses.contains(ip))
    }

    /// Where the kernel itself answers, it must have the addresses.
    async fn check_addresses(&mut self) {
        if !self.health.expects(&Check::Addresses) {
            return;
        }
        let mut missing = None;
        for ip in &self.config.echo.addresses {
            if !self.kernel.is_local(*ip).await {
                missing = Some(*ip);
            }
        }
        let finding = match missing {
            None => Ok("the kernel has the service addresses".into()),
            Some(ip) => Err(format!("the kernel does not have {ip}; set echo.assign = true")),
        };
        self.report(Check::Addresses, Outcome::Bad, finding);
    }

    fn check_drops(&mut self) {
        let Some(program) = &self.program else { return };
        let [received, dropped] = match read::arrivals(program) {
            Ok(counts) => counts,
            Err(error) => {
                self.report(Check::Drops, Outcome::Bad, Err(error.to_string()));
                return;
            }
        };
        // The counts of a removed address are gone.
        let arrived = received.saturating_sub(self.counted[0]);
        let lost = dropped.saturating_sub(self.counted[1]);
        self.counted = [received, dropped];
        let ratio = if arrived == 0 { 0.0 } else { lost as f64 / arrived as f64 };
        let most = health_config(&self.config).max_drop_ratio;
        let detail = format!("{lost} of {arrived} requests were over the node's limit");
        let finding = if ratio <= most { Ok(detail) } else { Err(detail) };
        self.report(Check::Drops, Outcome::Bad, finding);
    }

    /// Arrivals so far, of which only a change counts. If the kernel itself answers, these are its counts,
    /// which are for all addresses of the node.
    fn arrivals(&self) -> u64 {
        let kernel = self.ports.iter().any(|port| port.answering() == InterfaceMode::Kernel);
        self.counted[0] + if kernel { read::kernel_echos() } else { 0 }
    }

    /// Advances a drain.
    fn tick(&mut self) {
        let withdrawn = !self.upstreams.iter().any(Slot::may_be_announced);
        let arrivals = self.arrivals();
        if self.drain.tick(self.now(), arrivals, withdrawn) {
            tracing::info!("{}", self.drain.phase().word());
        }
        if matches!(self.drain.phase(), Phase::Drained | Phase::Serving) {
            // Published first, so that the status shows it when the drain's caller returns.
            self.publish();
            for waiting in self.drained.drain(..) {
                let _ = waiting.send(());
            }
        }
    }

    /// Decides for each upstream, and publishes.
    fn decide(&mut self, detected: Instant) {
        let now = self.now();
        let hold = health_config(&self.config).hold;
        let phase = self.drain.phase();
        for slot in &mut self.upstreams {
            slot.decide(now, hold, phase, &self.health, detected);
        }
        self.publish();
    }

    /// The upkeep of interfaces, addresses and routes.
    async fn upkeep(&mut self) {
        if self.change.is_some() {
            // During a reload both configurations count; its end cleans up.
            return;
        }
        for port in &mut self.ports {
            match self.kernel.link(&port.name).await {
                Ok(link) => drop(port.see(link)),
                Err(error) => {
                    tracing::warn!("{error}");
                    port.unseen = Some(error.to_string());
                }
            }
        }
        self.learn_own().await;
        if let Err(error) = self.configure() {
            tracing::error!("{error}");
        }
        for i in 0..self.ports.len() {
            if let Err(error) = self.attach(i) {
                tracing::warn!("interface {}: {error}", self.ports[i].name);
            }
        }
        if let Err(error) = self.loopback.set(&assigned(&self.config)).await {
            tracing::error!("{error}");
        }
        self.locate().await;
        self.expect();
        self.publish();
    }

    pub(super) fn attach(&mut self, i: usize) -> Result<(), AttachError> {
        let program = self.program.as_deref().ok_or(self.no_program.as_str());
        self.ports[i].attach(program)
    }

    /// Looks up the interfaces' own addresses.
    pub(super) async fn learn_own(&mut self) {
        let mut own = probe::DUMMIES.to_vec();
        for i in 0..self.ports.len() {
            let index = self.ports[i].link.as_ref().map(|link| link.index);
            for (family, v4) in [true, false].into_iter().enumerate() {
                let address = match index {
                    Some(index) => self.own_address(index, v4).await,
                    None => None,
                };
                self.ports[i].has_own[family] = address.is_some();
                own.extend(address);
            }
        }
        own.sort();
        own.dedup();
        self.own = own;
    }

    pub(super) async fn locate(&mut self) {
        let mut hops = Vec::new();
        for slot in &mut self.upstreams {
            let ports = &self.ports;
            let name_of = |index: u32| {
                let is_it = |port: &&Port| port.link.as_ref().is_some_and(|l| l.index == index);
                ports.iter().find(is_it).map(|port| port.name.clone())
            };
            hops.extend(slot.locate(&self.kernel, name_of).await);
        }
        self.next_hops = hops;
    }

    /// Configures the program, if its settings are not those in force.
    pub(super) fn configure(&mut self) -> Result<(), datapath::echo::ConfigureError> {
        let Some(program) = &self.program else { return Ok(()) };
        let [allow, deny] = &self.lists;
        let settings = read::settings(
            &self.config.echo,
            &self.limit,
            [allow, deny],
            self.own.clone(),
            self.probe_id,
        );
        if program.settings() == settings { Ok(()) } else { program.configure(&settings) }
    }

    /// Sets the checks.
    pub(super) fn expect(&mut self) {
        let config = health_config(&self.config);
        let mut checks = Vec::new();
        let families = [true, false]
            .map(|v4| self.config.echo.addresses.iter().any(|address| address.is_ipv4() == v4));
        for port in &self.ports {
            checks.push(Check::Link(port.name.clone()));
            checks.push(Check::Program(port.name.clone()));
            // The kernel's answers cannot be probed: it refuses its own address as a source.
            let kernel = port.answering() == InterfaceMode::Kernel;
            if config.probe == Probe::Loop && !kernel {
                // A family without an address on the link is not probed, unless none has one.
                let [own4, own6] = port.has_own;
                let neither = !(own4 && families[0] || own6 && families[1]);
                if families[0] && (own4 || neither) {
                    checks.push(Check::Probe4(port.name.clone()));
                }
                if families[1] && (own6 || neither) {
                    checks.push(Check::Probe6(port.name.clone()));
                }
            }
            if kernel {
                checks.push(Check::Addresses);
            }
        }
        if self.program.is_some() && config.max_drop_ratio < 1.0 {
            checks.push(Check::Drops);
        }
        checks.extend((0..config.commands.len()).map(Check::Command));
        self.health.expect(checks);
    }

    async fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Prepare(config, answer) => {
                let kernel = |config: &Config| config.echo.mode == Mode::Kernel;
                let result = if kernel(&self.config) && !kernel(&config) {
                    Err(ReloadError::Mode)
                } else {
                    self.prepare(*config).map_err(ReloadError::Start)
                };
                let _ = answer.send(result);
            }
            Ask::Commit(answer) => {
                let result = self.commit().await;
                let _ = answer.send(result.map_err(ReloadError::Start));
            }
            Ask::Finish(answer) => {
                self.finish().await;
                self.decide(Instant::now());
                let _ = answer.send(());
            }
            Ask::RollBack(answer) => {
                self.roll_back().await;
                self.decide(Instant::now());
                let _ = answer.send(());
            }
            Ask::Control(request, answer) => {
                let _ = answer.send(self.control(request));
                self.publish();
            }
            Ask::Drain(answer) => {
                let announced = self.upstreams.iter().any(Slot::may_be_announced);
                if self.upstreams.is_empty() && self.drain.phase() == Phase::Serving {
                    // Nothing was announced: there is nothing to wait for.
                    self.drain = Drain::new(times(&self.config), true);
                } else {
                    self.drain.drain(self.now(), announced);
                }
                self.drained.push(answer);
                self.tick();
                self.decide(Instant::now());
            }
            Ask::Undrain(answer) => {
                self.drain.undrain();
                self.tick();
                self.decide(Instant::now());
                let _ = answer.send(());
            }
            Ask::Stop(_) => unreachable!("the loop ends with it"),
        }
    }

    /// Changes limits or lists until the next reload.
    fn control(&mut self, request: Request) -> Result<serde_json::Value, ControlError> {
        if self.program.is_none() {
            return Err(ControlError::NoProgram("limit"));
        }
        let change = change::apply(request, self.limit, &self.lists)?;
        let before = (self.limit, self.lists.clone());
        (self.limit, self.lists) = (change.limit, change.lists);
        if let Err(error) = self.configure() {
            (self.limit, self.lists) = before;
            return Err(error.into());
        }
        Ok(change.answer)
    }
}
