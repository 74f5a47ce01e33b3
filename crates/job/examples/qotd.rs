//! A small job to start from: quote of the day (RFC 865). A TCP connection gets one line and is closed.
//!
//! In a crate of its own all but `main` is `src/lib.rs`; CONTRIBUTING.md has the steps around it.
#![forbid(unsafe_code)]

use config::Problem;
use job::{
    Capabilities, Capability, Error, Job, Metrics, Node, Pulse, Registry, Section, Service,
    file::Reader,
    pulse::{Beat, LONGEST},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{io::AsyncWriteExt, net::TcpListener, task::JoinHandle, time::timeout};

/// How long a client may take to read the quote.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Serves the quote of the day (RFC 865): a TCP connection gets one line and is closed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QotdConfig {
    /// The address on which connections are accepted; port 17 is RFC 865's.
    #[schemars(with = "config::schema::Endpoint")]
    pub listen: SocketAddr,
    /// The line that a connection gets, at most 512 bytes.
    #[serde(default = "quote")]
    pub quote: String,
}

fn quote() -> String {
    "Be liberal in what you accept.".into()
}

/// The job, for the registry.
#[derive(Clone, Copy, Debug)]
pub struct Qotd;

impl Job for Qotd {
    type Config = QotdConfig;
    type Opened = (QotdConfig, TcpListener);
    type Service = Quoting;

    fn name(&self) -> &'static str {
        "qotd"
    }

    fn sections(&self) -> Vec<Section> {
        vec![Section::new::<QotdConfig>("qotd")]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { start: &[Capability::CAP_NET_BIND_SERVICE], keep: &[] }
    }

    fn read(&self, file: &mut Reader<'_, '_>, _: &Node) -> Option<QotdConfig> {
        file.section("qotd")?
    }

    fn problems(&self, config: &QotdConfig) -> Vec<Problem> {
        let long = config.quote.len() > 512;
        let problem = || Problem::new("qotd.quote", "a quote has at most 512 bytes (RFC 865)");
        long.then(problem).into_iter().collect()
    }

    /// A drained node sends quotes too: no traffic is to move away from them.
    async fn open(&self, config: QotdConfig, _drained: bool) -> Result<Self::Opened, Error> {
        let listener = bind(config.listen).await?;
        Ok((config, listener))
    }

    async fn start(&self, (config, listener): Self::Opened) -> Result<Quoting, Error> {
        let shared = Arc::new(Shared { config: Mutex::new(config), sent: AtomicU64::new(0) });
        let pulse = Pulse::default();
        let task = panics::spawn(accept(listener, shared.clone(), pulse.beat("accept")));
        Ok(Quoting { shared, task: Mutex::new(Some(task)), pulse })
    }
}

/// Listens on `address`.
async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    let explain = |error| format!("cannot listen on {address}: {error}; see qotd.listen").into();
    TcpListener::bind(address).await.map_err(explain)
}

/// What the task and the daemon's side both need.
#[derive(Debug)]
struct Shared {
    config: Mutex<QotdConfig>,
    sent: AtomicU64,
}

impl Shared {
    fn config(&self) -> QotdConfig {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The running job.
#[derive(Debug)]
pub struct Quoting {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
    pulse: Pulse,
}

impl Quoting {
    /// Goes on with another task, or none; the one before has ended when this returns.
    async fn replace(&self, task: Option<JoinHandle<()>>) {
        let old =
            std::mem::replace(&mut *self.task.lock().unwrap_or_else(PoisonError::into_inner), task);
        if let Some(old) = old {
            old.abort();
            let _ = old.await;
        }
    }
}

/// Answers connections, one after the other: what waits is bounded by the kernel's backlog.
async fn accept(listener: TcpListener, shared: Arc<Shared>, beat: Beat) {
    loop {
        beat.beat();
        let Ok(Ok((mut stream, _))) = timeout(LONGEST, listener.accept()).await else { continue };
        let line = format!("{}\r\n", shared.config().quote);
        if matches!(timeout(TIMEOUT, stream.write_all(line.as_bytes())).await, Ok(Ok(()))) {
            shared.sent.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A configuration that is prepared.
#[derive(Debug)]
pub struct Prepared {
    config: QotdConfig,
    /// Where it is another address than now, once it is bound.
    listener: Option<TcpListener>,
}

/// What can be asked over the control socket.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// How many quotes were sent.
    Sent,
}

impl Service for Quoting {
    type Config = QotdConfig;
    type Request = Request;
    type Prepared = Prepared;

    fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    fn problems(&self) -> Vec<String> {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = task.as_ref().is_none_or(JoinHandle::is_finished);
        ended.then(|| "the quotes' task has ended".to_owned()).into_iter().collect()
    }

    fn status(&self) -> Value {
        json!({ "sent": self.shared.sent.load(Ordering::Relaxed) })
    }

    fn render(&self) -> String {
        let mut text = format!("qotd: {} sent\n", self.shared.sent.load(Ordering::Relaxed));
        for problem in self.problems() {
            text += &format!("  ! {problem}\n");
        }
        text
    }

    fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        metrics.counter("nigh_qotd_sent", "Quotes sent", self.shared.sent.load(Ordering::Relaxed))
    }

    async fn control(&self, request: Request) -> Result<Value, Error> {
        match request {
            Request::Sent => Ok(self.status()),
        }
    }

    async fn prepare(&self, config: QotdConfig) -> Result<Prepared, Error> {
        Ok(Prepared { config, listener: None })
    }

    async fn commit(&self, prepared: &mut Prepared) -> Result<(), Error> {
        let listen = prepared.config.listen;
        if listen != self.shared.config().listen {
            prepared.listener = Some(bind(listen).await?);
        }
        Ok(())
    }

    async fn finish(&self, Prepared { config, listener }: Prepared) {
        *self.shared.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
        if let Some(listener) = listener {
            let accept = accept(listener, self.shared.clone(), self.pulse.beat("accept"));
            self.replace(Some(panics::spawn(accept))).await;
        }
    }

    async fn stop(&self) {
        self.replace(None).await;
    }
}

fn main() {
    let registry = Registry::default().with(Qotd);
    println!("jobs: {}", registry.names().collect::<Vec<_>>().join(", "));
}
