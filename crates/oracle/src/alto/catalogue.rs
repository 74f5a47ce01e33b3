//! Everything that clients can ask for of one snapshot: the core's resources, the property maps, the update
//! stream and TIPS, and the directory that lists them all.

use super::{
    failure::Failure,
    maps::{DIRECTORY_PATH, Maps},
    media,
    properties::{self, PROPERTY_MAP},
    resource::{Method, Request, Resource, Response},
    tips,
    updates::{
        follow::{Answers, encoding},
        service,
    },
};
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

/// Identity of the update stream service.
const UPDATE_STREAM: &str = "update-stream";
/// Identity of the TIPS service.
const TIPS_VIEWS: &str = "tips-views";

/// The resources of one snapshot. Immutable; made with the maps and as cheap.
pub struct Catalogue {
    maps: Arc<Maps>,
    /// The core's resources, then those of this type.
    resources: Vec<Resource>,
    own: usize,
    by_path: HashMap<String, usize>,
    by_id: HashMap<String, usize>,
    /// Scheme and host in the directory, or nothing.
    base: String,
    properties: OnceLock<Result<Arc<[u8]>, Failure>>,
}

impl Catalogue {
    /// The catalogue of these maps. `base` goes before paths in the directory.
    pub fn new(maps: Arc<Maps>, base: String) -> Catalogue {
        let mut resources = maps.resources().to_vec();
        let own = resources.len();
        resources.extend(properties::resources(&maps));
        resources.extend(services(&resources));
        let indexes = |key: fn(&Resource) -> &String| {
            resources.iter().enumerate().map(|(index, it)| (key(it).clone(), index)).collect()
        };
        Catalogue {
            by_path: indexes(|resource| &resource.path),
            by_id: indexes(|resource| &resource.id),
            maps,
            resources,
            own,
            base,
            properties: OnceLock::new(),
        }
    }

    /// The maps that these are of.
    pub fn maps(&self) -> &Arc<Maps> {
        &self.maps
    }

    fn directory(&self, request: &Request<'_>) -> Result<Response, Failure> {
        if request.method != Method::Get {
            return Err(Failure::Method("GET"));
        }
        if !media::accepts(request.accept, media::DIRECTORY) {
            return Err(Failure::NotAcceptable(media::DIRECTORY));
        }
        let more = self.resources.get(self.own..).unwrap_or_default();
        Ok(Response::ok(media::DIRECTORY, self.maps.directory(&self.base, more)))
    }

    fn property_map(
        &self,
        resource: &Resource,
        request: &Request<'_>,
    ) -> Result<Response, Failure> {
        let asked = (resource.accepts.is_some(), request.method);
        if !matches!(asked, (false, Method::Get) | (true, Method::Post)) {
            return Err(Failure::Method(resource.allow()));
        }
        if !resource.acceptable(request.accept) {
            return Err(Failure::NotAcceptable(resource.media_type));
        }
        if let Some(accepts) = resource.accepts {
            if !media::is(request.content_type.unwrap_or_default(), accepts) {
                return Err(Failure::MediaType(accepts));
            }
            return Ok(Response::ok(PROPERTY_MAP, properties::filtered(&self.maps, request.body)?));
        }
        let full = self.properties.get_or_init(|| properties::full(&self.maps));
        Ok(Response::ok(PROPERTY_MAP, full.clone()?))
    }
}

impl Answers for Catalogue {
    fn resources(&self) -> &[Resource] {
        &self.resources
    }

    fn resource(&self, id: &str) -> Option<&Resource> {
        self.by_id.get(id).and_then(|index| self.resources.get(*index))
    }

    fn resource_at(&self, path: &str) -> Option<&Resource> {
        self.by_path.get(path).and_then(|index| self.resources.get(*index))
    }

    fn respond(&self, request: &Request<'_>) -> Response {
        let answered = if [DIRECTORY_PATH, "/"].contains(&request.path) {
            self.directory(request)
        } else {
            match self.resource_at(request.path) {
                Some(resource) if resource.media_type == PROPERTY_MAP => {
                    self.property_map(resource, request)
                }
                _ => return self.maps.respond(request),
            }
        };
        answered.unwrap_or_else(|failure| failure.response())
    }
}

/// The services that follow all these resources, a set closed under dependency (RFC 8895 section 6.4, RFC 9569
/// section 5.3).
fn services(followed: &[Resource]) -> [Resource; 2] {
    let types: Map<String, Value> = followed
        .iter()
        .map(|resource| (resource.id.clone(), encoding(resource.media_type).media_types().into()))
        .collect();
    let resource = |id: &str, path: &str, media_type, accepts, capabilities| {
        let uses = followed.iter().map(|resource| resource.id.clone()).collect();
        Resource::other(id.into(), path.into(), media_type, Some(accepts), capabilities, uses)
    };
    let stream = json!({ "incremental-change-media-types": types, "support-stream-control": true });
    let pull = json!({ "incremental-change-media-types": types });
    [
        resource(UPDATE_STREAM, "/updates", service::EVENT_STREAM, service::PARAMS, stream),
        resource(TIPS_VIEWS, "/tips", tips::TIPS, tips::PARAMS, pull),
    ]
}
