//! The running node, on which the control socket, the HTTP server and signals act.

use crate::{
    config::{self, Loaded, NodeConfig},
    notify::Notifier,
    state::{State, StateError},
};
use job::{ReloadError, Running, file::LoadError};
use serde_json::{Map, Value, json};
use std::{
    net::SocketAddr,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};
use tracing::{info, warn};

/// A running node.
#[derive(Debug)]
pub struct Node {
    file: PathBuf,
    config: NodeConfig,
    http: SocketAddr,
    jobs: Running,
    state: State,
    notifier: Notifier,
    started: Instant,
    started_at: SystemTime,
}

/// A drain did not finish.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// It could not be stored; nothing was drained.
    #[error("nothing was drained: {0}")]
    State(#[from] StateError),
    /// The operator ended it meanwhile.
    #[error("the drain was ended by `nigh undrain`: the node is in service")]
    Undrained,
}

/// A reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum NodeReloadError {
    /// The file is not valid.
    #[error("nothing was changed: {0}")]
    Load(#[from] LoadError),
    /// A job cannot apply it.
    #[error("nothing was changed: {0}")]
    Jobs(#[from] ReloadError),
}

impl Node {
    /// The node that runs `jobs` of the configuration `file`; `http` is the address it really listens on.
    pub fn new(
        file: PathBuf,
        config: NodeConfig,
        http: SocketAddr,
        jobs: Running,
        state: State,
        notifier: Notifier,
    ) -> Self {
        let (started, started_at) = (Instant::now(), SystemTime::now());
        Self { file, config, http, jobs, state, notifier, started, started_at }
    }

    /// The running jobs.
    pub fn jobs(&self) -> &Running {
        &self.jobs
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// By which the service manager is told.
    pub fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    /// The health of its jobs in one line.
    pub fn summary(&self) -> String {
        let drained = if self.state.drained() { "drained by the operator; " } else { "" };
        drained.to_owned() + &self.jobs.summary()
    }

    /// Whether the operator drained this node.
    pub fn drained(&self) -> bool {
        self.state.drained()
    }

    /// Time since the start.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// The state of everything as JSON: `node`, and each job under its name.
    pub fn status(&self) -> Value {
        let problems = self.jobs.problems();
        let node = json!({
            "name": self.config.name,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "started": humantime::format_rfc3339_seconds(self.started_at).to_string(),
            "uptime_seconds": self.uptime().as_secs_f64(),
            "config": self.file,
            "http": self.http.to_string(),
            "drained": self.state.drained(),
            "healthy": problems.is_empty(),
            "problems": problems,
        });
        let mut state = Map::from_iter([("node".to_owned(), node)]);
        self.jobs.status(&mut state);
        Value::Object(state)
    }

    /// The same for people.
    pub fn render(&self) -> String {
        let uptime = humantime::format_duration(Duration::from_secs(self.uptime().as_secs()));
        let mut text = format!(
            "node {}: nigh {}, up {uptime}, http://{}/\n",
            self.config.name,
            env!("CARGO_PKG_VERSION"),
            self.http,
        );
        if self.state.drained() {
            text.push_str("drained by the operator: `nigh undrain` puts it back into service\n");
        }
        text + &self.jobs.render()
    }

    /// Takes the node out of service, also for the next start; returns when no more requests arrive.
    ///
    /// # Errors
    ///
    /// See [`DrainError`].
    pub async fn drain(&self) -> Result<Value, DrainError> {
        self.state.set_drained(true)?;
        info!("drain: the operator takes this node out of service");
        let begun = Instant::now();
        self.jobs.drain().await;
        if !self.state.drained() {
            return Err(DrainError::Undrained);
        }
        Ok(json!({ "drained": true, "seconds": begun.elapsed().as_secs_f64() }))
    }

    /// Takes the node into service again, also for the next start.
    ///
    /// # Errors
    ///
    /// It could not be stored; then the node stays drained.
    pub async fn undrain(&self) -> Result<Value, StateError> {
        self.state.set_drained(false)?;
        info!("undrain: the operator puts this node back into service");
        self.jobs.undrain().await;
        Ok(json!({ "drained": false }))
    }

    /// Reads the configuration file again and applies what changed.
    ///
    /// `[node]` is only read at the start: the answer names what changed there, and jobs that have failed.
    ///
    /// # Errors
    ///
    /// The file is not valid or cannot be applied; the old configuration stays in force.
    pub async fn reload(&self) -> Result<Value, NodeReloadError> {
        self.notifier.reloading();
        let result = self.put_in_force().await;
        self.notifier.ready();
        match &result {
            Ok(_) => info!(file = %self.file.display(), "reloaded"),
            Err(error) => warn!(file = %self.file.display(), "reload: {error}"),
        }
        result
    }

    async fn put_in_force(&self) -> Result<Value, NodeReloadError> {
        let Loaded { node, jobs, report } = config::load(&self.file)?;
        report.log();
        let failed = self.jobs.reload(jobs).await?;
        let restart = [self.changed(&node), failed].concat();
        if !restart.is_empty() {
            warn!(
                keys = restart.join(", "),
                "changed, but not applied: restart the daemon to apply"
            );
        }
        Ok(
            json!({ "reloaded": self.file, "restart_to_apply": restart, "warnings": report.findings }),
        )
    }

    /// The names by which clients may call the HTTP server.
    pub fn http_names(&self) -> web::Names {
        self.config.http_names.iter().cloned().chain([config::host_name()]).collect()
    }

    /// The keys of `[node]` that differ from those in force.
    fn changed(&self, new: &NodeConfig) -> Vec<&'static str> {
        let old = &self.config;
        let differs = [
            ("node.name", new.name != old.name),
            ("node.control", new.control != old.control),
            ("node.http", new.http != old.http),
            ("node.http_names", new.http_names != old.http_names),
            ("node.http_token", new.http_token != old.http_token),
            ("node.state", new.state != old.state),
        ];
        differs.iter().filter(|(_, differs)| *differs).map(|(key, _)| *key).collect()
    }
}
