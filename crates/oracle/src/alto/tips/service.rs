//! Views: opening them, reading their edges, and asking which edge is next (RFC 9569 sections 6 and 7).

use super::params::{self, TipsRequest};
use crate::alto::{
    counters::{Counters, Refusal},
    error::Problem,
    limits::{Limits, share},
    media, reply,
    resource::Resource,
    updates::{
        follow::{Followed, Follower, Question, Refused},
        graph::{Graph, Item, MERGE_PATCH, Missing},
        service::{not_ready, token, unfollowed},
    },
};
use axum::{
    body::Body,
    http::{HeaderValue, Response, header},
};
use permits::{Holding, Permit, Permits, gives_way};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::watch;

/// Media type of the service (section 5.1).
pub const TIPS: &str = "application/alto-tips+json";
/// Media type of its input (section 6.1).
pub const PARAMS: &str = "application/alto-tipsparams+json";
/// Seconds after which a client that was refused may come again.
const RETRY_SECONDS: u64 = 30;

/// The views of one server.
pub struct Tips {
    follower: Arc<Follower>,
    limits: Limits,
    counters: Arc<Counters>,
    views: Mutex<HashMap<String, Arc<View>>>,
    polls: Arc<Permits>,
    /// True once the server stops.
    stopping: watch::Sender<bool>,
}

/// One question and who reads its graph.
struct View {
    /// The last part of its address; never used again.
    token: String,
    followed: Arc<Followed>,
    /// Who has opened it first; none if its question has no input, so that there are only few such views.
    source: Option<IpAddr>,
    reading: Mutex<Reading>,
}

struct Reading {
    last: Instant,
    waiting: usize,
}

impl View {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        self.reading().last = Instant::now();
    }
}

/// Counts a request that waits, as long as it does.
struct Waiting<'a> {
    view: Arc<View>,
    counters: &'a Counters,
    _permit: Permit,
}

impl<'a> Waiting<'a> {
    fn new(view: Arc<View>, counters: &'a Counters, permit: Permit) -> Waiting<'a> {
        view.reading().waiting += 1;
        counters.polls.up();
        Waiting { view, counters, _permit: permit }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut reading = self.view.reading();
        reading.waiting -= 1;
        reading.last = Instant::now();
        self.counters.polls.down();
    }
}

impl Tips {
    /// No views yet.
    pub fn new(follower: Arc<Follower>, limits: Limits, counters: Arc<Counters>) -> Tips {
        let (stopping, _) = watch::channel(false);
        let polls = Permits::new(limits.polls, share(limits.polls));
        Tips { follower, limits, counters, views: Mutex::default(), polls, stopping }
    }

    fn views(&self) -> MutexGuard<'_, HashMap<String, Arc<View>>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self, token: &str) -> Option<Arc<View>> {
        let view = self.views().get(token).cloned().filter(|view| view.followed.graph().is_ok())?;
        view.touch();
        Some(view)
    }

    /// How many views are open.
    pub fn len(&self) -> usize {
        self.views().len()
    }

    /// Whether no view is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Answers a request for a view (section 6.2). `service` is the resource that was asked, `base` the address
    /// before a view's own name.
    pub async fn open(
        &self,
        service: &Resource,
        base: &str,
        body: &[u8],
        source: IpAddr,
    ) -> Response<Body> {
        let request = match params::parse_open(body) {
            Ok(request) => request,
            Err(problem) => return reply::problem(400, &problem),
        };
        let followed = match self.follow(service, &request, source).await {
            Ok(followed) => followed,
            Err(refused) => {
                let field = "resource-id".to_owned();
                return unfollowed(refused, field, &request.resource, &self.counters);
            }
        };
        let Some(view) = self.share(&followed, permits::source(source)) else {
            self.counters.refuse(Refusal::Views);
            return reply::later(429, "The limit of views is reached.", RETRY_SECONDS);
        };
        let graph = followed.graph();
        let Ok(graph) = graph.as_ref() else { return not_ready() };
        // A tag is only valid for a resource without input (section 6.1).
        let tag = request.tag.as_deref().filter(|_| followed.question().input.is_none());
        let answer = json!({
            "tips-view-uri": format!("{base}{}", view.token),
            "tips-view-summary": summary(graph, graph.start_edge(tag)),
        });
        reply::json(200, TIPS, answer.to_string().into())
    }

    async fn follow(
        &self,
        service: &Resource,
        request: &TipsRequest,
        source: IpAddr,
    ) -> Result<Arc<Followed>, Refused> {
        if !service.uses.contains(&request.resource) {
            return Err(Refused::Unknown);
        }
        let answers = self.follower.answers().ok_or(Refused::NotReady)?;
        let resource = answers.resource(&request.resource).ok_or(Refused::Unknown)?;
        let question = Question::new(resource, request.input.clone(), source);
        self.follower.follow(question, source).await
    }

