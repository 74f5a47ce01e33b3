//! The connection to one other station, of which this one asks something.
//!
//! It is made when it is wanted, kept alive by a hello now and then, and made again when it breaks, after
//! a pause that grows. Requests are answered one after the other.

use super::{
    message::{Answer, ClockReport, LINE_LIMIT, Reason, Request, VERSION, line},
    server::{Line, read_line},
    tls::Tls,
};
use rustls::pki_types::ServerName;
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncWriteExt, BufReader, ReadHalf, WriteHalf},
    net::{TcpSocket, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_rustls::client::TlsStream;
use tracing::{info, warn};

/// How long connecting, with its handshake, and an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Silence after which a hello keeps the connection alive.
const HELLO: Duration = Duration::from_secs(15);
/// The first and the longest pause before another connection.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// Characters of a sentence of another station that are shown.
const SENTENCE: usize = 300;
/// Requests that may wait.
const QUEUE: usize = 64;

/// A station was asked in vain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// There is no connection.
    #[error("station {name} is not reached: {why}")]
    Unreachable {
        /// Which station.
        name: String,
        /// What happened.
        why: String,
    },
    /// It refuses.
    #[error("station {name} refuses: {text}")]
    Refused {
        /// Which station.
        name: String,
        /// Why, for programs.
        reason: Reason,
        /// Why, a sentence.
        text: String,
        /// When it may agree.
        retry_ms: Option<u64>,
    },
    /// It answers something else than was asked.
    #[error("this version does not understand the answer of station {name}")]
    Answer {
        /// Which station.
        name: String,
    },
}

/// How it is with another station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerState {
    /// Whether there is a connection, else the error.
    pub reached: Result<(), String>,
    /// Since when that is so.
    pub since: Instant,
    /// What it reports of its clock, by its last welcome.
    pub clock: ClockReport,
}

impl PeerState {
    /// Of a station to which nothing was ever sent.
    pub fn unknown() -> Self {
        Self {
            reached: Err("not yet connected".to_owned()),
            since: Instant::now(),
            clock: ClockReport::default(),
        }
    }
}

/// Where a station is, and who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The station that asks: this one.
    pub own: String,
    /// The addresses of this station; the one of the right family is connected from.
    pub from: Vec<IpAddr>,
    /// The station that is asked.
    pub name: String,
    /// Where it takes connections.
    pub to: SocketAddr,
}

type Ask = (Request, oneshot::Sender<Result<Answer, PeerError>>);

