//! The questions that clients follow: each is asked once for each new state of the network, however many streams
//! and views read its graph.
//!
//! Asking and comparing can take a second for a large map, so it is done on a thread for blocking work, one
//! question after the other and what others depend on first. Readers are notified when all are done.

use super::graph::{Bounds, Encoding, Graph};
use crate::alto::{
    limits::share,
    media,
    resource::{Asker, Method, Request, Resource, Response},
};
use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant, SystemTime},
};
use tokio::sync::watch;

/// Deepest chain of dependencies between resources that is followed.
const DEPTH: usize = 8;

/// Something that answers requests for resources: the maps at one moment.
pub trait Answers: Send + Sync + 'static {
    /// All resources that there are.
    fn resources(&self) -> &[Resource];

    /// The resource of this identity.
    fn resource(&self, id: &str) -> Option<&Resource> {
        self.resources().iter().find(|resource| resource.id == id)
    }

    /// The resource with this path.
    fn resource_at(&self, path: &str) -> Option<&Resource> {
        self.resources().iter().find(|resource| resource.path == path)
    }

    /// The first resource of this media type.
    fn resource_of(&self, media_type: &str) -> Option<&Resource> {
        self.resources().iter().find(|resource| resource.media_type == media_type)
    }

    /// The answer to a request.
    fn respond(&self, request: &Request<'_>) -> Response;
}

/// The maps of the moment; none before the first ones are there.
pub type Current = watch::Receiver<Option<Arc<dyn Answers>>>;

/// A resource with its input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// Identity of the resource.
    pub resource: String,
    /// Its input, for a resource that is asked with POST.
    pub input: Option<String>,
    /// Whoever asks, if the answer depends on it.
    pub client: Option<IpAddr>,
}

impl Question {
    /// What `client` asks of a resource. Input for a resource that takes none is ignored. The client is part of
    /// the question only where a list of endpoints is missing or empty and so stands for it (RFC 7285 section
    /// 11.5.1.3): all other questions are shared.
    pub fn new(resource: &Resource, input: Option<String>, client: IpAddr) -> Question {
        let input = resource.accepts.map(|_| input.unwrap_or_default());
        let own = resource.media_type == media::ENDPOINT_COST
            && input.as_deref().is_some_and(|input| !names_both_sides(input));
        Question { resource: resource.id.clone(), input, client: own.then_some(client) }
    }

    fn ask(&self, answers: &dyn Answers) -> Option<Response> {
        let resource = answers.resource(&self.resource)?;
        Some(answers.respond(&Request {
            method: if resource.accepts.is_some() { Method::Post } else { Method::Get },
            path: &resource.path,
            accept: None,
            content_type: resource.accepts,
            body: self.input.as_deref().unwrap_or_default().as_bytes(),
            asker: Asker {
                client: self.client.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                now: SystemTime::now(),
            },
        }))
    }
}

/// Whether an endpoint cost request names its sources and its destinations.
fn names_both_sides(input: &str) -> bool {
    let value: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
    let named = |side: &str| {
        let list = value.pointer(side).and_then(serde_json::Value::as_array);
        list.is_some_and(|list| !list.is_empty())
    };
    named("/endpoints/srcs") && named("/endpoints/dsts")
}

/// A question that is followed, and its answer.
pub struct Followed {
    question: Question,
    rank: usize,
    /// Who has asked it first; none if it has no input, so that there are only few such questions.
    source: Option<IpAddr>,
    graph: Mutex<Result<Graph, String>>,
}

impl Followed {
    /// What is followed.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// How far down the resource is in the order of dependencies: what it uses has lower ranks.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Its updates graph, or a sentence why it is not followed any longer.
    pub fn graph(&self) -> MutexGuard<'_, Result<Graph, String>> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks again; a resource that is gone, or does not answer as it did, ends the graph. Readers of
    /// the graph do not wait.
    /// The graph may keep `bytes` from now on.
    fn refresh(&self, answers: &dyn Answers, bytes: usize) {
        let Ok(base) = self.graph().as_ref().map(Graph::base) else { return };
        let next = match self.question.ask(answers) {
            Some(response) if response.status == 200 => {
                base.next(response.into_bytes()).map_err(|error| error.to_string())
            }
            Some(response) => {
                Err(format!("the resource now answers with status {}", response.status))
            }
            None => Err("the resource is no longer there".to_owned()),
        };
        let mut graph = self.graph();
        match (next, graph.as_mut()) {
            (Ok(Some(next)), Ok(graph)) => {
                graph.set_bytes(bytes);
                graph.take(next);
            }
            (Err(sentence), _) => *graph = Err(sentence),
            _ => {}
        }
    }
}

impl fmt::Debug for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").field("question", &self.question).finish_non_exhaustive()
    }
}

/// Why a question cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There are no maps yet.
    NotReady,
    /// There is no such resource.
    Unknown,
    /// As many are followed as may be, in all or for this source.
    Full,
    /// The resource answers like this: its input is missing or wrong.
    Answer(Response),
}

/// All questions that are followed.
pub struct Follower {
    current: Current,
    bounds: Bounds,
    most: usize,
    followed: Mutex<HashMap<Question, Weak<Followed>>>,
    /// Held while questions are asked, so that a new one is not left behind a state that the others have.
    turn: Arc<tokio::sync::Mutex<()>>,
    generation: watch::Sender<u64>,
}

impl Follower {
    /// Follows nothing yet; at most `most` questions with input, each with the versions and all with the bytes
    /// in `bounds`.
    pub fn new(current: Current, bounds: Bounds, most: usize) -> Follower {
        let (generation, _) = watch::channel(0);
        Follower {
            current,
            bounds,
            most,
            followed: Mutex::default(),
            turn: Arc::default(),
            generation,
        }
    }

