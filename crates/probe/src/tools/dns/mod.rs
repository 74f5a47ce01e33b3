//! How long a name server takes to answer: over UDP, and over TCP when the answer does not fit.
//!
//! An answer must come from the server that was asked, bear the question's identifier and repeat it;
//! what does not is counted and waited past.

pub mod message;

use super::context::{Context, Forbidden, Refusal};
use crate::record::Dns;
use config::Problem;
use domain::base::iana::Rtype;
use message::{Name, NameError, Question, Reply, UDP_BYTES};
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
};

/// Port of name servers.
pub const PORT: u16 = 53;
/// Longest wait for an answer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Most times that a question is sent over UDP.
const MOST_ATTEMPTS: u8 = 10;

/// A question to a name server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The name that is asked for.
    pub name: Name,
    /// Type of record: A, AAAA, NS, MX, ..., or its number.
    #[serde(default = "address")]
    pub kind: u16,
    /// Ask over TCP only.
    #[serde(default)]
    pub tcp: bool,
    /// An answer that takes longer does not come.
    #[serde(default = "two_seconds", with = "humantime_serde")]
    pub wait: Duration,
    /// How often the question is sent over UDP when no answer comes.
    #[serde(default = "once")]
    pub attempts: u8,
}

fn address() -> u16 {
    1
}

fn two_seconds() -> Duration {
    Duration::from_secs(2)
}

fn once() -> u8 {
    1
}

impl Settings {
    /// Asks for an address of this name.
    pub fn new(name: Name) -> Self {
        Self { name, kind: address(), tcp: false, wait: two_seconds(), attempts: once() }
    }

    /// What is wrong with the values.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.wait.is_zero() || self.wait > LONGEST_WAIT {
            wrong("wait", format!("must be more than 0 and at most {LONGEST_WAIT:?}"));
        }
        if self.attempts == 0 || self.attempts > MOST_ATTEMPTS {
            wrong("attempts", format!("must be 1 to {MOST_ATTEMPTS}"));
        }
        problems
    }

    /// How long it takes at most.
    pub fn longest(&self) -> Duration {
        // UDP, then TCP.
        self.wait * (u32::from(self.attempts) + 1)
    }
}

/// Reads a type of record.
///
/// # Errors
/// When it is no name of a type (IANA's registry of DNS RR TYPEs) and no number.
pub fn kind(text: &str) -> Result<u16, String> {
    let known = Rtype::from_mnemonic(text.as_bytes()).map(Rtype::to_int);
    known.or_else(|| text.parse().ok()).ok_or_else(|| {
        format!(
            "`{text}` is not a type of record: give its number or its name, such as A, AAAA or MX"
        )
    })
}

/// Whom to ask, and what: `example.org@192.0.2.53`, with a port where it is not 53.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name that is asked for.
    pub name: Name,
    /// The name server.
    pub server: SocketAddr,
}

/// A text names no server and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The server.
    #[error(
        "no name server: give NAME@ADDRESS or NAME@ADDRESS:PORT, with [] around an IPv6 address"
    )]
    Server,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (name, server) = text.split_once('@').ok_or(TargetError::Server)?;
        let address = || server.trim_matches(['[', ']']).parse::<IpAddr>();
        let server = server
            .parse()
            .or_else(|_| address().map(|address| SocketAddr::new(address, PORT)))
            .map_err(|_| TargetError::Server)?;
        Ok(Self { name: name.parse()?, server })
    }
}

/// No answer came.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value is out of its limits.
    #[error("{0}")]
    Settings(Problem),
    /// The address did not agree.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The server cannot be asked.
    #[error("asking the name server {server}: {source}")]
    Socket {
        /// The server.
        server: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// Nothing came that answers the question.
    #[error(
        "the name server {server} does not answer within {wait:?}; {refused} messages were no answers to \
         the question"
    )]
    Silent {
        /// The server.
        server: SocketAddr,
        /// How long was waited.
        wait: Duration,
        /// What came and was refused.
        refused: u64,
    },
}