/// The connection to another station; ends when dropped.
#[derive(Debug)]
pub struct Peer {
    route: Route,
    asks: mpsc::Sender<Ask>,
    state: Arc<Mutex<PeerState>>,
    tls: Arc<Mutex<Tls>>,
    task: JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Peer {
    /// Connects, and goes on doing so; `state` is what is known of the station so far.
    pub fn start(route: Route, tls: Tls, state: PeerState) -> Self {
        let (asks, asked) = mpsc::channel(QUEUE);
        let state = Arc::new(Mutex::new(state));
        let tls = Arc::new(Mutex::new(tls));
        let link = Link { route: route.clone(), tls: tls.clone(), state: state.clone(), asked };
        Self { route, asks, state, tls, task: tokio::spawn(link.run()) }
    }

    /// Connects with these keys from now on; a connection that is there stays.
    pub fn set_tls(&self, tls: Tls) {
        *self.tls.lock().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    /// Where the station is.
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// How it is.
    pub fn state(&self) -> PeerState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something that asks the station, also when this handle is not at hand.
    pub fn asker(&self) -> Asker {
        Asker { name: self.route.name.clone(), asks: self.asks.clone() }
    }
}

/// Asks one station.
#[derive(Clone, Debug)]
pub struct Asker {
    name: String,
    asks: mpsc::Sender<Ask>,
}

impl Asker {
    /// The station.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks, and waits for the answer. A station that is not connected is connected to first.
    ///
    /// # Errors
    /// When it is not reached or refuses.
    pub async fn ask(&self, request: Request) -> Result<Answer, PeerError> {
        let gone = || PeerError::Unreachable {
            name: self.name.clone(),
            why: "it has left the mesh".to_owned(),
        };
        let (answer, answered) = oneshot::channel();
        self.asks.send((request, answer)).await.map_err(|_| gone())?;
        match answered.await.map_err(|_| gone())?? {
            Answer::Refused { reason, text, retry_ms } => {
                Err(PeerError::Refused { name: self.name.clone(), reason, text, retry_ms })
            }
            answer => Ok(answer),
        }
    }
}

/// The task of a peer.
struct Link {
    route: Route,
    tls: Arc<Mutex<Tls>>,
    state: Arc<Mutex<PeerState>>,
    asked: mpsc::Receiver<Ask>,
}

/// A connection with its reader and writer.
struct Connection {
    input: BufReader<ReadHalf<TlsStream<TcpStream>>>,
    output: WriteHalf<TlsStream<TcpStream>>,
    bytes: Vec<u8>,
}

impl Link {
    async fn run(mut self) {
        let mut pause = PAUSE.0;
        // What was asked while there was no connection.
        let mut first: Option<Ask> = None;
        loop {
            match self.connect().await {
                Ok(connection) => {
                    pause = PAUSE.0;
                    info!(peer = self.route.name, to = %self.route.to, "connected");
                    let Some(why) = self.talk(connection, first.take()).await else { return };
                    warn!(peer = self.route.name, why, "the connection broke");
                    self.lost(why);
                }
                Err(why) => {
                    self.lost(why.clone());
                    let error = || PeerError::Unreachable {
                        name: self.route.name.clone(),
                        why: why.clone(),
                    };
                    if let Some((_, answer)) = first.take() {
                        let _ = answer.send(Err(error()));
                    }
                    while let Ok((_, answer)) = self.asked.try_recv() {
                        let _ = answer.send(Err(error()));
                    }
                }
            }
            tokio::select! {
                () = sleep(pause) => {}
                ask = self.asked.recv() => match ask {
                    // Whoever asks does not wait for the pause.
                    Some(ask) => first = Some(ask),
                    None => return,
                },
            }
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Says what is so from now on.
    fn lost(&self, why: String) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.reached.is_ok() {
            state.since = Instant::now();
        }
        state.reached = Err(why);
    }

    async fn connect(&self) -> Result<Connection, String> {
        let connect = async {
            let socket =
                if self.route.to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            let from = self.route.from.iter().find(|ip| ip.is_ipv4() == self.route.to.is_ipv4());
            if let Some(from) = from {
                socket.bind(SocketAddr::new(*from, 0))?;
            }
            let stream = socket.connect(self.route.to).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::try_from(self.route.name.clone()).map_err(io::Error::other)?;
            let tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner).clone();
            tls.connector.connect(name, stream).await
        };
        let connected = timeout(TIMEOUT, connect).await;
        let stream = match connected {
            Err(_) => return Err(format!("{} does not answer", self.route.to)),
            Ok(Err(error)) => return Err(format!("{}: {error}", self.route.to)),
            Ok(Ok(stream)) => stream,
        };
        let (input, output) = tokio::io::split(stream);
        let mut connection = Connection { input: BufReader::new(input), output, bytes: Vec::new() };
        self.hello(&mut connection).await?;
        Ok(connection)
    }

    async fn hello(&self, connection: &mut Connection) -> Result<(), String> {
        let Route { own, name, .. } = &self.route;
        let request = Request::Hello { version: VERSION, name: own.clone(), to: name.clone() };
        match connection.exchange(&request).await.map_err(|error| error.to_string())? {
            Answer::Welcome { version: VERSION, name: theirs, clock, .. } if theirs == *name => {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.reached.is_err() {
                    state.since = Instant::now();
                }
                (state.reached, state.clock) = (Ok(()), clock);
                Ok(())
            }
            Answer::Refused { text, .. } => Err(format!("it refuses: {text}")),
            _ => Err("this version does not understand its answer".to_owned()),
        }
    }

    /// Moves questions and answers until the connection breaks, then why; `None` when nobody can ask any
    /// more.
    async fn talk(&mut self, mut connection: Connection, first: Option<Ask>) -> Option<String> {
        let mut next = first;
        loop {
            let ask = match next.take() {
                Some(ask) => Some(ask),
                None => match timeout(HELLO, self.asked.recv()).await {
                    Ok(None) => return None,
                    Ok(ask) => ask,
                    Err(_) => None,
                },
            };
            let Some((request, answer)) = ask else {
                match self.hello(&mut connection).await {
                    Ok(()) => continue,
                    Err(why) => return Some(why),
                }
            };
            // Whoever has gone wants nothing any more.
            if answer.is_closed() {
                continue;
            }
            match connection.exchange(&request).await {
                Ok(received) => {
                    let ends = matches!(&received, Answer::Refused { reason, .. } if reason.ends());
                    if let Err(Ok(Answer::Accepted { lease, .. })) = answer.send(Ok(received))
                        && let Err(error) = connection.exchange(&Request::End { lease }).await
                    {
                        return Some(error.to_string());
                    }
                    if ends {
                        return Some("the station ended it".to_owned());
                    }
                }
                Err(error) => {
                    let why = error.to_string();
                    let name = self.route.name.clone();
                    let _ = answer.send(Err(PeerError::Unreachable { name, why: why.clone() }));
                    return Some(why);
                }
            }
        }
    }
}

impl Connection {
    async fn exchange(&mut self, request: &Request) -> io::Result<Answer> {
        let exchange = async {
            self.output.write_all(&line(request)).await?;
            self.output.flush().await?;
            match read_line(&mut self.input, &mut self.bytes).await? {
                Line::Whole => parse(&self.bytes),
                Line::End => Err(io::ErrorKind::UnexpectedEof.into()),
                Line::TooLong => {
                    Err(io::Error::other(format!("an answer of more than {LINE_LIMIT} bytes")))
                }
            }
        };
        timeout(TIMEOUT, exchange).await?
    }
}

/// What another station answers; also an error shows nothing of it that a terminal obeys.
fn parse(line: &[u8]) -> io::Result<Answer> {
    let error = |error: serde_json::Error| io::Error::other(shown(&error.to_string()));
    let mut answer = serde_json::from_slice(line).map_err(error)?;
    if let Answer::Refused { text, .. } = &mut answer {
        *text = shown(text);
    }
    Ok(answer)
}

/// A sentence of another station as it can be shown.
fn shown(text: &str) -> String {
    config::printable(text.chars().take(SENTENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_station_says_is_obeyed_by_no_terminal() {
        let text = "busy\u{1b}[2J\r\nok \u{9b}1m\u{202e}live \u{e9}";
        assert_eq!(shown(text), "busy\u{fffd}[2J  ok \u{fffd}1m\u{fffd}live \u{e9}");
        for line in [r#"{"is":"\u001b[2J"}"#, r#"{"\u001b[2J":{}}"#, r#""\u001b[2J""#] {
            let error = parse(line.as_bytes()).expect_err("no answer").to_string();
            assert!(!error.chars().any(char::is_control), "{error:?}");
        }
        assert_eq!(shown(&"\u{e9}".repeat(10_000)).chars().count(), SENTENCE);
    }
}
