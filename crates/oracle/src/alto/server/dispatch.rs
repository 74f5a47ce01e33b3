//! From an HTTP request to who answers it.
//!
//! | path | who |
//! |---|---|
//! | `/updates/<stream>` | the control of an update stream (RFC 8895 section 7) |
//! | `/tips/<view>/ug`, `/tips/<view>/ug/<i>/<j>` | a view (RFC 9569 section 7) |
//! | that of a resource whose media type is a stream's or TIPS's | the service |
//! | any other | the core |

use super::{
    Access, Settings,
    memory::Memory,
    places::Places,
    turns::{Turn, Turns},
};
use crate::alto::{
    auth::Gate,
    counters::{Counters, Refusal},
    failure::Failure,
    limits::Limits,
    media, reply,
    resource::{Asker, Method, Request as Asked, Resource},
    tips::{self, Tips},
    tls::Identity,
    updates::{
        follow::{Answers, Follower},
        graph::MERGE_PATCH,
        service::{self, Streams, not_ready},
    },
};
use axum::{
    body::{Body, Bytes},
    http::{
        HeaderMap, HeaderValue, Method as HttpMethod, Request, Response, StatusCode, Uri, header,
        request::Parts, uri::Authority,
    },
};
use hyper::body::{Body as _, Incoming};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::{
    hash::Hasher,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Instant, SystemTime},
};

/// Path before the name of a stream's control.
pub(super) const CONTROL: &str = "/updates/";
/// Path before the name of a view.
pub(super) const VIEWS: &str = "/tips/";
/// Answers of the core that are calculated at once.
const ANSWERS: usize = 2;

/// All that answers requests.
pub(super) struct Site {
    streams: Arc<Streams>,
    tips: Arc<Tips>,
    follower: Arc<Follower>,
    settings: Settings,
    gate: Option<Gate>,
    identity: Arc<Identity>,
    counters: Arc<Counters>,
    places: Arc<Places>,
    memory: Arc<Memory>,
    /// For answers of the core.
    turns: Turns,
    /// For what is to be followed, which is asked one after the other.
    following: Turns,
}

/// Whose connection it is.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    /// From where.
    pub(super) address: IpAddr,
    /// What it is counted as.
    pub(super) source: IpAddr,
    /// The address that it reached.
    pub(super) local: SocketAddr,
    /// Whether it has shown a certificate of a configured authority.
    pub(super) certified: bool,
}

/// The parts of a request that matter.
struct Head {
    method: HttpMethod,
    path: String,
    accept: Option<String>,
    content_type: Option<String>,
    if_none_match: Option<String>,
    /// What goes before paths in addresses that are made for this client.
    base: String,
}

/// An answer: whose request it was, for counting, the response, and the turn in which it was made.
type Answered = (String, Response<Body>, Option<Turn>);

impl Site {
    pub(super) fn new(
        streams: Arc<Streams>,
        tips: Arc<Tips>,
        follower: Arc<Follower>,
        settings: Settings,
        gate: Option<Gate>,
        identity: Arc<Identity>,
        counters: Arc<Counters>,
    ) -> Site {
        let limits = &settings.limits;
        let places =
            Places::new(limits.connections, limits.connections_per_source, counters.clone());
        let memory = Memory::new(limits.memory.0 as usize);
        let (turns, following) = (Turns::new(ANSWERS), Turns::new(1));
        Site {
            streams,
            tips,
            follower,
            settings,
            gate,
            identity,
            counters,
            places,
            memory,
            turns,
            following,
        }
    }

    pub(super) fn places(&self) -> &Arc<Places> {
        &self.places
    }

    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(super) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Who lets users in, where there are users.
    pub(super) fn gate(&self) -> Option<&Gate> {
        self.gate.as_ref()
    }