    /// Changes whenever the graphs have; the number means nothing.
    pub fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The maps of the moment.
    pub fn answers(&self) -> Option<Arc<dyn Answers>> {
        self.current.borrow().clone()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Question, Weak<Followed>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many questions are followed.
    pub fn len(&self) -> usize {
        self.known().values().filter(|followed| followed.strong_count() > 0).count()
    }

    /// Whether nothing is followed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Follows a question of `client` from now on, together with who follows it already.
    ///
    /// # Errors
    ///
    /// It cannot be answered, or too many are followed.
    pub async fn follow(
        &self,
        question: Question,
        client: IpAddr,
    ) -> Result<Arc<Followed>, Refused> {
        let source = permits::source(client);
        let turn = self.turn.clone().lock_owned().await;
        let answers = self.answers().ok_or(Refused::NotReady)?;
        if let Some(followed) = self.find(&question, source)? {
            return Ok(followed);
        }
        let bounds = self.bounds;
        // The turn goes along: a client that gives up meanwhile does not end the asking.
        let asked =
            tokio::task::spawn_blocking(move || (begin(question, source, &*answers, bounds), turn));
        // A panic in there is a fault of the server; the client gets status 503.
        let (begun, turn) = asked.await.map_err(|_| Refused::NotReady)?;
        let followed = Arc::new(begun?);
        self.known().insert(followed.question.clone(), Arc::downgrade(&followed));
        // Not before: the next round must find the question.
        drop(turn);
        Ok(followed)
    }

    /// The question if it is followed already and still answered; refuses one that is too many.
    fn find(&self, question: &Question, source: IpAddr) -> Result<Option<Arc<Followed>>, Refused> {
        let mut known = self.known();
        known.retain(|_, followed| followed.strong_count() > 0);
        let found = known.get(question).and_then(Weak::upgrade);
        if let Some(found) = found.filter(|found| found.graph().is_ok()) {
            return Ok(Some(found));
        }
        known.remove(question);
        if question.input.is_some() && !self.has_room(&known, source) {
            return Err(Refused::Full);
        }
        Ok(None)
    }

    /// Whether one more question with input may be followed: by number and by bytes, in all and for its source.
    fn has_room(&self, known: &HashMap<Question, Weak<Followed>>, source: IpAddr) -> bool {
        let (mut all, mut own) = ((0, 0), (0, 0));
        for followed in known.values().filter_map(Weak::upgrade) {
            let Some(first) = followed.source else { continue };
            let bytes = followed.graph().as_ref().map_or(0, Graph::bytes);
            all = (all.0 + 1, all.1 + bytes);
            if first == source {
                own = (own.0 + 1, own.1 + bytes);
            }
        }
        let (most, bytes) = (self.most, self.bounds.bytes);
        all.0 < most && all.1 < bytes && own.0 < share(most) && own.1 < share(bytes)
    }

    /// Keeps the graphs up to date until there are no more maps to come. After each round it rests as long as the
    /// round took, so that comparing uses at most half of a core however fast the network changes.
    pub async fn run(self: Arc<Self>) {
        let mut current = self.current.clone();
        while current.changed().await.is_ok() {
            let begin = Instant::now();
            self.round(&mut current).await;
            tokio::time::sleep(begin.elapsed().max(Duration::from_millis(20))).await;
        }
    }

    /// Asks all questions again, of the maps of the moment, and notifies the readers.
    pub async fn round(&self, current: &mut Current) {
        let turn = self.turn.clone().lock_owned().await;
        let Some(answers) = current.borrow_and_update().clone() else { return };
        let mut all: Vec<_> = self.known().values().filter_map(Weak::upgrade).collect();
        all.sort_by_key(|followed| followed.rank);
        let each = self.bounds.bytes / all.len().max(1);
        let round = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            for followed in all {
                followed.refresh(&*answers, each);
            }
        });
        if round.await.is_err() {
            tracing::error!("following ALTO resources failed: a bug; streams may lack an update");
        }
        self.generation.send_modify(|generation| *generation += 1);
    }
}

/// Asks a question for the first time.
fn begin(
    question: Question,
    source: IpAddr,
    answers: &dyn Answers,
    bounds: Bounds,
) -> Result<Followed, Refused> {
    let resource = answers.resource(&question.resource).ok_or(Refused::Unknown)?;
    let response = question.ask(answers).ok_or(Refused::Unknown)?;
    if response.status != 200 {
        return Err(Refused::Answer(response));
    }
    let encoding = encoding(resource.media_type);
    let rank = rank(answers, &question.resource, DEPTH);
    let graph = Graph::new(resource.media_type, encoding, bounds, response.into_bytes())
        .map_err(|_| Refused::Unknown)?;
    let source = question.input.is_some().then_some(source);
    Ok(Followed { question, rank, source, graph: Mutex::new(Ok(graph)) })
}

/// The encoding of changes of a resource. Only network maps have long arrays (RFC 8895 section 9.1).
pub fn encoding(media_type: &str) -> Encoding {
    if media_type == media::NETWORK_MAP { Encoding::Shorter } else { Encoding::Merge }
}

/// Length of the longest chain of resources that this one depends on.
fn rank(answers: &dyn Answers, id: &str, depth: usize) -> usize {
    let Some(resource) = answers.resource(id).filter(|_| depth > 0) else { return 0 };
    resource.uses.iter().map(|used| 1 + rank(answers, used, depth - 1)).max().unwrap_or(0)
}