/// Asks, and takes the time from the question that was answered to its answer; when that was cut, the
/// time until the whole answer came over TCP.
///
/// # Errors
/// When no answer comes; one that says that there is an error is an answer.
pub async fn run(server: SocketAddr, settings: &Settings, context: &Context) -> Result<Dns, Error> {
    if let Some(problem) = settings.problems().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    context.check(server.ip())?;
    let mut refused = 0;
    let failed = |source| Error::Socket { server, source };
    for _ in 0..settings.attempts {
        let question =
            Question { id: rand::random(), name: settings.name.clone(), kind: settings.kind };
        let begin = Instant::now();
        if settings.tcp {
            let whole = over_tcp(server, &question, settings.wait).await.map_err(failed)?;
            return answered(whole, begin, server, settings, context);
        }
        let asked = over_udp(server, &question, settings.wait, &mut refused).await;
        let reply = match asked {
            Ok(reply) => reply,
            Err(source) => {
                context.counters.refuse_many(Refusal::Dns, std::mem::take(&mut refused));
                return Err(failed(source));
            }
        };
        match reply {
            Some(reply) if reply.truncated => {
                context.counters.refuse_many(Refusal::Dns, refused);
                let whole = over_tcp(server, &question, settings.wait).await.map_err(failed)?;
                return answered(whole, begin, server, settings, context);
            }
            Some(reply) => {
                context.counters.refuse_many(Refusal::Dns, refused);
                return Ok(figures(reply, begin));
            }
            None => {}
        }
    }
    context.counters.refuse_many(Refusal::Dns, refused);
    Err(Error::Silent { server, wait: settings.wait, refused })
}

fn figures(reply: Reply, begin: Instant) -> Dns {
    let took_ns = begin.elapsed().as_nanos() as u64;
    Dns { code: message::code(reply.code), answers: reply.answers, took_ns }
}

/// What came over TCP: the answer, something else, or nothing in time.
fn answered(
    whole: Option<Option<Reply>>,
    begin: Instant,
    server: SocketAddr,
    settings: &Settings,
    context: &Context,
) -> Result<Dns, Error> {
    let silent = |refused| Error::Silent { server, wait: settings.wait, refused };
    match whole {
        Some(Some(reply)) => Ok(figures(reply, begin)),
        Some(None) => {
            context.counters.refuse(Refusal::Dns);
            Err(silent(1))
        }
        None => Err(silent(0)),
    }
}

/// Asks once; `None` when no answer comes in time.
async fn over_udp(
    server: SocketAddr,
    question: &Question,
    wait: Duration,
    refused: &mut u64,
) -> io::Result<Option<Reply>> {
    let own: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((own, 0)).await?;
    socket.connect(server).await?;
    socket.send(&question.message()).await?;
    let mut buffer = [0; UDP_BYTES as usize];
    let listen = async {
        loop {
            let length = socket.recv(&mut buffer).await?;
            match question.reply(buffer.get(..length).unwrap_or_default()) {
                Ok(reply) => return Ok(reply),
                Err(_) => *refused += 1,
            }
        }
    };
    tokio::time::timeout(wait, listen).await.ok().transpose()
}

/// Asks once (RFC 7766); the outer `None` when no answer comes in time, the inner one when it is none to
/// the question.
async fn over_tcp(
    server: SocketAddr,
    question: &Question,
    wait: Duration,
) -> io::Result<Option<Option<Reply>>> {
    let ask = async {
        let mut stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let message = question.message();
        let mut bytes = (message.len() as u16).to_be_bytes().to_vec();
        bytes.extend_from_slice(&message);
        stream.write_all(&bytes).await?;
        let length = stream.read_u16().await?;
        let mut bytes = vec![0; length.into()];
        stream.read_exact(&mut bytes).await?;
        Ok(question.reply(&bytes).ok())
    };
    tokio::time::timeout(wait, ask).await.ok().transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_name_a_server() {
        let of = |text: &str| text.parse::<Target>().map(|target| target.server.to_string());
        assert_eq!(of("example.org@192.0.2.53"), Ok("192.0.2.53:53".to_owned()));
        assert_eq!(of("example.org@192.0.2.53:5353"), Ok("192.0.2.53:5353".to_owned()));
        assert_eq!(of("example.org@2001:db8::53"), Ok("[2001:db8::53]:53".to_owned()));
        assert_eq!(of("example.org@[2001:db8::53]:5"), Ok("[2001:db8::53]:5".to_owned()));
        assert_eq!(of("example.org"), Err(TargetError::Server));
        assert_eq!(of("example.org@ns1"), Err(TargetError::Server));
        assert_eq!(of("a..b@192.0.2.53"), Err(TargetError::Name(NameError)));
    }

    #[test]
    fn types_have_names_and_numbers() {
        assert_eq!((kind("aaaa"), kind("257")), (Ok(28), Ok(257)));
        assert!(kind("65536").is_err() && kind("ADDRESS").is_err());
    }
}
