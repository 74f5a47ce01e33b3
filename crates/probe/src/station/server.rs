//! Takes connections of other stations and moves lines between them and admission control.

use super::{
    admission::{Action, Admission, Guest},
    message::{Answer, Grant, LINE_LIMIT, Reason, line},
    permission::{Bucket, MINUTE},
    permits::Permits,
    reservations::Lease,
    tls::Tls,
};
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::server::TlsStream;
use tracing::{debug, info};

/// How long a handshake may take, and an answer may wait to be read.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a station may be silent; it says hello more often than that.
pub const SILENCE: Duration = Duration::from_secs(60);
/// Lines that others cause in the log, a minute.
const LINES: u32 = 30;
/// The longest time between two looks at leases that have come to their end.
const LOOK: Duration = Duration::from_millis(500);

/// Does what was accepted.
pub trait Actions: Send + Sync + 'static {
    /// Reflects a session's packets, or is the other end of a test, until the lease ends or is ended.
    fn begin(&self, action: Action) -> impl Future<Output = Result<Option<Grant>, String>> + Send;
    /// Stops what was begun for these leases.
    fn end(&self, leases: &[Lease]);
}

/// A station as others meet it.
#[derive(Debug)]
pub struct Host<A> {
    admission: Mutex<Admission>,
    tls: RwLock<Option<Tls>>,
    actions: A,
    since: Instant,
    log: Mutex<Log>,
}

/// What the log has of others.
#[derive(Debug)]
struct Log {
    bucket: Bucket,
    /// Lines that were skipped since the last one.
    skipped: u64,
}

impl<A: Actions> Host<A> {
    /// A station that does what it agrees to by `actions`.
    pub fn new(admission: Admission, tls: Option<Tls>, actions: A) -> Self {
        let (admission, tls) = (Mutex::new(admission), RwLock::new(tls));
        let log = Mutex::new(Log { bucket: Bucket::new(LINES.into(), MINUTE, 0), skipped: 0 });
        Self { admission, tls, actions, since: Instant::now(), log }
    }

    /// Admission control; not to be held while something is waited for.
    pub fn admission(&self) -> MutexGuard<'_, Admission> {
        self.admission.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What does what was accepted.
    pub fn actions(&self) -> &A {
        &self.actions
    }

    /// Keys and certificates in force.
    pub fn tls(&self) -> Option<Tls> {
        self.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Other keys and certificates for connections from now on.
    pub fn set_tls(&self, tls: Option<Tls>) {
        *self.tls.write().unwrap_or_else(PoisonError::into_inner) = tls;
    }

    /// Admission control's clock, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Serves others until dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, connections: usize) {
        let permits = Permits::new(connections);
        loop {
            let Ok((stream, address)) = listener.accept().await else {
                // Out of file descriptors: what ends meanwhile makes room.
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            let from = address.ip().to_canonical();
            let expected = self.admission().expects(from);
            let Some(permit) = permits.take(from, expected) else {
                self.admission().refuse(Reason::Connections);
                continue;
            };
            let host = self.clone();
            tokio::spawn(async move {
                panics::point("probe-station");
                host.receive(stream, address).await;
                drop(permit);
            });
        }
    }

    /// Ends what has come to its end, until dropped.
    pub async fn watch(self: Arc<Self>) {
        loop {
            let (ended, next_ns) = {
                let now_ns = self.now_ns();
                let mut admission = self.admission();
                let ended = admission.expire(now_ns);
                (
                    ended,
                    admission.reservations().next_end_ns().map(|end| end.saturating_sub(now_ns)),
                )
            };
            if !ended.is_empty() {
                self.actions.end(&ended);
            }
            sleep(next_ns.map_or(LOOK, |ns| Duration::from_nanos(ns).min(LOOK))).await;
        }
    }

    async fn receive(&self, stream: TcpStream, address: SocketAddr) {
        let Some(tls) = self.tls() else { return };
        let stream = match timeout(TIMEOUT, tls.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            failed => {
                let why = failed.map_or("it takes too long".to_owned(), |failed| {
                    failed.err().map(|error| error.to_string()).unwrap_or_default()
                });
                if let Some(skipped) = self.may_log() {
                    info!(%address, why, skipped, "a connection was refused");
                }
                return self.admission().refuse(Reason::Handshake);
            }
        };
        let proof = tls.proof(stream.get_ref().1);
        let mut guest = self.admission().guest(address.ip(), proof);
        // A station that goes away is its own affair.
        let ended = self.converse(stream, &mut guest).await;
        debug!(%address, name = guest.name(), ?ended, "a connection has ended");
        let leases = self.admission().gone(&guest);
        if !leases.is_empty() {
            self.actions.end(&leases);
        }
    }

    async fn converse(&self, stream: TlsStream<TcpStream>, guest: &mut Guest) -> io::Result<()> {
        let (input, mut output) = tokio::io::split(stream);
        let mut input = BufReader::new(input);
        let mut bytes = Vec::new();
        loop {
            let silence = if guest.name().is_some() { SILENCE } else { TIMEOUT };
            let answer = match timeout(silence, read_line(&mut input, &mut bytes)).await {
                Err(_) => self.refused(Reason::Silent, "nothing was received for too long"),
                Ok(Ok(Line::Whole)) => self.answer(guest, &bytes).await,
                Ok(Ok(Line::End)) => return Ok(()),
                Ok(Ok(Line::TooLong)) => self.refused(Reason::TooLong, "the line is too long"),
                Ok(Err(error)) => return Err(error),
            };
            timeout(TIMEOUT, output.write_all(&line(&answer))).await??;
            timeout(TIMEOUT, output.flush()).await??;
            if let Answer::Refused { reason, text, .. } = &answer {
                if let Some(skipped) = self.may_log() {
                    let peer = guest.name();
                    info!(peer, reason = reason.word(), text, skipped, "refused");
                }
                if reason.ends() {
                    let _ = timeout(TIMEOUT, output.shutdown()).await;
                    return Ok(());
                }
            }
        }
    }

    /// Whether the log takes one more line about a peer, and how many were skipped before it.
    fn may_log(&self) -> Option<Option<u64>> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if !log.bucket.take(1.0, LINES.into(), self.now_ns()) {
            log.skipped += 1;
            return None;
        }
        Some(Some(std::mem::take(&mut log.skipped)).filter(|skipped| *skipped > 0))
    }

