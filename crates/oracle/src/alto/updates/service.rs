//! The update stream service and the stream control service (RFC 8895 sections 6 and 7).
//!
//! Each stream is one response whose body is pulled by the connection: what a client does not read is not made.
//! The address of a stream's control has 128 random bits and is never used again (section 7.1).

use super::{
    follow::{Followed, Follower, Question, Refused as Unfollowed},
    params::{self, Add, Params},
    session::{Most, Refused, Session},
    sse::{Event, KEEP_ALIVE, Pieces},
};
use crate::alto::{
    counters::{Counters, Refusal},
    error::Problem,
    limits::Limits,
    reply,
    resource::Resource,
};
use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, Response, header},
};
use futures_util::stream;
use permits::{Holding, gives_way};
use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::{Notify, watch};

/// Media type of a stream (section 6.1).
pub const EVENT_STREAM: &str = "text/event-stream";
/// Media type of a request to a stream or its control (section 6.5).
pub const PARAMS: &str = "application/alto-updatestreamparams+json";
/// Seconds after which a client that was refused may come again.
const RETRY_SECONDS: u64 = 30;

/// The streams of one server.
pub struct Streams {
    follower: Arc<Follower>,
    limits: Limits,
    counters: Arc<Counters>,
    open: Mutex<HashMap<String, Arc<Stream>>>,
}

struct Stream {
    begun: Instant,
    session: Mutex<Session>,
    /// Notified when a control request has changed the session.
    changed: Notify,
    source: IpAddr,
}

impl Stream {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, description: &str) {
        self.session().end(description);
        self.changed.notify_one();
    }
}

