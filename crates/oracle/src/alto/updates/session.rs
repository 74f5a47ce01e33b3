//! One update stream: which substreams it has, where each stands, and what is to be sent next (RFC 8895
//! sections 5.3, 6.7 and 7.6). It sends nothing itself.

use super::{
    follow::Followed,
    params::{Add, Params},
    sse::Event,
};
use crate::alto::error::Problem;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    mem,
    sync::Arc,
};

/// Media type of control events (section 5.3).
pub const CONTROL: &str = "application/alto-updatestreamcontrol+json";

/// How much one stream may ask for (section 10.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Substreams at once.
    pub active: usize,
    /// Substreams over the stream's life.
    pub ever: usize,
}

/// Why a stream does not take a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The request is wrong.
    Problem(Problem),
    /// A limit would be exceeded; a sentence names it.
    TooMany(&'static str),
    /// The stream has ended.
    Over,
}

#[derive(Debug)]
struct Substream {
    followed: Arc<Followed>,
    incremental: bool,
    /// The version that the client has once everything sent has arrived.
    at: Option<u64>,
}

/// The state of one stream.
#[derive(Debug)]
pub struct Session {
    active: BTreeMap<String, Substream>,
    /// All names of substreams ever used: none may be used again.
    used: HashSet<String>,
    most: Most,
    /// Control events that have not been sent.
    waiting: Vec<Event>,
    over: bool,
}

impl Session {
    /// A stream whose first event carries the address of its control (section 6.7.1).
    ///
    /// # Errors
    ///
    /// More substreams than it may have.
    pub fn open(
        control: &str,
        adds: Vec<(Add, Arc<Followed>)>,
        most: Most,
    ) -> Result<Session, Refused> {
        let mut session = Session {
            active: BTreeMap::new(),
            used: HashSet::new(),
            most,
            waiting: vec![event(&json!({ "control-uri": control }))],
            over: false,
        };
        session.room(adds.len())?;
        session.add(adds);
        Ok(session)
    }

    /// Whether a control request may be carried out, as far as it can be decided before its resources are asked
    /// (section 7.6).
    ///
    /// # Errors
    ///
    /// The request is wrong or too much, or the stream has ended.
    pub fn check(&self, params: &Params) -> Result<(), Refused> {
        if self.over {
            return Err(Refused::Over);
        }
        let wrong = |field: &str, names: Vec<&String>| {
            // The value is a list, and a value must be a string (RFC 7285 section 8.5.2): its JSON text.
            Err(Refused::Problem(Problem::invalid_value(field, &json!(names))))
        };
        let names = params.add.iter().map(|add| &add.substream);
        let again: Vec<_> = names.filter(|name| self.used.contains(*name)).collect();
        if !again.is_empty() {
            return wrong("add", again);
        }
        if let Some(remove) = &params.remove {
            let unknown: Vec<_> = remove.iter().filter(|name| !self.used.contains(*name)).collect();
            if !unknown.is_empty() || (remove.is_empty() && !params.add.is_empty()) {
                return wrong("remove", unknown);
            }
        }
        self.room(params.add.len())
    }

    /// Carries a control request out: first what it adds, then what it removes (section 7.6).
    ///
    /// # Errors
    ///
    /// As [`Session::check`]; then nothing has changed.
    pub fn control(
        &mut self,
        params: &Params,
        adds: Vec<(Add, Arc<Followed>)>,
    ) -> Result<(), Refused> {
        self.check(params)?;
        if !adds.is_empty() {
            let started: Vec<_> = adds.iter().map(|(add, _)| add.substream.as_str()).collect();
            self.waiting.push(event(&json!({ "started": started })));
            self.add(adds);
        }
        match &params.remove {
            None => {}
            Some(names) if names.is_empty() => {
                let all = self.active.keys().cloned().collect();
                self.stop(all, "as the client asked");
            }
            Some(names) => {
                let mut stopped: Vec<_> =
                    names.iter().filter(|name| self.active.contains_key(*name)).cloned().collect();
                stopped.sort_unstable();
                stopped.dedup();
                self.stop(stopped, "as the client asked");
            }
        }
        Ok(())
    }