    /// Who may ask.
    pub(super) fn access(&self) -> &Access {
        &self.settings.access
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    pub(super) fn tips(&self) -> &Tips {
        &self.tips
    }

    pub(super) fn follower(&self) -> &Arc<Follower> {
        &self.follower
    }

    /// Ends all streams and lets all waiting requests go.
    pub(super) fn stop(&self) {
        self.streams.stop();
        self.tips.stop();
    }

    /// Answers one request, and counts it.
    pub(super) async fn serve(&self, request: Request<Incoming>, peer: Peer) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let refused = self.refuse(&parts, peer);
        let head = Head {
            accept: joined(&parts.headers, header::ACCEPT),
            content_type: joined(&parts.headers, header::CONTENT_TYPE),
            if_none_match: joined(&parts.headers, header::IF_NONE_MATCH),
            base: self.base(&parts.uri, &parts.headers, peer),
            path: parts.uri.path().to_owned(),
            method: parts.method,
        };
        // The body of a client without credentials is not read, unless it is declared empty. Over HTTP/2 its end may then
        // still be on the path (curl, before it has a challenge), and an answer that overtakes it ends
        // with a reset (RFC 9113 section 8.1) that such a client takes for no answer.
        let read = match refused {
            Some(response) if is_empty(&parts.headers) => {
                self.read(&parts.headers, body, peer).await.and(Err(Box::new(response)))
            }
            Some(response) => Err(Box::new(response)),
            None => self.read(&parts.headers, body, peer).await,
        };
        // The turn ends when the answer is in the account of memory.
        let (name, response, _turn) = match read {
            Ok(body) => self.dispatch(&head, body, peer).await,
            Err(response) => ("none".to_owned(), *response, None),
        };
        let response = if head.method == HttpMethod::HEAD {
            without_body(response)
        } else {
            self.accounted(response, peer).await
        };
        self.counters.answered(&name, response.status().as_u16());
        response
    }

    /// The answer to who may not ask.
    fn refuse(&self, request: &Parts, peer: Peer) -> Option<Response<Body>> {
        let gate = self.gate.as_ref().filter(|_| !peer.certified)?;
        let now = Instant::now();
        let refusal = gate.check(&request.method, &request.uri, &request.headers, now).err()?;
        self.counters.refuse(refusal);
        let reason = refusal.name();
        tracing::debug!(peer = %peer.address, reason, "an ALTO request is refused");
        let (status, sentence) = match refusal {
            // RFC 7616 section 3.4.6.
            Refusal::Uri => (400, "The credentials are for another resource."),
            _ => (401, "Authenticate with HTTP Digest (RFC 7616)."),
        };
        let mut response = reply::sentence(status, sentence);
        if let Ok(challenge) = HeaderValue::from_str(&gate.challenge(refusal, now)) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        Some(response)
    }

    /// Scheme and host: as configured; else as the client wrote them, if the certificate is for that host; else the
    /// address that the client reached.
    fn base(&self, uri: &Uri, headers: &HeaderMap, peer: Peer) -> String {
        if !self.settings.base.is_empty() {
            return self.settings.base.clone();
        }
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = uri.authority().map(Authority::as_str).or(host).unwrap_or_default();
        match host.parse::<Authority>() {
            Ok(host) if !host.as_str().contains('@') && self.identity.is_for(host.host()) => {
                format!("https://{host}")
            }
            _ => format!("https://{}", peer.local),
        }
    }

    async fn dispatch(&self, head: &Head, body: Bytes, peer: Peer) -> Answered {
        let Some(answers) = self.follower.answers() else {
            return ("none".to_owned(), not_ready(), None);
        };
        if let Some(token) = head.path.strip_prefix(CONTROL) {
            let response = self.control(&*answers, head, token, &body, peer).await;
            return ("control".to_owned(), response, None);
        }
        if let Some(rest) = head.path.strip_prefix(VIEWS) {
            return ("view".to_owned(), self.view(head, rest, &body, peer).await, None);
        }
        let service = answers
            .resource_at(&head.path)
            .filter(|resource| [service::EVENT_STREAM, tips::TIPS].contains(&resource.media_type));
        match service {
            Some(service) => {
                (service.id.clone(), self.service(service, head, &body, peer).await, None)
            }
            None => self.core(answers, head, body, peer).await,
        }
    }

    async fn control(
        &self,
        answers: &dyn Answers,
        head: &Head,
        token: &str,
        body: &Bytes,
        peer: Peer,
    ) -> Response<Body> {
        if let Err(failure) = fits(head, HttpMethod::POST, Some(service::PARAMS), None) {
            return reply::of(failure.response());
        }
        match answers.resource_of(service::EVENT_STREAM) {
            Some(service) => {
                let _turn = self.following.take(peer.source).await;
                self.streams.control(service, token, body, peer.address).await
            }
            None => reply::of(Failure::NotFound.response()),
        }
    }

    async fn view(&self, head: &Head, rest: &str, body: &Bytes, peer: Peer) -> Response<Body> {
        let (fit, answer) = match rest.split_once('/') {
            Some((token, "ug")) => {
                let fit = fits(head, HttpMethod::POST, Some(tips::PARAMS), Some(MERGE_PATCH));
                (fit, Err(token))
            }
            Some((token, edge)) if edge.starts_with("ug/") => {
                (fits(head, HttpMethod::GET, None, None), Ok((token, edge)))
            }
            _ => return reply::of(Failure::NotFound.response()),
        };
        if let Err(failure) = fit {
            return reply::of(failure.response());
        }
        match answer {
            Ok((token, edge)) => {
                let edge = edge.strip_prefix("ug/").unwrap_or(edge);
                self.tips.edge(token, edge, head.accept.as_deref(), peer.source).await
            }
            Err(token) => self.tips.next(token, body),
        }
    }

