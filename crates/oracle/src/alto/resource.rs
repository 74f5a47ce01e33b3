//! Requests, responses and the information resources that the directory lists (RFC 7285, 9.1).

use super::{cost_type::CostType, media};
use axum::body::Bytes;
use serde_json::{Map, Value};
use std::{net::IpAddr, sync::Arc, time::SystemTime};

/// The method of a request, as far as it matters here. `HEAD` is `Get` for the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A resource without input.
    Get,
    /// A resource with input in the body.
    Post,
    /// Any other.
    Other,
}

/// A request as the core sees it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// The path, from the first slash, without a query.
    pub path: &'a str,
    /// The header `Accept`.
    pub accept: Option<&'a str>,
    /// The header `Content-Type`.
    pub content_type: Option<&'a str>,
    /// The whole body.
    pub body: &'a [u8],
    /// The client that asks, and when.
    pub asker: Asker,
}

/// The client that asks, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// What an empty list of endpoints stands for (11.5.1.3).
    pub client: IpAddr,
    /// Which interval of a calendar is the current one (RFC 8896).
    pub now: SystemTime,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// For `Content-Type` (8.3.3: always given).
    pub media_type: &'static str,
    /// The body; the bytes of a large map are shared by all who ask for it.
    pub body: Arc<[u8]>,
    /// For the header `Allow`, with status 405.
    pub allow: Option<&'static str>,
}

impl Response {
    /// A response.
    pub fn new(status: u16, media_type: &'static str, body: impl Into<Arc<[u8]>>) -> Self {
        Self { status, media_type, body: body.into(), allow: None }
    }

    /// The body, shared and not copied.
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self.body)
    }

    /// A response with status 200.
    pub fn ok(media_type: &'static str, body: impl Into<Arc<[u8]>>) -> Self {
        Self::new(200, media_type, body)
    }
}

/// What a resource is, for the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A network map: which of the configured ones.
    NetworkMap(usize),
    /// The same, filtered.
    FilteredNetworkMap(usize),
    /// A full cost map of a network map.
    CostMap {
        /// Which network map.
        map: usize,
        /// The only cost type.
        kind: CostType,
    },
    /// A filtered cost map of a network map.
    FilteredCostMap(usize),
    /// Endpoint properties.
    EndpointProperty,
    /// Endpoint costs.
    EndpointCost,
    /// Something that the core only lists.
    Other {
        /// What it returns.
        media_type: &'static str,
        /// Its input.
        accepts: Option<&'static str>,
    },
}

impl Kind {
    /// What it returns, and its input if it has one.
    pub(super) fn media_types(&self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::NetworkMap(_) => (media::NETWORK_MAP, None),
            Self::FilteredNetworkMap(_) => (media::NETWORK_MAP, Some(media::NETWORK_MAP_FILTER)),
            Self::CostMap { .. } => (media::COST_MAP, None),
            Self::FilteredCostMap(_) => (media::COST_MAP, Some(media::COST_MAP_FILTER)),
            Self::EndpointProperty => {
                (media::ENDPOINT_PROPERTY, Some(media::ENDPOINT_PROPERTY_PARAMETERS))
            }
            Self::EndpointCost => (media::ENDPOINT_COST, Some(media::ENDPOINT_COST_PARAMETERS)),
            Self::Other { media_type, accepts } => (media_type, *accepts),
        }
    }
}

/// One entry of the directory (9.2.2).
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Unique in the directory, stable while the data changes (9.1.1).
    pub id: String,
    /// The path of its URI.
    pub path: String,
    /// What it returns.
    pub media_type: &'static str,
    /// The media type of its input; none: it is asked for with GET, else with POST.
    pub accepts: Option<&'static str>,
    /// Capabilities, an object; null is omitted.
    pub capabilities: Value,
    /// Identities of the resources that it directly depends on.
    pub uses: Vec<String>,
    pub(super) kind: Kind,
}

impl Resource {
    /// A resource that the core lists in the directory and another service answers.
    pub fn other(
        id: String,
        path: String,
        media_type: &'static str,
        accepts: Option<&'static str>,
        capabilities: Value,
        uses: Vec<String>,
    ) -> Self {
        let kind = Kind::Other { media_type, accepts };
        Self { id, path, media_type, accepts, capabilities, uses, kind }
    }

    /// The entry as it appears in the directory; `base` goes before the path in its URI.
    pub fn entry(&self, base: &str) -> Value {
        let mut entry = Map::new();
        entry.insert("uri".to_owned(), format!("{base}{}", self.path).into());
        entry.insert("media-type".to_owned(), self.media_type.into());
        if let Some(accepts) = self.accepts {
            entry.insert("accepts".to_owned(), accepts.into());
        }
        if !self.capabilities.is_null() {
            entry.insert("capabilities".to_owned(), self.capabilities.clone());
        }
        if !self.uses.is_empty() {
            entry.insert("uses".to_owned(), self.uses.clone().into());
        }
        Value::Object(entry)
    }

    /// The `Allow` header of this resource.
    pub fn allow(&self) -> &'static str {
        if self.accepts.is_some() { "POST" } else { "GET" }
    }

    /// Whether the client takes what this returns, an error (8.5) or a directory instead
    /// (8.3.4.2).
    pub fn acceptable(&self, accept: Option<&str>) -> bool {
        media::accepts(accept, self.media_type)
    }
}