    fn refused(&self, reason: Reason, text: &str) -> Answer {
        self.admission().refuse(reason);
        Answer::Refused { reason, text: text.to_owned(), retry_ms: None }
    }

    async fn answer(&self, guest: &mut Guest, line: &[u8]) -> Answer {
        let now_ns = self.now_ns();
        let (answer, action) = self.admission().answer(guest, line, now_ns);
        let begun = match action {
            None => return answer,
            Some(Action::End(leases)) => {
                self.actions.end(&leases);
                return answer;
            }
            Some(action) => self.actions.begin(action).await,
        };
        let Answer::Accepted { lease, duration_ms, .. } = answer else { return answer };
        // Its end may have come meanwhile, before there was anything to end.
        let held = self.admission().holds(guest, Lease(lease));
        match begun {
            Ok(grant) if held => Answer::Accepted { lease, duration_ms, grant },
            Ok(_) => {
                self.actions.end(&[Lease(lease)]);
                let text = "its time was over before it began".to_owned();
                self.admission().impossible(guest, Lease(lease), text)
            }
            Err(text) => self.admission().impossible(guest, Lease(lease), text),
        }
    }
}

/// What was read.
pub(super) enum Line {
    /// A line, without its end.
    Whole,
    /// Nothing more comes.
    End,
    /// More bytes than a line has.
    TooLong,
}

/// Reads the next line in place of what `bytes` held.
pub(super) async fn read_line(
    input: &mut BufReader<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
) -> io::Result<Line> {
    bytes.clear();
    let mut limited = input.take(LINE_LIMIT as u64 + 1);
    limited.read_until(b'\n', bytes).await?;
    Ok(match bytes.pop() {
        Some(b'\n') => Line::Whole,
        Some(_) if bytes.len() >= LINE_LIMIT => Line::TooLong,
        // A line that was broken off is none.
        _ => Line::End,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::sync::OnceLock;

    /// Notes what is in progress; before it does, all leases end.
    #[derive(Default)]
    struct Slow {
        host: OnceLock<Arc<Host<Slow>>>,
        under_way: Mutex<Vec<Lease>>,
    }

    impl Actions for Slow {
        async fn begin(&self, action: Action) -> Result<Option<Grant>, String> {
            let Action::Serve { lease, .. } = action else { return Ok(None) };
            let ended = self.host.get().map(|host| host.admission().expire(u64::MAX));
            self.end(&ended.unwrap_or_default());
            self.under_way.lock().expect("no panic").push(lease);
            Ok(None)
        }

        fn end(&self, leases: &[Lease]) {
            self.under_way.lock().expect("no panic").retain(|lease| !leases.contains(lease));
        }
    }

    fn host<A: Actions>(actions: A) -> Arc<Host<A>> {
        let section = r#"
            station = [
                { name = "here", addresses = ["192.0.2.1"] },
                { name = "there", addresses = ["192.0.2.2"] },
            ]
        "#;
        let probe = toml::from_str(section).expect("it parses");
        let config = Config { node: "here".into(), state: "/s".into(), probe };
        Arc::new(Host::new(Admission::new(Arc::new(config)), None, actions))
    }

    #[tokio::test]
    async fn what_is_begun_after_its_lease_has_ended_is_ended() {
        let host = host(Slow::default());
        assert!(host.actions().host.set(host.clone()).is_ok());
        let mut guest = host.admission().guest([192, 0, 2, 2].into(), Box::new(|_| true));
        let hello = br#"{"do":"hello","version":1,"name":"there","to":"here"}"#;
        assert!(matches!(host.answer(&mut guest, hello).await, Answer::Welcome { .. }));
        let ask =
            br#"{"do":"throughput","test":{"transport":"tcp","duration_ms":1,"bandwidth":null,
            "ipv6":false},"slot":{"test":"b","class":"exclusive","uses":[]}}"#;
        let answer = host.answer(&mut guest, ask).await;
        assert!(matches!(answer, Answer::Refused { reason: Reason::Impossible, .. }), "{answer:?}");
        assert_eq!(*host.actions().under_way.lock().expect("no panic"), []);
    }

    #[test]
    fn the_log_takes_so_many_lines_and_says_how_many_it_skipped() {
        let host = host(Slow::default());
        let lines = (0..100).filter(|_| host.may_log().is_some()).count();
        assert_eq!(lines, LINES as usize);
        host.log.lock().expect("no panic").bucket = Bucket::new(1.0, MINUTE, 0);
        assert_eq!(host.may_log(), Some(Some(100 - u64::from(LINES))));
    }
}