    async fn service(
        &self,
        service: &Resource,
        head: &Head,
        body: &Bytes,
        peer: Peer,
    ) -> Response<Body> {
        if let Err(failure) =
            fits(head, HttpMethod::POST, service.accepts, Some(service.media_type))
        {
            return reply::of(failure.response());
        }
        let base = &head.base;
        let _turn = self.following.take(peer.source).await;
        if service.media_type == service::EVENT_STREAM {
            let control = format!("{base}{CONTROL}");
            self.streams.open(service, &control, body, peer.address).await
        } else {
            self.tips.open(service, &format!("{base}{VIEWS}"), body, peer.address).await
        }
    }

    /// Lets the core answer, on a thread for work, a few at once.
    async fn core(
        &self,
        answers: Arc<dyn Answers>,
        head: &Head,
        body: Bytes,
        peer: Peer,
    ) -> Answered {
        let name =
            answers.resource_at(&head.path).map_or("none", |resource| &resource.id).to_owned();
        let method = match head.method {
            HttpMethod::GET | HttpMethod::HEAD => Method::Get,
            HttpMethod::POST => Method::Post,
            _ => Method::Other,
        };
        let (path, accept, content_type) =
            (head.path.clone(), head.accept.clone(), head.content_type.clone());
        // No work for an answer that there is no room for.
        if !self.room(peer).await {
            return (name, full(), None);
        }
        let turn = self.turns.take(peer.source).await;
        let work = tokio::task::spawn_blocking(move || {
            panics::point("alto-work");
            let response = answers.respond(&Asked {
                method,
                path: &path,
                accept: accept.as_deref(),
                content_type: content_type.as_deref(),
                body: &body,
                asker: Asker { client: peer.address, now: SystemTime::now() },
            });
            let tag =
                (method == Method::Get && response.status == 200).then(|| tag(&response.body));
            // The turn goes along: the work goes on when the client has gone.
            (response, tag, turn)
        });
        let Ok((response, tag, turn)) = work.await else {
            let sentence = "The server failed to answer this request: a bug.";
            return (name, reply::sentence(500, sentence), None);
        };
        (name, with_tag(head, reply::of(response), tag), Some(turn))
    }
}

/// Whether a request declares an empty body.
fn is_empty(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_LENGTH).is_some_and(|length| length == "0")
}

/// All values of a header in one, as a list.
fn joined(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    let values: Vec<_> =
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Whether a request has the method, the type of input, and takes the type of answer.
fn fits(
    head: &Head,
    method: HttpMethod,
    input: Option<&'static str>,
    output: Option<&'static str>,
) -> Result<(), Failure> {
    let get = method == HttpMethod::GET;
    if head.method != method && !(get && head.method == HttpMethod::HEAD) {
        return Err(Failure::Method(if get { "GET" } else { "POST" }));
    }
    if let Some(input) = input
        && !media::is(head.content_type.as_deref().unwrap_or_default(), input)
    {
        return Err(Failure::MediaType(input));
    }
    match output {
        Some(output) if !media::accepts(head.accept.as_deref(), output) => {
            Err(Failure::NotAcceptable(output))
        }
        _ => Ok(()),
    }
}

/// An entity tag of an answer (RFC 9110 section 8.8.3).
fn tag(body: &[u8]) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(body);
    let hash = hasher.finish128();
    format!("\"{:016x}{:016x}\"", hash.h1, hash.h2)
}

/// Adds the tag, and omits the body if the client has it (RFC 9110 section 13.1.2).
fn with_tag(head: &Head, mut response: Response<Body>, tag: Option<String>) -> Response<Body> {
    let Some(tag) = tag else { return response };
    let known = head.if_none_match.as_deref().is_some_and(|list| {
        list.split(',')
            .map(str::trim)
            .any(|known| known == "*" || known.trim_start_matches("W/") == tag)
    });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_TYPE);
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The head of a response alone, with the length that its body would have.
fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Some(length) = response.body().size_hint().exact()
        && response.status() != StatusCode::NOT_MODIFIED
    {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
    response
}

/// There is no memory for a request or its answer.
pub(super) fn full() -> Response<Body> {
    reply::later(503, "The limit of memory for requests and answers is reached.", 1)
}
