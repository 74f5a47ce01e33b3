//! Applies a configuration at the start and at a reload, stops everything, and publishes the status.
//!
//! A reload first does what can fail and can be undone: it loads and starts sessions that announce
//! nothing yet (prepare), then adds addresses, configures, attaches (commit). When one of these fails,
//! here or in another job, the old configuration is restored (roll back). Only then does it remove what
//! the new configuration no longer has (finish).

use super::{
    StartError,
    command::Commands,
    port::Port,
    upstreams::{Moment, Slot},
    wanted::{assigned, health_config, rules, times},
    worker::{Pending, Worker},
};
use crate::{
    config::{AnycastConfig, Config, Mode},
    status::{AnycastStatus, CheckStatus, InterfaceMode, LatencyStatus, LedgerStatus, Status},
};
use bgp::config::Upstream;
use datapath::echo::{AttachError, EchoProgram};
use futures_util::future::join_all;
use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time;

/// A process that has just ended may still hold an interface for a moment.
const BUSY: Duration = Duration::from_secs(2);

impl Worker {
    /// Puts the first configuration in force.
    pub(super) async fn put_in_force(&mut self, config: Config) -> Result<(), StartError> {
        self.prepare(config)?;
        self.commit().await?;
        self.finish().await;
        Ok(())
    }

    /// The first step of a reload: loads the program, starts sessions.
    pub(super) fn prepare(&mut self, config: Config) -> Result<(), StartError> {
        self.load(config.echo.mode)?;
        let fresh = self.start_upstreams(config.anycast.as_ref())?;
        self.change = Some(Pending { config, fresh, ports: Vec::new(), before: None });
        Ok(())
    }

    /// The second step: adds what the new configuration has in addition.
    pub(super) async fn commit(&mut self) -> Result<(), StartError> {
        let Some(change) = &mut self.change else { return Ok(()) };
        let config = change.config.clone();
        let old = std::mem::replace(&mut self.config, config);
        let both = [assigned(&old), assigned(&self.config)].concat();
        change.before = Some((old, self.limit, self.lists.clone()));
        self.limit = self.config.echo.limit;
        self.lists = [self.config.echo.allow.clone(), self.config.echo.deny.clone()];
        let ports = self.add(&both).await?;
        if let Some(change) = &mut self.change {
            change.ports = ports;
        }
        Ok(())
    }

    /// The last step: removes what the new configuration no longer has.
    pub(super) async fn finish(&mut self) {
        if let Some(Pending { ports, fresh, .. }) = self.change.take() {
            self.take_away(ports, fresh).await;
        }
    }

    /// Restores the configuration that was in force before.
    pub(super) async fn roll_back(&mut self) {
        let Some(Pending { before, .. }) = self.change.take() else { return };
        if let Some((config, limit, lists)) = before {
            self.config = config;
            (self.limit, self.lists) = (limit, lists);
            self.put_back().await;
        }
    }

    /// Loads the program if it is needed and not loaded yet.
    fn load(&mut self, mode: Mode) -> Result<(), StartError> {
        if self.program.is_some() || mode == Mode::Kernel {
            return Ok(());
        }
        match EchoProgram::load() {
            Ok(program) => {
                let program = Arc::new(program);
                self.shared.program.store(Some(program.clone()));
                self.program = Some(program);
            }
            Err(error) if mode == Mode::Auto => {
                tracing::warn!("{error}; the kernel itself answers");
                self.no_program = error.to_string();
            }
            Err(error) => return Err(StartError::Load { mode, error }),
        }
        Ok(())
    }

    /// Starts sessions with the upstreams that no running session fits.
    fn start_upstreams(&self, config: Option<&AnycastConfig>) -> Result<Vec<Slot>, StartError> {
        let Some(config) = config else { return Ok(Vec::new()) };
        let running = |upstream: &Upstream| {
            self.upstreams.iter().any(|slot| slot.upstream().same_session(upstream))
        };
        let new = config.upstreams.iter().filter(|upstream| !running(upstream));
        Ok(new
            .map(|upstream| Slot::start(upstream, config, &self.bfd))
            .collect::<Result<_, _>>()?)
    }

    /// Adds what the new configuration has in addition. Returns the new interfaces.
    async fn add(&mut self, addresses: &[IpAddr]) -> Result<Vec<Port>, StartError> {
        self.loopback.set(addresses).await?;
        self.learn_own().await;
        self.configure()?;
        let mode = self.config.echo.mode;
        for i in 0..self.ports.len() {
            self.ports[i].set_mode(mode);
            self.attach(i).map_err(|error| attach_error(&self.ports[i], error))?;
        }
        let mut new = Vec::new();
        for name in &self.config.echo.interfaces {
            if self.ports.iter().any(|port| port.name == *name) {
                continue;
            }
            let mut port = Port::new(name, mode);
            port.see(self.kernel.link(name).await?);
            if port.link.is_none() {
                tracing::warn!("there is no interface {name} yet; it is used when it appears");
            }
            let until = Instant::now() + BUSY;
            loop {
                let program = self.program.as_deref().ok_or(self.no_program.as_str());
                match port.attach(program) {
                    Ok(()) => break,
                    Err(AttachError::Busy { .. }) if Instant::now() < until => {
                        time::sleep(Duration::from_millis(50)).await;
                        port.try_again();
                    }
                    Err(error) => return Err(attach_error(&port, error)),
                }
            }
            new.push(port);
        }
        Ok(new)
    }

