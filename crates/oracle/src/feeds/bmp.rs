//! BMP: routers connect and report their routes (RFC 7854).
//!
//! The listener gives a connection to the feed of the router that has its address, and closes all
//! others. A feed has one connection: a router that opens another has lost the first. The routes outlive
//! the connection, see [`bgp::bmp::rib`].

use super::{
    BATCH, BmpConfig, FLUSH, News, StartError, State, Update,
    config::BmpRouter,
    report::{Report, Reports},
    send, send_changes, until,
};
use arc_swap::ArcSwap;
use bgp::bmp::{
    Fault, Rib, RouteChange, Session, SessionError, Settings, Status, session::Counters,
};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};
use topo::{Change, ExternalPath, RouterId};

/// How long a router has until its Initiation message.
const INITIATION: Duration = Duration::from_secs(15);
/// How long a message may take from its first byte to its last.
const MESSAGE: Duration = Duration::from_secs(60);
/// How long the listener pauses when accepting fails.
const REST: Duration = Duration::from_millis(100);
/// What is read at a time.
const READ: usize = 64 * 1024;

/// Connections of the configured routers, by the address they come from.
type Queues = Arc<ArcSwap<HashMap<IpAddr, mpsc::Sender<TcpStream>>>>;

/// The sockets that routers connect to, and the routers.
#[derive(Debug)]
pub struct Listener {
    config: BmpConfig,
    sender: mpsc::Sender<Update>,
    queues: Queues,
    reports: Reports,
    listening: Vec<JoinHandle<()>>,
    routers: Vec<Router>,
}

/// Opens the sockets.
///
/// # Errors
/// Names the address that cannot be bound.
pub(super) fn listen(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, StartError> {
    let open = |address: &SocketAddr| {
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(*address), kind, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&(*address).into())?;
        socket.listen(64)?;
        TcpListener::from_std(socket.into())
    };
    addresses
        .iter()
        .map(|address| {
            open(address).map_err(|error| StartError::Listen { address: *address, error })
        })
        .collect()
}

impl Listener {
    pub(super) async fn start(
        config: &BmpConfig,
        sockets: Vec<TcpListener>,
        sender: &mpsc::Sender<Update>,
        reports: &Reports,
    ) -> Self {
        let mut listener = Self {
            config: BmpConfig { routers: Vec::new(), ..config.clone() },
            sender: sender.clone(),
            queues: Queues::default(),
            reports: reports.clone(),
            listening: Vec::new(),
            routers: Vec::new(),
        };
        listener.reload(config, Some(sockets)).await;
        listener
    }

    pub(super) fn config(&self) -> &BmpConfig {
        &self.config
    }

    pub(super) fn reports(&self) -> impl Iterator<Item = &Report> {
        self.routers.iter().map(|router| &router.report)
    }

    /// Changes over to another configuration, and to other sockets if there are new ones.
    pub(super) async fn reload(&mut self, config: &BmpConfig, sockets: Option<Vec<TcpListener>>) {
        let same = |router: &Router| {
            config.routers.contains(&router.config)
                && (config.hold, config.max_routes) == (self.config.hold, self.config.max_routes)
        };
        let (kept, gone) = std::mem::take(&mut self.routers).into_iter().partition(same);
        self.routers = kept;
        let keep: HashMap<_, _> = self.routers.iter().map(Router::queue).collect();
        self.queues.store(Arc::new(keep));
        for router in gone {
            router.stop(Some(&self.sender)).await;
        }
        for router in &config.routers {
            if !self.routers.iter().any(|running| running.config == *router) {
                self.routers.push(Router::start(router, config, &self.sender));
            }
        }
        self.config = config.clone();
        self.queues.store(Arc::new(self.routers.iter().map(Router::queue).collect()));
        if let Some(sockets) = sockets {
            for task in self.listening.drain(..) {
                task.abort();
            }
            for socket in sockets {
                let (queues, reports) = (Arc::clone(&self.queues), self.reports.clone());
                self.listening.push(tokio::spawn(accept(socket, queues, reports)));
            }
        }
    }