    /// Ends the stream from the server's side.
    pub fn end(&mut self, description: &str) {
        let all = self.active.keys().cloned().collect();
        self.stop(all, description);
        self.over = true;
    }

    /// Whether nothing more comes once the events of now are sent.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// How many substreams there are.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// What is to be sent now: control events, then the updates, those of a resource before those of the ones that
    /// depend on it (section 6.7.1).
    pub fn events(&mut self) -> Vec<Event> {
        let (updates, failed) = self.updates();
        for (name, why) in failed {
            self.stop(vec![name], &why);
        }
        let mut events = mem::take(&mut self.waiting);
        events.extend(updates);
        events
    }

    /// The updates, and the substreams that have none any more with the reason.
    fn updates(&mut self) -> (Vec<Event>, Vec<(String, String)>) {
        let mut order: Vec<_> = self.active.iter_mut().collect();
        order.sort_by_key(|(_, substream)| substream.followed.rank());
        // Dependents are read first: the graphs change in the other order, so whatever happens in between, no
        // version is read whose dependencies are not.
        let (mut updates, mut failed) = (Vec::new(), Vec::new());
        for (name, substream) in order.into_iter().rev() {
            match substream.update(name) {
                Ok(events) => updates.push(events),
                Err(why) => failed.push((name.clone(), why)),
            }
        }
        (updates.into_iter().rev().flatten().collect(), failed)
    }

    fn room(&self, more: usize) -> Result<(), Refused> {
        if self.active.len() + more > self.most.active {
            return Err(Refused::TooMany("a stream may not have so many substreams at once"));
        }
        if self.used.len() + more > self.most.ever {
            return Err(Refused::TooMany("the stream has had too many substreams; open a new one"));
        }
        Ok(())
    }

    fn add(&mut self, adds: Vec<(Add, Arc<Followed>)>) {
        for (add, followed) in adds {
            self.used.insert(add.substream.clone());
            let at = current(&followed, &add);
            let substream = Substream { followed, incremental: add.incremental, at };
            self.active.insert(add.substream, substream);
        }
    }

    /// Ends substreams, and with the last one the stream.
    fn stop(&mut self, names: Vec<String>, description: &str) {
        for name in &names {
            self.active.remove(name);
        }
        if !names.is_empty() {
            let control = json!({ "stopped": names, "description": description });
            self.waiting.push(event(&control));
        }
        self.over |= self.active.is_empty();
    }
}

/// The version in the client's request, if that is the current one: it need not be sent again (section 6.5).
/// Only a resource without input has such a tag.
fn current(followed: &Followed, add: &Add) -> Option<u64> {
    let tag = add.tag.as_deref().filter(|_| followed.question().input.is_none())?;
    let graph = followed.graph();
    let graph = graph.as_ref().ok()?;
    (graph.latest_tag() == Some(tag)).then(|| graph.end())
}

impl Substream {
    /// What brings the client to the last version: the changes, if it takes them and they are shorter than the whole.
    fn update(&mut self, name: &str) -> Result<Vec<Event>, String> {
        let graph = self.followed.graph();
        let graph = graph.as_ref().map_err(Clone::clone)?;
        let end = graph.end();
        if self.at == Some(end) {
            return Ok(Vec::new());
        }
        let changes = self.at.filter(|_| self.incremental).and_then(|at| graph.changes_since(at));
        let items = changes.unwrap_or_else(|| vec![graph.latest()]);
        self.at = Some(end);
        let event = |item: super::graph::Item| Event {
            name: format!("{},{name}", item.media_type),
            data: item.text,
        };
        Ok(items.into_iter().map(event).collect())
    }
}

fn event(control: &Value) -> Event {
    Event { name: CONTROL.to_owned(), data: control.to_string().into() }
}