    /// Restores the old configuration as far as possible.
    async fn put_back(&mut self) {
        if let Err(error) = self.configure() {
            tracing::error!("{error}");
        }
        let mode = self.config.echo.mode;
        for i in 0..self.ports.len() {
            self.ports[i].set_mode(mode);
            if let Err(error) = self.attach(i) {
                tracing::error!("interface {}: {error}", self.ports[i].name);
            }
        }
        if let Err(error) = self.loopback.set(&assigned(&self.config)).await {
            tracing::error!("{error}");
        }
    }

    /// Removes what the new configuration no longer has. The upkeep retries what the kernel refuses here.
    async fn take_away(&mut self, new_ports: Vec<Port>, fresh: Vec<Slot>) {
        let mut ports: Vec<Port> = self.ports.drain(..).chain(new_ports).collect();
        ports.retain(|port| self.config.echo.interfaces.contains(&port.name));
        self.ports = ports;
        if self.config.echo.mode == Mode::Kernel {
            self.program = None;
            self.shared.program.store(None);
        }
        self.learn_own().await;
        if let Err(error) = self.configure() {
            tracing::error!("{error}");
        }
        if let Err(error) = self.loopback.set(&assigned(&self.config)).await {
            tracing::error!("{error}");
        }

        let mut slots: Vec<Slot> = self.upstreams.drain(..).chain(fresh).collect();
        for upstream in self.config.anycast.iter().flat_map(|anycast| &anycast.upstreams) {
            if let Some(at) = slots.iter_mut().position(|slot| slot.adopt(upstream)) {
                self.upstreams.push(slots.swap_remove(at));
            }
        }
        for slot in slots {
            panics::spawn(slot.stop());
        }
        if let Some(anycast) = &self.config.anycast {
            self.upstreams.iter().for_each(|slot| slot.set_prefixes(anycast));
        }

        let health = health_config(&self.config);
        self.health.set_rules(rules(&health));
        self.drain.set_times(times(&self.config));
        if !self.commands.are(&health.commands, health.interval) {
            self.commands = Commands::start(&health.commands, health.interval, &self.findings.0);
        }
        self.locate().await;
        self.expect();
        self.publish();
    }

    /// Withdraws and ends sessions, then detaches. The addresses stay for a while, for the next start; after a
    /// panic they go at once, since none may come.
    pub(super) async fn stop(&mut self) {
        self.change = None;
        join_all(self.upstreams.drain(..).map(Slot::stop)).await;
        self.ports.clear();
        let left = match panics::failure("echo") {
            Some(_) => self.loopback.set(&[]).await,
            None => self.loopback.leave().await,
        };
        if let Err(error) = left {
            tracing::warn!("{error}");
        }
    }

    /// Publishes the status.
    pub(super) fn publish(&self) {
        let mut problems: Vec<String> = self
            .health
            .records()
            .filter(|(_, record)| !record.healthy)
            .map(|(check, record)| match record.last {
                Some(_) => format!("check {check}: {}", record.detail),
                None => format!("check {check}: no result yet"),
            })
            .collect();
        problems.extend(self.upstreams.iter().filter_map(Slot::problem));
        let moment = Moment::now();
        let started = moment.instant - self.now();
        let counted = self.ports.iter().any(|port| port.answering() != InterfaceMode::Kernel);
        let checks = self.health.records().map(|(check, record)| CheckStatus {
            name: check.to_string(),
            healthy: record.healthy,
            last: record.last,
            detail: record.detail.clone(),
            streak: record.streak,
            since: record.since.map(|since| moment.unix(started + since)),
        });
        let anycast = self.config.anycast.as_ref().map(|anycast| AnycastStatus {
            prefixes: anycast.prefixes.clone(),
            checks: checks.collect(),
            upstreams: self.upstreams.iter().map(|slot| slot.status(moment)).collect(),
        });
        let [allow, deny] = self.lists.clone();
        self.shared.status.store(Arc::new(Status {
            node: self.config.node.clone(),
            problems,
            drain: self.drain.phase(),
            interfaces: self.ports.iter().map(Port::status).collect(),
            ledger: LedgerStatus { counted, ..LedgerStatus::default() },
            latency: LatencyStatus::default(),
            limit: self.limit,
            allow,
            deny,
            anycast,
        }));
    }
}

fn attach_error(port: &Port, error: AttachError) -> StartError {
    StartError::Attach { interface: port.name.clone(), error }
}