    /// The view of a followed question, a new one of `source` if there is none; none if there are too many.
    fn share(&self, followed: &Arc<Followed>, source: IpAddr) -> Option<Arc<View>> {
        let mut views = self.views();
        if let Some(view) = views.values().find(|view| Arc::ptr_eq(&view.followed, followed)) {
            view.touch();
            return Some(view.clone());
        }
        let own = views.values().filter(|view| view.source == Some(source)).count();
        if own >= share(self.limits.views) {
            return None;
        }
        if views.len() >= self.limits.views {
            let holdings = views.values().filter_map(|view| {
                let reading = view.reading();
                Some(Holding {
                    key: view.token.clone(),
                    source: view.source?,
                    idle: reading.waiting == 0,
                    last: reading.last,
                })
            });
            let victim = gives_way(holdings.collect(), source)?;
            self.counters.refuse(Refusal::Evicted);
            views.remove(&victim);
        }
        let reading = Mutex::new(Reading { last: Instant::now(), waiting: 0 });
        let source = followed.question().input.is_some().then_some(source);
        let view = Arc::new(View { token: token(), followed: followed.clone(), source, reading });
        views.insert(view.token.clone(), view.clone());
        Some(view)
    }

    /// Answers a request for an edge (section 7.2); waits if it is the next one. `path` is `<i>/<j>`.
    pub async fn edge(
        &self,
        token: &str,
        path: &str,
        accept: Option<&str>,
        source: IpAddr,
    ) -> Response<Body> {
        let Some(view) = self.view(token) else { return no_view() };
        let Some((from, to)) = edge(path) else { return no_edge(404, path) };
        // Before the graph is read, so that no change is missed.
        let mut generation = self.follower.generation();
        let mut stopping = self.stopping.subscribe();
        let mut waiting = None;
        loop {
            generation.borrow_and_update();
            let found = view.followed.graph().as_ref().map(|graph| graph.edge(from, to)).ok();
            match found {
                None => return no_view(),
                Some(Ok(item)) => return deliver(item, accept),
                Some(Err(Missing::Never)) => return no_edge(404, path),
                Some(Err(Missing::Gone)) => return no_edge(410, path),
                Some(Err(Missing::Later)) => return no_edge(425, path),
                Some(Err(Missing::Next)) => {}
            }
            if waiting.is_none() {
                let Ok(permit) = self.polls.take(source) else {
                    self.counters.refuse(Refusal::Polls);
                    return reply::later(
                        429,
                        "The limit of waiting requests is reached.",
                        RETRY_SECONDS,
                    );
                };
                waiting = Some(Waiting::new(view.clone(), &self.counters, permit));
            }
            let stopped = tokio::select! {
                changed = generation.changed() => changed.is_err(),
                stopped = stopping.wait_for(|stopping| *stopping) => {
                    drop(stopped);
                    true
                }
            };
            if stopped {
                return reply::later(503, "The server stops.", RETRY_SECONDS);
            }
        }
    }

    /// Answers which edge a client should take next (section 7.4).
    pub fn next(&self, token: &str, body: &[u8]) -> Response<Body> {
        let Some(view) = self.view(token) else { return no_view() };
        let question = view.followed.question();
        let request = match params::parse_next(body, &question.resource) {
            Ok(request) => request,
            Err(problem) => return reply::problem(400, &problem),
        };
        let graph = view.followed.graph();
        let Ok(graph) = graph.as_ref() else { return no_view() };
        let patch = json!({
            "tips-view-summary": summary(graph, graph.next_edge(request.tag.as_deref())),
        });
        reply::json(200, MERGE_PATCH, patch.to_string().into())
    }

    /// Closes views that have been idle too long, or whose resource is gone; called periodically.
    pub fn tidy(&self, now: Instant) {
        self.views().retain(|_, view| {
            let reading = view.reading();
            let idle = now.saturating_duration_since(reading.last);
            view.followed.graph().is_ok() && (reading.waiting > 0 || idle < self.limits.view_idle)
        });
    }

    /// Lets all that wait go.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }
}

/// The summary of a graph with an edge to begin with (section 6.2).
pub fn summary(graph: &Graph, (from, to): (u64, u64)) -> Value {
    json!({
        "updates-graph-summary": {
            "start-seq": graph.start(),
            "end-seq": graph.end(),
            "start-edge-rec": { "seq-i": from, "seq-j": to },
        }
    })
}

/// Takes `<i>/<j>` apart; numbers have one form only.
fn edge(path: &str) -> Option<(u64, u64)> {
    let number = |text: &str| {
        let number: u64 = text.parse().ok()?;
        (number.to_string() == text).then_some(number)
    };
    let (from, to) = path.split_once('/')?;
    Some((number(from)?, number(to)?))
}

/// What is on an edge never changes, so it may be kept.
fn deliver(item: Item, accept: Option<&str>) -> Response<Body> {
    if !media::accepts(accept, item.media_type) {
        let problem = Problem::invalid_value("Accept", &accept.unwrap_or_default().into());
        return reply::problem(415, &problem);
    }
    let mut response = reply::json(200, item.media_type, item.text);
    let kept = HeaderValue::from_static("private, max-age=3600, immutable");
    response.headers_mut().insert(header::CACHE_CONTROL, kept);
    response
}

fn no_edge(status: u16, path: &str) -> Response<Body> {
    reply::problem(status, &Problem::invalid_value("ug", &path.into()))
}

fn no_view() -> Response<Body> {
    reply::problem(404, &Problem::invalid_value("tips-view-uri", &"closed or unknown".into()))
}
