//! How long a page takes over HTTP, step by step: name, TCP, TLS, first byte, whole page.
//!
//! One GET over HTTP/1.1 on a new connection; redirections are not followed, and nothing is kept. The
//! certificate must be good for the name, by the system's authorities or those that are given.

use super::context::{Context, Forbidden, Refusal};
use crate::record::Http;
use config::Problem;
use hyper::{
    Request, Uri,
    body::{Body, Incoming},
    client::conn::http1,
    header,
};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use serde::{Deserialize, Serialize};
use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::Pin,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
};
use tokio_rustls::TlsConnector;

/// Where Debian, and others, keep the authorities that the system trusts.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Longest wait for a whole page.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// Longest page that can be asked for, in bytes.
const MOST_BYTES: u64 = 1 << 40;

/// How a page is fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Time for the whole page.
    #[serde(with = "humantime_serde")]
    pub wait: Duration,
    /// Longest page, in bytes.
    pub most: u64,
    /// PEM file of the authorities that may vouch for servers, in place of the system's.
    pub authority: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { wait: Duration::from_secs(30), most: 64 << 20, authority: None }
    }
}

impl Settings {
    /// What is wrong with the values.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        if self.wait.is_zero() || self.wait > LONGEST_WAIT {
            wrong("wait", format!("must be more than 0 and at most {LONGEST_WAIT:?}"));
        }
        if self.most > MOST_BYTES {
            wrong("most", format!("must be at most {MOST_BYTES} bytes"));
        }
        problems
    }

    /// How long it takes at most.
    pub fn longest(&self) -> Duration {
        self.wait
    }
}

/// No page came.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value is out of its limits.
    #[error("{0}")]
    Settings(Problem),
    /// The page's address is none that can be fetched.
    #[error(
        "{uri}: give http://HOST/PATH or https://HOST/PATH, with a port where it is not 80 or 443"
    )]
    Target {
        /// The address.
        uri: Uri,
    },
    /// The server's address did not agree.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// The name has no address.
    #[error("resolving {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The server is not there.
    #[error("connecting to {to}: {source}")]
    Connect {
        /// Its address.
        to: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The authorities cannot be used.
    #[error(transparent)]
    Authority(#[from] tls::Error),
    /// The name cannot be in a certificate.
    #[error("{host} cannot be the name of a TLS server")]
    Name {
        /// The name.
        host: String,
        /// Why.
        source: InvalidDnsNameError,
    },
    /// No TLS with the server.
    #[error("TLS with {host}: {source}")]
    Tls {
        /// Its name.
        host: String,
        /// What went wrong.
        source: io::Error,
    },
    /// What the server says is not HTTP.
    #[error("the answer of {host}: {source}")]
    Answer {
        /// Its name.
        host: String,
        /// What is wrong.
        source: hyper::Error,
    },
    /// The page is too long.
    #[error("the page of {host} is longer than {most} bytes")]
    TooLong {
        /// The server's name.
        host: String,
        /// What is taken.
        most: u64,
    },
    /// It took too long.
    #[error("{host} did not send the whole page within {wait:?}")]
    Timeout {
        /// The server's name.
        host: String,
        /// How long was waited.
        wait: Duration,
    },
}

/// Where a page is.
struct Target {
    host: String,
    port: u16,
    tls: bool,
}

impl Target {
    fn new(uri: &Uri) -> Result<Self, Error> {
        let refused = || Error::Target { uri: uri.clone() };
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(refused()),
        };
        let authority = uri.authority().ok_or_else(refused)?;
        // A name and a password would be shown in logs and records.
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(refused());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self { host, port, tls })
    }
}

/// Fetches a page.
///
/// # Errors
/// When no whole page comes; a status of an error is an answer.
pub async fn run(to: &Uri, settings: &Settings, context: &Context) -> Result<Http, Error> {
    if let Some(problem) = settings.problems().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    let target = Target::new(to)?;
    let work = fetch(to, &target, settings, context);
    let done = tokio::time::timeout(settings.wait, work).await;
    let done =
        done.unwrap_or_else(|_| Err(Error::Timeout { host: target.host, wait: settings.wait }));
    if matches!(done, Err(Error::Answer { .. } | Error::TooLong { .. })) {
        context.counters.refuse(Refusal::Http);
    }
    done
}