    /// Ends all; `removed`: whether what the routers reported is to be removed.
    pub(super) async fn stop(mut self, removed: bool) {
        for router in std::mem::take(&mut self.routers) {
            router.stop(removed.then_some(&self.sender)).await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for task in &self.listening {
            task.abort();
        }
    }
}

/// Takes connections and gives them to their routers.
async fn accept(socket: TcpListener, queues: Queues, reports: Reports) {
    loop {
        let (stream, from) = match socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Mostly too many open files: a later attempt may succeed.
                tracing::warn!(%error, "accepting a BMP connection failed");
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        let from = from.ip().to_canonical();
        match queues.load().get(&from) {
            // Where the router's task has not taken its last connection yet, this one is closed.
            Some(queue) => drop(queue.try_send(stream)),
            None => {
                let count = reports.unknown_peer();
                // Unknown peers must not be able to fill the log.
                if count.is_power_of_two() {
                    tracing::warn!(%from, count, "BMP connection from an address that is not configured");
                }
            }
        }
    }
}

/// The feed of one router.
#[derive(Debug)]
struct Router {
    config: BmpRouter,
    feed: Arc<str>,
    queue: mpsc::Sender<TcpStream>,
    report: Report,
    task: JoinHandle<()>,
}

impl Router {
    fn start(config: &BmpRouter, all: &BmpConfig, sender: &mpsc::Sender<Update>) -> Self {
        let feed: Arc<str> = format!("bmp {}", config.router).into();
        let report = Report::new(&feed);
        let (queue, connections) = mpsc::channel(1);
        let settings = Settings { internal: config.internal, ..Settings::default() };
        let task = Task {
            feed: Arc::clone(&feed),
            router: config.router,
            settings,
            hold: all.hold,
            max_routes: all.max_routes,
            rib: Rib::new(all.max_routes),
            connection: None,
            counted: Counters::default(),
            fault: None,
            warned: false,
            flush_at: None,
            drop_at: None,
            sender: sender.clone(),
            report: report.clone(),
        };
        let task = tokio::spawn(task.run(connections, config.address));
        Self { config: config.clone(), feed, queue, report, task }
    }

    fn queue(&self) -> (IpAddr, mpsc::Sender<TcpStream>) {
        (self.config.address.to_canonical(), self.queue.clone())
    }

