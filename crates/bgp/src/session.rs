//! The embedded session on tokio: the state machine of [`crate::fsm`] joined to a socket and a clock.
//!
//! One task owns everything. Each turn it does what the machine wants done, fills an empty output buffer,
//! publishes what can be seen, and waits for whichever comes first: an order, room to write, bytes to
//! read, the deadline. Nothing it holds can grow: one read buffer, one output buffer of at most a batch
//! of messages.

use crate::{
    announcer::{Advertised, Desired, Observed, Order, Told},
    config::{BgpUpstream, PORT, Password},
    fsm::{self, Effect, Event, Fsm},
    route::{Attributes, Routes},
    socket::{self, Target},
    value::Community,
};
use std::{
    future::{Future, pending},
    hash::{BuildHasher, Hasher, RandomState},
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{oneshot, watch},
    time::timeout,
};

/// How long the last bytes of a connection may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// What is said to the neighbour's operator at a clean stop (RFC 9003 section 2).
const GOOD_BYE: &str = "nigh is stopping";

type Connecting = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// One session and what it runs on.
pub(crate) struct Session {
    name: String,
    target: Target,
    attributes: Attributes,
    fsm: Fsm,
    connecting: Option<Connecting>,
    stream: Option<TcpStream>,
    /// What is being written, and how much of it has been.
    out: Vec<u8>,
    sent: usize,
}

/// What moved on a connection.
enum Moved {
    Written(usize),
    Read(usize),
}

impl Session {
    pub(crate) fn new(config: &BgpUpstream, password: Option<Password>) -> Self {
        let mut attributes = Attributes {
            prepend: config.prepend,
            med: config.med,
            communities: config.communities.clone(),
            large_communities: config.large_communities.clone(),
        };
        attributes.communities.sort_unstable();
        attributes.communities.dedup();
        attributes.large_communities.sort_unstable();
        attributes.large_communities.dedup();
        let fsm = fsm::Config {
            local_as: config.local_as,
            peer_as: config.peer_as,
            router_id: config.router_id,
            next_hop4: config.next_hop4,
            next_hop6: config.next_hop6,
            hold_time: u16::try_from(config.hold_time.as_secs()).unwrap_or(u16::MAX),
        };
        Self {
            name: config.name.clone(),
            target: Target {
                peer: SocketAddr::new(config.peer, PORT),
                local: config.local_address,
                password,
                ttl_security: config.ttl_security,
            },
            attributes,
            fsm: Fsm::new(fsm, RandomState::new().build_hasher().finish()),
            connecting: None,
            stream: None,
            out: Vec::new(),
            sent: 0,
        }
    }

    /// Runs until `stop` is sent or dropped.
    pub(crate) async fn run(
        mut self,
        mut orders: watch::Receiver<Order>,
        publish: watch::Sender<Observed>,
        mut stop: oneshot::Receiver<()>,
    ) {
        let mut buffer = vec![0; 16 * 1024];
        self.want(&orders.borrow_and_update());
        self.fsm.handle(Event::Start, now());
        loop {
            self.act().await;
            self.show(&orders.borrow(), &publish);
            let event: Result<Moved, String> = tokio::select! {
                biased;
                _ = &mut stop => break,
                Ok(()) = orders.changed() => {
                    self.want(&orders.borrow_and_update());
                    continue;
                }
                result = opened(&mut self.connecting) => {
                    self.opened(result);
                    continue;
                }
                moved = transfer(self.stream.as_mut(), &self.out[self.sent..], &mut buffer) => {
                    moved.map_err(|error| format!("the connection broke: {error}"))
                }
                () = until(self.fsm.deadline()) => {
                    self.fsm.handle(Event::Tick, now());
                    continue;
                }
            };
            match event {
                Ok(Moved::Written(count)) => {
                    self.sent += count;
                    if self.sent == self.out.len() {
                        self.out.clear();
                        self.sent = 0;
                        self.fsm.handle(Event::Written, now());
                    }
                }
                Ok(Moved::Read(0)) => {
                    self.fsm.handle(Event::Closed("the neighbour closed the connection"), now());
                }
                Ok(Moved::Read(count)) => self.fsm.handle(Event::Received(&buffer[..count]), now()),
                Err(why) => self.fsm.handle(Event::Closed(&why), now()),
            }
        }
        self.fsm.handle(Event::Stop(GOOD_BYE), now());
        self.act().await;
        self.show(&orders.borrow(), &publish);
    }