async fn fetch(
    to: &Uri,
    target: &Target,
    settings: &Settings,
    context: &Context,
) -> Result<Http, Error> {
    let mut times = Http::default();
    // Before anything is sent: a file that is missing is no matter of the server.
    let tls = match target.tls {
        true => {
            let authority = settings.authority.as_deref().unwrap_or(Path::new(AUTHORITIES));
            Some(tls::client_config(tls::usable_roots(authority)?)?)
        }
        false => None,
    };
    let begin = Instant::now();
    let resolve = |source| Error::Resolve { host: target.host.clone(), source };
    let mut addresses = lookup_host((target.host.as_str(), target.port)).await.map_err(resolve)?;
    times.resolve_ns = nanoseconds(begin);
    let to_address =
        addresses.next().ok_or_else(|| resolve(io::ErrorKind::AddrNotAvailable.into()))?;
    // A name may lead to a station, which has agreed to another test.
    context.check_listed(to_address.ip())?;
    let begin = Instant::now();
    let failed = |source| Error::Connect { to: to_address, source };
    let stream = TcpStream::connect(to_address).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    times.connect_ns = nanoseconds(begin);
    let Some(config) = tls else { return exchange(stream, to, target, settings, times).await };
    let name = ServerName::try_from(target.host.clone())
        .map_err(|source| Error::Name { host: target.host.clone(), source })?;
    let begin = Instant::now();
    let stream = TlsConnector::from(config)
        .connect(name, stream)
        .await
        .map_err(|source| Error::Tls { host: target.host.clone(), source })?;
    times.tls_ns = Some(nanoseconds(begin));
    exchange(stream, to, target, settings, times).await
}

/// The request and its answer.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    to: &Uri,
    target: &Target,
    settings: &Settings,
    mut times: Http,
) -> Result<Http, Error> {
    let failed = |source| Error::Answer { host: target.host.clone(), source };
    let (mut sender, connection) =
        http1::handshake::<_, String>(TokioIo::new(stream)).await.map_err(failed)?;
    let path = to.path_and_query().map_or("/", |path| path.as_str());
    let host = to.authority().map_or("", |authority| authority.as_str());
    let request = Request::get(path)
        .header(header::HOST, host)
        .header(header::USER_AGENT, concat!("nigh-probe/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "*/*")
        .body(String::new())
        .map_err(|_| Error::Target { uri: to.clone() })?;
    let begin = Instant::now();
    let answer = async {
        let answer = sender.send_request(request).await.map_err(failed)?;
        times.first_byte_ns = nanoseconds(begin);
        times.status = answer.status().as_u16();
        let mut body = answer.into_body();
        while let Some(bytes) = next(&mut body).await.map_err(failed)? {
            times.bytes += bytes;
            if times.bytes > settings.most {
                let host = target.host.clone();
                return Err(Error::TooLong { host, most: settings.most });
            }
        }
        times.whole_ns = nanoseconds(begin);
        Ok(times)
    };
    tokio::pin!(answer, connection);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        ended = &mut connection => match ended {
            // The connection is done with; what it has read is the answer's.
            Ok(()) => answer.await,
            Err(source) => Err(failed(source)),
        },
    }
}

/// Bytes of the next piece of a page; `None` at its end.
async fn next(body: &mut Incoming) -> Result<Option<u64>, hyper::Error> {
    let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await.transpose()?;
    // Trailers have no bytes of the page.
    Ok(frame.map(|frame| frame.data_ref().map_or(0, |data| data.len() as u64)))
}

fn nanoseconds(begin: Instant) -> u64 {
    begin.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_http() {
        let of = |text: &str| {
            let target = Target::new(&text.parse().unwrap()).ok()?;
            Some((target.host, target.port, target.tls))
        };
        assert_eq!(of("http://example.org/a?b"), Some(("example.org".to_owned(), 80, false)));
        assert_eq!(of("https://[2001:db8::1]:8443"), Some(("2001:db8::1".to_owned(), 8443, true)));
        for text in
            ["ftp://example.org/", "/path", "example.org:80", "http://me:secret@example.org/"]
        {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
