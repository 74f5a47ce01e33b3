//! `nigh run`: start, signals, stop.
//!
//! Order of the start: file checked, capabilities dropped, state directory locked, control socket
//! and HTTP address bound, and only then programs attached and sessions begun. So a second daemon,
//! or one whose addresses are taken, fails before it has touched the network.
//!
//! SIGTERM and SIGINT drain and then stop; a second one stops at once. SIGHUP reloads.

use crate::{
    cli::RunArgs,
    config::{self, Loaded},
    control, http,
    jobs::{self, Joined},
    logging,
    node::Node,
    notify::Notifier,
    privileges,
    state::{State, StateError},
    viewers::Viewers,
    watchdog,
};
use ::config::token::TokenError;
use ::control::ControlSocket;
use job::file::LoadError;
use nix::sys::signal::{SigSet, Signal as Unix};
use std::{io, sync::Arc};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};
use tracing::{info, warn};

/// The daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The log filter is not valid.
    #[error(transparent)]
    Log(#[from] logging::LogError),
    /// The configuration file is not valid.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Capabilities could not be dropped.
    #[error(transparent)]
    Privileges(#[from] privileges::PrivilegeError),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The control socket cannot be opened.
    #[error("{0}; see node.control")]
    Control(#[from] ::control::BindError),
    /// The HTTP address cannot be bound.
    #[error(transparent)]
    Http(#[from] web::BindError),
    /// The token of viewers cannot be used.
    #[error("node.http_token: {0}")]
    Token(#[from] TokenError),
    /// A job did not start.
    #[error("{0}")]
    Job(job::Error),
    /// Nothing is left to run.
    #[error("all jobs have failed")]
    Failed,
    /// The runtime or a signal handler could not be set up.
    #[error("cannot set up the process: {0}")]
    Process(#[from] io::Error),
}

/// Runs until a signal stops it.
///
/// # Errors
///
/// See [`RunError`]; what had been opened is closed again.
pub fn run(args: &RunArgs) -> Result<(), RunError> {
    logging::start(&args.log, args.log_format)?;
    // Before the file is read, which may hold secrets.
    datapath::capabilities::conceal()?;
    let loaded = config::load(&args.config)?;
    loaded.report.log();
    panics::install();
    let user = privileges::user(&args.user)?;
    loaded.jobs.privileged(user.as_ref());
    jobs::end_earlier(&loaded.jobs, &loaded.node.state);
    if let Some(user) = &user {
        privileges::change(user, &loaded.node, &args.config)?;
    }
    privileges::limit(&loaded.jobs)?;
    // Capabilities belong to threads: what this one drops before it starts others, the process no
    // not.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(serve(args, loaded));
    // A blocking call that still runs must not delay the exit.
    runtime.shutdown_background();
    if result.is_ok() {
        info!("stopped");
    }
    result
}

/// The signals that stop the daemon.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> io::Result<Self> {
        // The parent process may have blocked them, and a program inherits that.
        [Unix::SIGTERM, Unix::SIGINT, Unix::SIGHUP]
            .into_iter()
            .collect::<SigSet>()
            .thread_unblock()?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one and names it.
    async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

async fn serve(args: &RunArgs, loaded: Loaded) -> Result<(), RunError> {
    let mut stop = Stop::new()?;
    let mut hangup = signal(SignalKind::hangup())?;
    let Loaded { node: config, jobs, .. } = loaded;
    let state = State::open(&config.state)?;
    let socket = ControlSocket::bind(&config.control)?;
    let listener = TcpListener::from_std(web::bind(config.http, "node.http")?)?;
    let viewers = Viewers::new(config.http_token.as_deref())?;
    let address = listener.local_addr()?;
    let drained = state.drained();
    if drained {
        warn!("this node was drained by the operator and stays drained until `nigh undrain`");
    }
    let kept = jobs.kept_capabilities();
    let mut opening = std::pin::pin!(jobs.open(drained));
    let opened = tokio::select! {
        opened = &mut opening => opened.map_err(RunError::Job)?,
        signal = stop.recv() => {
            info!(signal, "stopped during the start");
            // A half-done start cannot be undone: it finishes, which takes a moment, and is then stopped.
            if let Ok(opened) = opening.await {
                opened.close().await;
            }
            return Ok(());
        }
    };
    if let Err(error) = privileges::settle(&kept) {
        opened.close().await;
        return Err(error.into());
    }
    let jobs = opened.start(&jobs::registry()).await.map_err(RunError::Job)?;
    let joined = Joined::join(&jobs);
    let file = std::path::absolute(&args.config)?;
    let node = Arc::new(Node::new(file, config, address, jobs, state, Notifier::from_env()));
    let serving = {
        let (for_http, for_control) = (node.clone(), node.clone());
        async move {
            tokio::join!(
                web::serve(listener, for_http.http_names(), http::router(for_http, &viewers)),
                socket.serve(move |line| control::reply(for_control.clone(), line))
            )
        }
    };
    let serving = tokio::spawn(serving);
    let contained = node.clone();
    let mut failed = tokio::spawn(async move { contained.jobs().contain().await });
    info!(node = node.name(), http = %address, version = env!("CARGO_PKG_VERSION"), "ready");
    node.notifier().ready();
    let watchdog = tokio::spawn({
        let node = node.clone();
        async move { watchdog::watch(&node).await }
    });
    let result = loop {
        tokio::select! {
            signal = stop.recv() => {
                info!(signal, "draining, then stopping; send the signal again to stop at once");
                break Ok(());
            }
            // The service manager starts the node again; with a job left, the operator chooses when.
            _ = &mut failed => break Err(RunError::Failed),
            _ = hangup.recv() => {
                // Its errors are in the log.
                let _ = node.reload().await;
            }
        }
    };
    node.notifier().stopping();
    tokio::select! {
        () = node.jobs().drain() => {}
        signal = stop.recv() => warn!(signal, "stopping without waiting for the drain"),
    }
    drop(joined);
    tokio::select! {
        () = node.jobs().stop() => {}
        signal = stop.recv() => warn!(signal, "stopping at once; the kernel cleans up"),
    }
    watchdog.abort();
    serving.abort();
    // It returns that it was aborted; the control socket is gone then.
    let _ = serving.await;
    result
}