    /// Ends the session; with a sender, reports that the router is no longer configured.
    async fn stop(mut self, sender: Option<&mpsc::Sender<Update>>) {
        self.task.abort();
        let _ = (&mut self.task).await;
        if let Some(sender) = sender {
            send(sender, &self.feed, News::Removed).await;
        }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection.
struct Connection {
    stream: TcpStream,
    session: Session,
    /// The deadline of what is waited for: Initiation, or the end of a message.
    due: Option<Instant>,
    /// What is waited for came after as many messages.
    after: u64,
}

/// What a router's task works with.
struct Task {
    feed: Arc<str>,
    router: RouterId,
    settings: Settings,
    hold: Duration,
    max_routes: usize,
    rib: Rib,
    connection: Option<Connection>,
    /// What of the running session is in the report.
    counted: Counters,
    /// Which peer's fault is shown.
    fault: Option<Fault>,
    /// One of this session was logged.
    warned: bool,
    flush_at: Option<Instant>,
    /// When the stale routes are removed.
    drop_at: Option<Instant>,
    sender: mpsc::Sender<Update>,
    report: Report,
}

impl Task {
    async fn run(mut self, mut connections: mpsc::Receiver<TcpStream>, address: IpAddr) {
        let waiting = format!("the router has not connected from {address} yet");
        self.report.set(State::Waiting, Some(waiting.clone()));
        if !send(&self.sender, &self.feed, News::Waiting(waiting)).await {
            return;
        }
        let mut buffer = vec![0; READ];
        loop {
            let deadline = self.deadline();
            tokio::select! {
                biased;
                stream = connections.recv() => match stream {
                    Some(stream) => self.connected(stream).await,
                    None => return,
                },
                read = read(self.connection.as_mut(), &mut buffer) => match read {
                    Ok(0) => self.lost("the router closed the connection".into(), false).await,
                    Ok(count) => self.received(buffer.get(..count).unwrap_or_default()).await,
                    Err(error) => self.lost(format!("the connection failed: {error}"), true).await,
                },
                () = until(deadline) => {}
            }
            if !self.tick().await {
                return;
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let due = self.connection.as_ref().and_then(|connection| connection.due);
        let settle = self.connection.as_ref().and_then(|_| self.rib.settle_at());
        [self.flush_at, self.drop_at, due, settle].into_iter().flatten().min()
    }

    /// Does what is due; `false` if the receiver is gone.
    async fn tick(&mut self) -> bool {
        let now = Instant::now();
        if let Some(connection) = &self.connection
            && connection.due.is_some_and(|due| due <= now)
        {
            let what = if connection.session.begun() {
                "a message was not complete within 60 s"
            } else {
                "the router has not sent Initiation within 15 s"
            };
            self.lost(what.into(), true).await;
        }
        if let Some(connection) = &self.connection {
            connection.session.settle(&mut self.rib, now);
        }
        if self.drop_at.is_some_and(|at| at <= now) {
            self.remove().await;
        }
        if self.rib.changes() > 0 && self.flush_at.is_none() {
            self.flush_at = Some(now + FLUSH);
        }
        if self.flush_at.is_some_and(|at| at <= now) || self.rib.changes() >= BATCH {
            return self.flush().await;
        }
        true
    }

    async fn flush(&mut self) -> bool {
        self.flush_at = None;
        let changes = self.rib.take_changes();
        let count = changes.len() as u64;
        let (size, peers) =
            (self.rib.size(), self.connection.as_ref().map(|it| it.session.peers()));
        self.report.update(|status| {
            status.changes += count;
            (status.routes, status.stale) = (size.routes, size.stale);
            status.peers = peers.unwrap_or_default();
        });
        let router = self.router;
        let changes = changes.into_iter().map(|change| translate(change, router));
        send_changes(&self.sender, &self.feed, changes).await
    }

    async fn connected(&mut self, stream: TcpStream) {
        if self.connection.is_some() {
            self.lost("the router opened another connection".into(), true).await;
        }
        // A router that disappears silently is noticed after a minute.
        let keepalive = TcpKeepalive::new()
            .with_time(Duration::from_secs(30))
            .with_interval(Duration::from_secs(10))
            .with_retries(3);
        if let Err(error) = SockRef::from(&stream).set_tcp_keepalive(&keepalive) {
            tracing::debug!(feed = %self.feed, %error, "no TCP keepalive");
        }
        tracing::info!(feed = %self.feed, "BMP connection opened");
        self.counted = Counters::default();
        (self.fault, self.warned) = (None, false);
        self.connection = Some(Connection {
            stream,
            session: Session::new(self.settings),
            due: Some(Instant::now() + INITIATION),
            after: 0,
        });
    }

    async fn received(&mut self, bytes: &[u8]) {
        let Some(connection) = &mut self.connection else { return };
        let now = Instant::now();
        let begun = connection.session.begun();
        let result = connection.session.receive(bytes, &mut self.rib, now);
        let (counters, session) = (connection.session.counters(), &connection.session);
        let begins = session.begun() && !begun;
        let name = session.name().map(str::to_owned);
        if session.begun() {
            if !session.in_message() {
                connection.due = None;
            } else if connection.due.is_none() || connection.after != counters.messages {
                connection.due = Some(now + MESSAGE);
                connection.after = counters.messages;
            }
        }
        let fault = session.fault().cloned();
        self.count(counters);
        if begins {
            tracing::info!(
                feed = %self.feed,
                router = name.as_deref().unwrap_or("unnamed"),
                "BMP session established"
            );
            self.drop_at = None;
            self.report.set(State::Up, None);
            self.report.update(|status| {
                status.name = name;
                status.sessions += 1;
            });
            send(&self.sender, &self.feed, News::Up).await;
        }
        self.show(fault);
        match result {
            Ok(Status::Open) => {}
            Ok(Status::Terminated(why)) => {
                self.lost(format!("the router ended the session: {why}"), false).await;
            }
            Err(error) => self.broken(&error).await,
        }
    }

    async fn broken(&mut self, error: &SessionError) {
        self.lost(format!("the router sent malformed BMP: {error}"), true).await;
    }

    /// Shows which peer's routes are not taken until it comes up again; the first of a session is logged
    /// as a warning.
    fn show(&mut self, fault: Option<Fault>) {
        if fault == self.fault {
            return;
        }
        let why = fault.as_ref().map(|fault| {
            format!("{fault}; its routes are ignored until the router reports it up again")
        });
        match &why {
            Some(why) if !self.warned => {
                self.warned = true;
                tracing::warn!(feed = %self.feed, "{why}");
            }
            Some(why) => tracing::debug!(feed = %self.feed, "{why}"),
            None => {}
        }
        self.report.update(|status| status.problem = why);
        self.fault = fault;
    }

    /// Adds what the session has counted since the last call to the report.
    fn count(&mut self, now: Counters) {
        let old = std::mem::replace(&mut self.counted, now);
        let ignored = |it: &Counters| {
            it.unknown + it.other_tables + it.unannounced + it.mirroring + it.internal
        };
        self.report.update(|status| {
            status.messages += now.messages - old.messages;
            status.refused += now.refused - old.refused;
            status.malformed += now.malformed + now.faults - old.malformed - old.faults;
            status.ignored += ignored(&now) - ignored(&old);
        });
        if now.refused > 0 && old.refused == 0 {
            let limit = self.max_routes;
            tracing::warn!(feed = %self.feed, limit, "max_routes is reached: further routes are refused");
        }
    }

    /// The connection is over.
    async fn lost(&mut self, why: String, error: bool) {
        let Some(connection) = self.connection.take() else { return };
        tracing::warn!(feed = %self.feed, "BMP session ended: {why}");
        self.report.update(|status| {
            status.errors += u64::from(error);
            status.peers = 0;
        });
        if connection.session.begun() {
            self.drop_at = Some(Instant::now() + self.hold);
            self.report.set(State::Stale, Some(why.clone()));
            send(&self.sender, &self.feed, News::Down(why)).await;
        } else {
            let state = self.report.state();
            self.report.set(state, Some(why));
        }
    }

    async fn remove(&mut self) {
        self.drop_at = None;
        self.flush_at = None;
        self.rib = Rib::new(self.max_routes);
        let hold = humantime::format_duration(self.hold);
        let why = format!("the router has been gone for {hold}");
        tracing::warn!(feed = %self.feed, "its routes are removed: {why}");
        self.report.set(State::Dropped, Some(why.clone()));
        self.report.update(|status| (status.routes, status.stale) = (0, 0));
        send(&self.sender, &self.feed, News::Dropped(why)).await;
    }
}

async fn read(connection: Option<&mut Connection>, buffer: &mut [u8]) -> io::Result<usize> {
    match connection {
        Some(connection) => connection.stream.read(buffer).await,
        None => std::future::pending().await,
    }
}

fn translate(change: RouteChange, router: RouterId) -> Change {
    let RouteChange { prefix, exit, path } = change;
    let exit = exit.map_or(router, RouterId);
    match path {
        Some(path) => Change::Route {
            prefix,
            exit,
            path: ExternalPath { as_distance: path.distance, as_number: path.origin },
        },
        None => Change::Withdraw { prefix, exit },
    }
}
