//! What a server answers: bytes in, bytes out, no clock and no network.
//!
//! What only the server can decide is checked after everything that the datagram itself shows, in
//! this order: a tag where there is no key (not supported), the tag (not authenticated), the source
//! (refused), whether there is a ranking (busy), the metric (not supported).

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use ipnet::IpNet;

use super::{
    DEFAULT_TTL, MAX_METRICS, MAX_MIXED_REPLY,
    auth::Key,
    header::{Header, Rcode},
    message::{Request, RequestError, begin_reply, push_mixed, push_one_list},
    tlv::{Kind, push_runs},
};
use crate::{candidate::Candidate, rank::Ranker, tables::Tables};

/// What the operator chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a client may use a ranking, in seconds.
    pub ttl: u16,
    /// Clients that may rank from another source without a tag.
    pub sources: Vec<IpNet>,
    /// The key that is shared with clients.
    pub authentication: Option<Authentication>,
}

/// Authentication of type 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// The shared key.
    pub key: Key,
    /// Whether requests without a tag are refused.
    pub required: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { ttl: DEFAULT_TTL, sources: Vec::new(), authentication: None }
    }
}

/// The outcome of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is answered, with this code.
    Reply(Rcode),
    /// It is not answered.
    Drop(Reason),
}

/// Why a datagram is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It is shorter than a header.
    Short,
    /// It is a reply.
    Reply,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Short, Self::Reply];

    /// The name, as counters write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Reply => "reply",
        }
    }
}

/// Answers requests; each thread has its own, with memory that is used again and again.
#[derive(Debug)]
pub struct Server {
    settings: Arc<Settings>,
    ranker: Ranker,
    candidates: Vec<Candidate>,
    order: Vec<u16>,
}

impl Server {
    /// A server with these settings.
    pub fn new(settings: Arc<Settings>) -> Self {
        let (candidates, order) = (Vec::new(), Vec::new());
        Self { settings, ranker: Ranker::default(), candidates, order }
    }

    /// Other settings from the next request on.
    pub fn set_settings(&mut self, settings: &Arc<Settings>) {
        if !Arc::ptr_eq(&self.settings, settings) {
            self.settings = Arc::clone(settings);
        }
    }

    /// Answers one datagram. The reply replaces what is in the buffer; where nothing is to be sent,
    /// that is empty.
    pub fn answer(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        tables: Option<&Tables>,
        reply: &mut Vec<u8>,
    ) -> Outcome {
        reply.clear();
        let (identification, rcode) = match Request::parse(datagram) {
            Ok(request) => match self.admit(datagram, &request, from.ip(), tables) {
                Ok(tables) => {
                    // Nobody who sends under another's address gets that one more than was sent.
                    let longest = if request.has_tag() { MAX_MIXED_REPLY } else { datagram.len() };
                    return self.rank(&request, from.ip(), tables, longest, reply);
                }
                Err(rcode) => (request.header.identification, rcode),
            },
            Err(RequestError::Short(_)) => return Outcome::Drop(Reason::Short),
            Err(RequestError::Reply) => return Outcome::Drop(Reason::Reply),
            Err(RequestError::Fault { identification, fault }) => (identification, fault.rcode),
        };
        let servcode = tables.map_or(0, available);
        reply.extend_from_slice(&Header::reply(identification, rcode, servcode).emit());
        Outcome::Reply(rcode)
    }

    /// Whether a request that is well formed is answered, and from what.
    fn admit<'t>(
        &self,
        datagram: &[u8],
        request: &Request<'_>,
        from: IpAddr,
        tables: Option<&'t Tables>,
    ) -> Result<&'t Tables, Rcode> {
        match &self.settings.authentication {
            None if request.has_tag() => return Err(Rcode::NOT_SUPPORTED),
            Some(with) if request.has_tag() && !with.key.verifies(datagram) => {
                return Err(Rcode::NOT_AUTHENTICATED);
            }
            Some(with) if with.required && !request.has_tag() => {
                return Err(Rcode::NOT_AUTHENTICATED);
            }
            _ => (),
        }
        let has_source = request.source4.is_some() || request.source6.is_some();
        if has_source && !request.has_tag() {
            let from = from.to_canonical();
            if !self.settings.sources.iter().any(|net| net.contains(&from)) {
                return Err(Rcode::REFUSED);
            }
        }
        let tables = tables.ok_or(Rcode::BUSY)?;
        if request.metric() >= tables.policy.metrics.len() {
            return Err(Rcode::NOT_SUPPORTED);
        }
        Ok(tables)
    }

    fn rank(
        &mut self,
        request: &Request<'_>,
        from: IpAddr,
        tables: &Tables,
        longest: usize,
        reply: &mut Vec<u8>,
    ) -> Outcome {
        let source = match (request.source4, request.source6) {
            (None, None) => tables.source(from.to_canonical()),
            (source4, source6) => tables.source_of_prefixes(source4, source6),
        };
        let metric = request.metric();
        begin_reply(reply, &request.header, available(tables), self.settings.ttl);
        let only = request.lists.only();
        let mut rcode = Rcode::NO_ERROR;
        if only == Some(Kind::V4) {
            let at = push_one_list(reply, Kind::V4, &request.lists);
            let (addresses, _) = reply.get_mut(at..).unwrap_or_default().as_chunks_mut::<4>();
            self.ranker.rank4(tables, metric, source, addresses);
        } else {
            self.candidates.clear();
            self.candidates.extend(request.lists.candidates());
            self.ranker.rank(tables, metric, source, &self.candidates, &mut self.order);
            let best_first =
                self.order.iter().filter_map(|&index| self.candidates.get(usize::from(index)));
            if only.is_some() {
                push_runs(reply, best_first, usize::MAX);
            } else {
                rcode = push_mixed(reply, self.candidates.len(), best_first, longest);
            }
        }
        if let Some(with) = self.settings.authentication.as_ref().filter(|_| request.has_tag()) {
            with.key.sign(reply);
        }
        Outcome::Reply(rcode)
    }
}

/// The bits of the metrics that can be asked for.
pub fn available(tables: &Tables) -> u16 {
    let count = tables.policy.metrics.len().min(MAX_METRICS);
    (1 << count) - 1
}