    /// Puts an order into routes.
    fn want(&mut self, order: &Order) {
        let attributes = match order.desired {
            Desired::Withdrawn => None,
            Desired::Announced { graceful_shutdown: false } => Some(self.attributes.clone()),
            Desired::Announced { graceful_shutdown: true } => {
                Some(self.attributes.clone().with(Community::GRACEFUL_SHUTDOWN))
            }
        };
        let routes: Routes = match attributes.map(Arc::new) {
            Some(attributes) => {
                order.prefixes.iter().map(|prefix| (*prefix, Arc::clone(&attributes))).collect()
            }
            None => Routes::new(),
        };
        self.fsm.want(routes);
    }

    /// Does what the machine wants done, and takes what it has to send.
    async fn act(&mut self) {
        while let Some(effect) = self.fsm.effect() {
            match effect {
                Effect::Connect => {
                    self.connecting = Some(Box::pin(socket::connect(self.target.clone())));
                }
                Effect::Close(last_words) => {
                    self.connecting = None;
                    let mut rest = self.out.split_off(self.sent);
                    self.out.clear();
                    self.sent = 0;
                    if let Some(stream) = self.stream.take()
                        && !last_words.is_empty()
                    {
                        rest.extend(last_words);
                        // The neighbour may have stopped reading.
                        let _ = timeout(FAREWELL, farewell(stream, &rest)).await;
                    }
                }
            }
        }
        if self.stream.is_some() && self.out.is_empty() {
            self.fsm.transmit(now(), &mut self.out);
        }
    }

    fn opened(&mut self, result: io::Result<TcpStream>) {
        self.connecting = None;
        let opened = result.and_then(|stream| Ok((stream.local_addr()?.ip(), stream)));
        match opened {
            Ok((local, stream)) => {
                self.stream = Some(stream);
                self.fsm.handle(Event::Connected(local), now());
            }
            Err(error) => self.fsm.handle(Event::Refused(&error.to_string()), now()),
        }
    }

    /// Publishes what can be seen, and logs a change of state.
    fn show(&self, order: &Order, publish: &watch::Sender<Observed>) {
        let told: Vec<Told> = self
            .fsm
            .told()
            .iter()
            .filter_map(|(prefix, told)| {
                let graceful_shutdown =
                    told.attributes.communities.contains(&Community::GRACEFUL_SHUTDOWN);
                Some(Told { prefix: *prefix, graceful_shutdown, at: told.written? })
            })
            .collect();
        let mut seen = Observed {
            state: self.fsm.state(),
            advertised: Observed::summary(&told, &order.prefixes),
            told,
            written: self.fsm.updated(),
            problem: self.fsm.problem(),
            counters: self.fsm.counters(),
        };
        publish.send_if_modified(|shown| {
            // A withdrawal that is on its way has not been told yet.
            let on_its_way = !self.out.is_empty() && self.stream.is_some();
            if on_its_way && seen.advertised == Advertised::Nothing {
                seen.advertised = shown.advertised;
                seen.told.clone_from(&shown.told);
            }
            if seen.state != shown.state {
                let (from, to) = (shown.state, seen.state);
                let problem = seen.problem.as_deref().unwrap_or("");
                tracing::info!(upstream = %self.name, %from, %to, problem, "session");
            }
            let changed = *shown != seen;
            *shown = seen;
            changed
        });
    }
}

/// The clock.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Waits for the connection that is being opened, for ever if there is none.
async fn opened(connecting: &mut Option<Connecting>) -> io::Result<TcpStream> {
    match connecting {
        Some(connecting) => connecting.await,
        None => pending().await,
    }
}

/// Waits until a time, for ever if there is none.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => pending().await,
    }
}

/// Reads, or writes if there is something to write, whichever can be done first.
async fn transfer(
    stream: Option<&mut TcpStream>,
    out: &[u8],
    buffer: &mut [u8],
) -> io::Result<Moved> {
    let Some(stream) = stream else { return pending().await };
    let (mut reader, mut writer) = stream.split();
    tokio::select! {
        written = writer.write(out), if !out.is_empty() => written.map(Moved::Written),
        read = reader.read(buffer) => read.map(Moved::Read),
    }
}

/// Writes the last bytes and reads until the neighbour closes too: closing with bytes unread resets the
/// connection, and the neighbour would lose what was just written.
async fn farewell(mut stream: TcpStream, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.shutdown().await?;
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