impl Streams {
    /// No streams yet.
    pub fn new(follower: Arc<Follower>, limits: Limits, counters: Arc<Counters>) -> Streams {
        Streams { follower, limits, counters, open: Mutex::default() }
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<String, Arc<Stream>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request for a new stream with the stream, or with what is wrong (section 6.6). `service` is the
    /// resource that was asked, `control` the address before a stream's own name.
    pub async fn open(
        self: &Arc<Self>,
        service: &Resource,
        control: &str,
        body: &[u8],
        source: IpAddr,
    ) -> Response<Body> {
        let params = match params::parse_open(body) {
            Ok(params) => params,
            Err(problem) => return reply::problem(400, &problem),
        };
        if self.room(source).is_none() {
            return self.full();
        }
        let adds = match self.follow(service, &params, source).await {
            Ok(adds) => adds,
            Err(response) => return *response,
        };
        let token = token();
        let most = Most { active: self.limits.substreams, ever: self.limits.substreams_ever };
        let session = match Session::open(&format!("{control}{token}"), adds, most) {
            Ok(session) => session,
            Err(refused) => return self.refuse(refused),
        };
        // Others may have come while the resources were asked.
        let Some(victim) = self.room(source) else { return self.full() };
        if let Some((token, stream)) = victim {
            self.counters.refuse(Refusal::Evicted);
            stream.end("it makes room for other clients");
            self.close(&token);
        }
        let stream = Arc::new(Stream {
            begun: Instant::now(),
            session: Mutex::new(session),
            changed: Notify::new(),
            source: permits::source(source),
        });
        self.streams().insert(token.clone(), stream.clone());
        self.counters.streams.up();
        self.body(token, stream)
    }

    fn body(self: &Arc<Self>, token: String, stream: Arc<Stream>) -> Response<Body> {
        let sender = Sender {
            generation: self.follower.generation(),
            streams: self.clone(),
            token,
            stream,
            queue: VecDeque::new(),
            pieces: None,
        };
        let pieces = stream::unfold(sender, |mut sender| async {
            let piece = sender.next().await?;
            Some((Ok::<_, Infallible>(piece), sender))
        });
        let mut response = Response::new(Body::from_stream(pieces));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Whether `client` may open a stream; if all are open, with that of another source that has to end for it.
    fn room(&self, client: IpAddr) -> Option<Option<(String, Arc<Stream>)>> {
        let source = permits::source(client);
        let streams = self.streams();
        let own = streams.values().filter(|stream| stream.source == source).count();
        if own >= self.limits.streams_per_source {
            return None;
        }
        if streams.len() < self.limits.streams {
            return Some(None);
        }
        let holdings = streams.iter().map(|(token, stream)| Holding {
            key: token.clone(),
            source: stream.source,
            idle: false,
            last: stream.begun,
        });
        let token = gives_way(holdings.collect(), source)?;
        let stream = streams.get(&token).cloned()?;
        Some(Some((token, stream)))
    }

    fn full(&self) -> Response<Body> {
        self.counters.refuse(Refusal::Streams);
        reply::later(503, "The limit of update streams is reached.", RETRY_SECONDS)
    }

    fn refuse(&self, refused: Refused) -> Response<Body> {
        match refused {
            Refused::Problem(problem) => reply::problem(400, &problem),
            Refused::TooMany(sentence) => {
                self.counters.refuse(Refusal::Streams);
                reply::sentence(503, sentence)
            }
            Refused::Over => self.no_stream(),
        }
    }

    fn no_stream(&self) -> Response<Body> {
        self.counters.refuse(Refusal::Control);
        reply::sentence(404, "There is no such update stream, or it has ended.")
    }

    /// Answers a control request (section 7.6): 204, as the stream has taken it over.
    pub async fn control(
        &self,
        service: &Resource,
        token: &str,
        body: &[u8],
        source: IpAddr,
    ) -> Response<Body> {
        let Some(stream) = self.streams().get(token).cloned() else { return self.no_stream() };
        let params = match params::parse_control(body) {
            Ok(params) => params,
            Err(problem) => return reply::problem(400, &problem),
        };
        let checked = stream.session().check(&params);
        if let Err(refused) = checked {
            return self.refuse(refused);
        }
        let adds = match self.follow(service, &params, source).await {
            Ok(adds) => adds,
            Err(response) => return *response,
        };
        let done = stream.session().control(&params, adds);
        match done {
            Ok(()) => {
                stream.changed.notify_one();
                let mut response = Response::new(Body::empty());
                *response.status_mut() = axum::http::StatusCode::NO_CONTENT;
                response
            }
            Err(refused) => self.refuse(refused),
        }
    }

    /// Begins to follow all resources that are to be added, or returns the error of the first one that fails.
    async fn follow(
        &self,
        service: &Resource,
        params: &Params,
        source: IpAddr,
    ) -> Result<Vec<(Add, Arc<Followed>)>, Box<Response<Body>>> {
        let mut adds = Vec::with_capacity(params.add.len().min(self.limits.substreams));
        if params.add.len() > self.limits.substreams {
            self.counters.refuse(Refusal::Streams);
            return Err(Box::new(reply::sentence(503, "The limit of substreams is exceeded.")));
        }
        for add in &params.add {
            let field = || format!("add/{}/resource-id", add.substream);
            let followed = self.follow_one(service, add, source).await;
            adds.push((
                add.clone(),
                followed.map_err(|why| {
                    Box::new(unfollowed(why, field(), &add.resource, &self.counters))
                })?,
            ));
        }
        Ok(adds)
    }

    async fn follow_one(
        &self,
        service: &Resource,
        add: &Add,
        source: IpAddr,
    ) -> Result<Arc<Followed>, Unfollowed> {
        if !service.uses.contains(&add.resource) {
            return Err(Unfollowed::Unknown);
        }
        let answers = self.follower.answers().ok_or(Unfollowed::NotReady)?;
        let resource = answers.resource(&add.resource).ok_or(Unfollowed::Unknown)?;
        self.follower.follow(Question::new(resource, add.input.clone(), source), source).await
    }

    /// Ends all streams, each with a closing event.
    pub fn stop(&self) {
        for stream in self.streams().values() {
            stream.end("the server stops");
        }
    }

    fn close(&self, token: &str) {
        if self.streams().remove(token).is_some() {
            self.counters.streams.down();
        }
    }
}

/// The response to a resource that cannot be followed. `field` is where the request names it.
pub(in crate::alto) fn unfollowed(
    why: Unfollowed,
    field: String,
    resource: &str,
    counters: &Counters,
) -> Response<Body> {
    match why {
        Unfollowed::Unknown => {
            reply::problem(400, &Problem::invalid_value(field, &resource.into()))
        }
        Unfollowed::Answer(answer) => reply::of(answer),
        Unfollowed::NotReady => not_ready(),
        Unfollowed::Full => {
            counters.refuse(Refusal::Followed);
            reply::later(503, "The limit of followed resources is reached.", RETRY_SECONDS)
        }
    }
}

/// There are no maps yet.
pub(in crate::alto) fn not_ready() -> Response<Body> {
    reply::later(503, "The network's topology is not loaded yet.", 1)
}

/// A name that cannot be guessed.
pub(in crate::alto) fn token() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// The sending end of one stream.
struct Sender {
    generation: watch::Receiver<u64>,
    streams: Arc<Streams>,
    token: String,
    stream: Arc<Stream>,
    queue: VecDeque<Event>,
    pieces: Option<Pieces>,
}

impl Sender {
    /// The next bytes, once there are any; none at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.pieces.as_mut().and_then(Iterator::next) {
                return Some(piece);
            }
            if let Some(event) = self.queue.pop_front() {
                self.streams.counters.event();
                self.pieces = Some(Pieces::new(event));
                continue;
            }
            self.generation.borrow_and_update();
            let (events, over) = {
                let mut session = self.stream.session();
                (session.events(), session.is_over())
            };
            if !events.is_empty() {
                self.queue.extend(events);
                continue;
            }
            if over {
                return None;
            }
            tokio::select! {
                changed = self.generation.changed() => {
                    // Nothing will change any more: the server is being taken down.
                    changed.ok()?;
                }
                () = self.stream.changed.notified() => {}
                () = tokio::time::sleep(self.streams.limits.keep_alive) => return Some(KEEP_ALIVE),
            }
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // A control request that is in flight must find that the stream has ended.
        self.stream.session().end("the connection is gone");
        self.streams.close(&self.token);
    }
}
