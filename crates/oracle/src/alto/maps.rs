//! All resources of one snapshot, and the answers to requests for them.

use super::{
    address::{AddressType, format_address, is_address_type, parse_address, parse_endpoint},
    calendar::Calendar,
    classes::Classes,
    config::{AltoConfig, MapConfig},
    cost_reply::CostReply,
    cost_request::{CostRequest, Offer},
    cost_type::{CostType, cost_types},
    costs,
    error::Problem,
    failure::Failure,
    input::{self, Object},
    media, name,
    network_map::NetworkMap,
    resource::{Asker, Kind, Method, Request, Resource, Response},
};
use crate::tables::Tables;
use ipnet::IpNet;
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

/// The JSON of a resource, or why there is none.
type Answer = Result<Arc<[u8]>, Failure>;

/// The path of the root directory.
pub const DIRECTORY_PATH: &str = "/directory";

/// What stays the same from snapshot to snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct MapSettings {
    /// The section of the configuration.
    pub config: AltoConfig,
    /// Key of the names of PIDs: the configured one, or one made at random at the start.
    pub name_key: [u8; 16],
}

/// Everything that ALTO clients can ask for of one snapshot. Immutable and cheap to make: maps and
/// costs are calculated when they are first asked for, and what a change did not touch is shared with
/// the snapshot before.
#[derive(Debug)]
pub struct Maps {
    tables: Arc<Tables>,
    settings: Arc<MapSettings>,
    offer: Offer,
    map_configs: Vec<MapConfig>,
    resources: Vec<Resource>,
    by_path: HashMap<String, usize>,
    by_id: HashMap<String, usize>,
    network_maps: Vec<OnceLock<Arc<NetworkMap>>>,
    classes: Vec<OnceLock<Classes>>,
    /// Of each full cost map, by its index in `resources`.
    cost_maps: HashMap<usize, OnceLock<Answer>>,
}

impl Maps {
    /// The maps of a snapshot.
    pub fn new(tables: Arc<Tables>, settings: Arc<MapSettings>, previous: Option<&Self>) -> Self {
        let config = &settings.config;
        let offer = offer(&tables, config);
        let map_configs = config.maps();
        let resources = super::directory::resources(&map_configs, &offer);
        let network_maps: Vec<OnceLock<Arc<NetworkMap>>> = map_configs
            .iter()
            .map(|map| {
                let same = previous
                    .filter(|previous| previous.settings.name_key == settings.name_key)
                    .into_iter()
                    .flat_map(|previous| &previous.network_maps)
                    .filter_map(OnceLock::get)
                    .find(|made| made.holds_for(map, &tables.view));
                same.map_or_else(OnceLock::new, |made| OnceLock::from(Arc::clone(made)))
            })
            .collect();
        let indexes = |key: fn(&Resource) -> &String| {
            resources.iter().enumerate().map(|(index, it)| (key(it).clone(), index)).collect()
        };
        Self {
            by_path: indexes(|resource| &resource.path),
            by_id: indexes(|resource| &resource.id),
            cost_maps: resources
                .iter()
                .enumerate()
                .filter(|(_, resource)| matches!(resource.kind, Kind::CostMap { .. }))
                .map(|(index, _)| (index, OnceLock::new()))
                .collect(),
            classes: tables.policy.metrics.iter().map(|_| OnceLock::new()).collect(),
            network_maps,
            map_configs,
            resources,
            offer,
            settings,
            tables,
        }
    }

    /// The snapshot that these are of.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// What the directory lists.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The resource with this identity.
    pub fn resource(&self, id: &str) -> Option<&Resource> {
        self.by_id.get(id).and_then(|index| self.resources.get(*index))
    }

    /// The resource at this path.
    pub fn at(&self, path: &str) -> Option<&Resource> {
        self.by_path.get(path).and_then(|index| self.resources.get(*index))
    }

    /// The identities of the network maps; the first is the default one.
    pub fn network_map_ids(&self) -> impl Iterator<Item = &str> {
        self.resources
            .iter()
            .filter(|resource| matches!(resource.kind, Kind::NetworkMap(_)))
            .map(|resource| resource.id.as_str())
    }

    /// Checks that all network maps can be given out as a whole, before any is made.
    ///
    /// # Errors
    ///
    /// One has too many PIDs.
    pub(super) fn check_all(&self) -> Result<(), Failure> {
        (0..self.map_configs.len())
            .try_for_each(|map| self.check_whole(map, self.settings.config.max_pids))
    }

    /// A network map, made when it is first asked for.
    pub fn network_map(&self, id: &str) -> Option<Arc<NetworkMap>> {
        match self.resource(id)?.kind {
            Kind::NetworkMap(map) => Some(self.map(map)?.clone()),
            _ => None,
        }
    }

    /// The root directory (RFC 7285, 9.2), with what others add to it. `base` goes before each path.
    pub fn directory(&self, base: &str, more: &[Resource]) -> Vec<u8> {
        super::directory::write(base, &self.offer, self.resources.iter().chain(more))
    }

    /// Answers a request: the rules of HTTP, then those of the resource.
    pub fn respond(&self, request: &Request<'_>) -> Response {
        self.try_respond(request).unwrap_or_else(|failure| failure.response())
    }

    fn try_respond(&self, request: &Request<'_>) -> Result<Response, Failure> {
        if request.path == DIRECTORY_PATH {
            if request.method != Method::Get {
                return Err(Failure::Method("GET"));
            }
            if !media::accepts(request.accept, media::DIRECTORY) {
                return Err(Failure::NotAcceptable(media::DIRECTORY));
            }
            let base = self.settings.config.base();
            return Ok(Response::ok(media::DIRECTORY, self.directory(&base, &[])));
        }
        let resource = self.at(request.path).ok_or(Failure::NotFound)?;
        let input = match (resource.accepts, request.method) {
            (None, Method::Get) => None,
            (Some(_), Method::Post) => Some(request.body),
            _ => return Err(Failure::Method(resource.allow())),
        };
        if !resource.acceptable(request.accept) {
            return Err(Failure::NotAcceptable(resource.media_type));
        }
        if let Some(accepts) = resource.accepts
            && !media::is(request.content_type.unwrap_or_default(), accepts)
        {
            return Err(Failure::MediaType(accepts));
        }
        let body = self.answer(&resource.id, input, &request.asker)?;
        Ok(Response::ok(resource.media_type, body))
    }

    /// The JSON of a resource; `input` is the body for those that take one.
    pub fn answer(&self, id: &str, input: Option<&[u8]>, asker: &Asker) -> Answer {
        let index = self.by_id.get(id).copied().ok_or(Failure::NotFound)?;
        let resource = self.resources.get(index).ok_or(Failure::NotFound)?;
        let input = match (resource.accepts, input) {
            (Some(_), Some(bytes)) => input::parse(bytes)?,
            (None, None) => Map::new(),
            _ => return Err(Failure::Method(resource.allow())),
        };
        let body = Object::body(&input);
        match &resource.kind {
            Kind::NetworkMap(map) => {
                self.check_whole(*map, self.settings.config.max_pids)?;
                let map = self.map(*map).ok_or(Failure::NotFound)?;
                self.check_pids(map.pids().len())?;
                Ok(Arc::clone(map.bytes()))
            }
            Kind::FilteredNetworkMap(map) => {
                let map = self.map(*map).ok_or(Failure::NotFound)?;
                self.filtered_network_map(map, body)
            }
            Kind::CostMap { map, kind } => {
                self.check_whole(*map, self.settings.config.max_costs.isqrt())?;
                let map = self.map(*map).ok_or(Failure::NotFound)?;
                let made = self.cost_maps.get(&index).ok_or(Failure::NotFound)?;
                made.get_or_init(|| self.cost_map(map, kind, asker)).clone()
            }
            Kind::FilteredCostMap(map) => {
                let map = self.map(*map).ok_or(Failure::NotFound)?;
                self.filtered_cost_map(map, body, asker)
            }
            Kind::EndpointProperty => self.endpoint_properties(body),
            Kind::EndpointCost => self.endpoint_costs(body, asker),
            Kind::Other { .. } => Err(Failure::NotFound),
        }
    }

    fn map(&self, index: usize) -> Option<&Arc<NetworkMap>> {
        let config = self.map_configs.get(index)?;
        Some(self.network_maps.get(index)?.get_or_init(|| {
            Arc::new(NetworkMap::new(config, &self.tables.view, &self.settings.name_key))
        }))
    }

    /// Whether a whole map with at most `most` PIDs can be given out, before it is made.
    pub(super) fn check_whole(&self, map: usize, most: usize) -> Result<(), Failure> {
        let made = self.network_maps.get(map).and_then(OnceLock::get).is_some();
        let config = self.map_configs.get(map).ok_or(Failure::NotFound)?;
        if made || !NetworkMap::exceeds(most, config, &self.tables.view) {
            return Ok(());
        }
        Err(Failure::TooLarge(format!(
            "This network map has more than {most} PIDs, and this server gives out this resource with at most as \
             many; ask for fewer, or for another network map."
        )))
    }

    /// Whether so many PIDs may be given out at once.
    pub(super) fn check_pids(&self, pids: usize) -> Result<(), Failure> {
        let limit = self.settings.config.max_pids;
        if pids <= limit {
            return Ok(());
        }
        Err(Failure::TooLarge(format!(
            "The answer would have {pids} PIDs, and this server gives out at most {limit} at once; \
             ask for fewer, or for another network map."
        )))
    }

    /// Whether so many sources and destinations, with so many values for each pair, are not too many.
    fn check_costs(
        &self,
        sources: usize,
        destinations: usize,
        values: usize,
    ) -> Result<(), Failure> {
        let limit = self.settings.config.max_costs;
        let costs = sources.checked_mul(destinations).and_then(|pairs| pairs.checked_mul(values));
        if costs.is_some_and(|costs| costs <= limit) {
            return Ok(());
        }
        Err(Failure::TooLarge(format!(
            "The answer would have {values} values from each of {sources} sources to each of \
             {destinations} destinations, and this server gives out at most {limit} at once; ask for \
             fewer, or with another network map."
        )))
    }

    /// RFC 7285, 11.3.1.
    fn filtered_network_map(&self, map: &NetworkMap, body: Object<'_>) -> Answer {
        let pids = body.required_list("pids", pid_name)?;
        let types = body
            .list("address-types", |text| is_address_type(text).then(|| AddressType::parse(text)))?
            .unwrap_or_default();
        let indexes = indexes_of(map, &pids);
        self.check_pids(indexes.len())?;
        let types: Vec<AddressType> = if types.is_empty() {
            AddressType::ALL.to_vec()
        } else {
            types.into_iter().filter_map(|(kind, _)| kind).collect()
        };
        Ok(map.write(&indexes, &types).into())
    }

    /// RFC 7285, 11.2.3.
    fn cost_map(&self, map: &NetworkMap, kind: &CostType, asker: &Asker) -> Answer {
        let request = CostRequest {
            types: vec![kind],
            multi: None,
            tested: Vec::new(),
            constraints: super::constraint::Constraints::default(),
            calendars: vec![None],
        };
        let all: Vec<u32> = (0..map.pids().len() as u32).collect();
        self.costs_of_pids(map, &request, &all, &all, asker)
    }

    /// RFC 7285, 11.3.2.
    fn filtered_cost_map(&self, map: &NetworkMap, body: Object<'_>, asker: &Asker) -> Answer {
        let request = self.offer.request(body)?;
        let (sources, destinations) = match body.object("pids")? {
            None => (Vec::new(), Vec::new()),
            Some(pids) => {
                (pids.required_list("srcs", pid_name)?, pids.required_list("dsts", pid_name)?)
            }
        };
        let (sources, destinations) = (indexes_of(map, &sources), indexes_of(map, &destinations));
        self.costs_of_pids(map, &request, &sources, &destinations, asker)
    }

    fn costs_of_pids(
        &self,
        map: &NetworkMap,
        request: &CostRequest<'_>,
        sources: &[u32],
        destinations: &[u32],
        asker: &Asker,
    ) -> Answer {
        self.check_costs(sources.len(), destinations.len(), request.values())?;
        let names = |indexes: &[u32]| {
            indexes.iter().filter_map(|index| Some(map.pid(*index)?.name.as_str())).collect()
        };
        let mut meta = Map::new();
        meta.insert("dependent-vtags".into(), json!([map.vtag()]));
        let costs = |metric| costs::between_pids(&self.tables, metric, map, sources, destinations);
        let reply = self.reply(request, names(sources), names(destinations), costs, asker);
        Ok(reply.write(meta, "cost-map").into())
    }

    /// RFC 7285, 11.4.1.
    fn endpoint_properties(&self, body: Object<'_>) -> Answer {
        let properties = body.filled_list("properties", |text| self.pid_property(text))?;
        let endpoints = body.filled_list("endpoints", parse_address)?;
        self.check_costs(properties.len(), endpoints.len(), 1)?;
        let maps: Vec<(&Arc<NetworkMap>, &str)> =
            properties.iter().filter_map(|(map, text)| Some((self.map(*map)?, *text))).collect();
        let vtags: Vec<Value> = maps.iter().map(|(map, _)| map.vtag()).collect();
        let of_endpoint = |(address, text): &(_, &str)| {
            let values: Map<String, Value> = maps
                .iter()
                .map(|(map, property)| ((*property).to_owned(), map.pid_of(*address).into()))
                .collect();
            ((*text).to_owned(), Value::Object(values))
        };
        let values: Map<String, Value> = endpoints.iter().map(of_endpoint).collect();
        let reply = json!({ "meta": { "dependent-vtags": vtags }, "endpoint-properties": values });
        Ok(reply.to_string().into_bytes().into())
    }

    /// The network map of a property `map.pid`, the only properties there are here.
    fn pid_property(&self, text: &str) -> Option<usize> {
        let name::Property::OfResource(id, "pid") = name::property(text)? else { return None };
        match self.resource(id)?.kind {
            Kind::NetworkMap(map) => Some(map),
            _ => None,
        }
    }

    /// RFC 7285, 11.5.1.
    fn endpoint_costs(&self, body: Object<'_>, asker: &Asker) -> Answer {
        let request = self.offer.request(body)?;
        let endpoints = body.object("endpoints")?.ok_or_else(|| Problem::missing("endpoints"))?;
        let list = |member| endpoints.list(member, parse_endpoint);
        let sources = list("srcs")?.unwrap_or_default();
        let destinations = list("dsts")?.unwrap_or_default();
        if sources.is_empty() && destinations.is_empty() {
            let value = body.get("endpoints").cloned().unwrap_or_default();
            return Err(Problem::invalid_value("endpoints", &value).into());
        }
        let client = asker.client.to_canonical();
        let client_text = format_address(client);
        let or_client = |list: Vec<(IpNet, _)>| {
            if list.is_empty() { vec![(IpNet::from(client), client_text.as_str())] } else { list }
        };
        let (sources, destinations) = (or_client(sources), or_client(destinations));
        self.check_costs(sources.len(), destinations.len(), request.values())?;
        let (sources, source_names): (Vec<IpNet>, Vec<&str>) = sources.into_iter().unzip();
        let (destinations, names): (Vec<IpNet>, Vec<&str>) = destinations.into_iter().unzip();
        let costs =
            |metric| costs::between_endpoints(&self.tables, metric, &sources, &destinations);
        let reply = self.reply(&request, source_names, names, costs, asker);
        Ok(reply.write(Map::new(), "endpoint-cost-map").into())
    }

    /// What a reply is written from: the costs of each metric that it needs.
    fn reply<'a>(
        &self,
        request: &'a CostRequest<'a>,
        sources: Vec<&'a str>,
        destinations: Vec<&'a str>,
        costs: impl Fn(usize) -> costs::Pairs,
        asker: &Asker,
    ) -> CostReply<'a> {
        let mut reply = CostReply {
            request,
            sources,
            destinations,
            costs: HashMap::new(),
            classes: HashMap::new(),
            now: asker.now,
        };
        for kind in request.types.iter().chain(&request.tested) {
            reply.costs.entry(kind.index).or_insert_with(|| costs(kind.index));
            if let Some(made) = self.classes.get(kind.index) {
                let count = self.settings.config.classes;
                let make = || costs::classes(&self.tables, kind.index, count);
                reply.classes.insert(kind.index, *made.get_or_init(make));
            }
        }
        reply
    }
}

/// A PID's name in a request (10.1), known or not.
fn pid_name(text: &str) -> Option<&str> {
    name::is_pid(text).then_some(text)
}

/// The indexes of the PIDs of a list: all if it is empty, and without those that the map does not have
/// (11.3.1.6, 11.3.2.6).
fn indexes_of(map: &NetworkMap, pids: &[(&str, &str)]) -> Vec<u32> {
    if pids.is_empty() {
        (0..map.pids().len() as u32).collect()
    } else {
        pids.iter().filter_map(|(pid, _)| map.index_of(pid)).collect()
    }
}

/// What can be asked of costs: each configured metric whose name ALTO can write, in both modes.
fn offer(tables: &Tables, config: &AltoConfig) -> Offer {
    let metrics = &tables.policy.metrics;
    let types = cost_types(metrics.iter().map(|metric| metric.name.as_str()));
    let calendar = |index: usize, name: &str| {
        let of = |metric: &str| metric == name || (index == 0 && metric == name::ROUTING_COST);
        config.calendars.iter().find(|calendar| of(&calendar.metric)).and_then(Calendar::new)
    };
    Offer {
        types,
        testable: config.testable.clone(),
        calendars: metrics
            .iter()
            .enumerate()
            .map(|(index, metric)| calendar(index, &metric.name))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        metric::Metric,
        tables::{Adjustments, Policy},
    };
    use std::{net::IpAddr, time::SystemTime};
    use topo::{Builder, Change, Feed, Options, RouterId};

    /// A million groups took seconds to become a map that was then refused.
    #[test]
    fn a_map_that_is_too_large_is_refused_before_it_is_made() {
        let mut builder = Builder::new(Options::default());
        let mut apply = |change| builder.apply(Feed::CONFIGURATION, change).unwrap();
        for number in 0..5_u8 {
            let id = RouterId(IpAddr::from([10, 255, 0, number]));
            apply(Change::Router { id, name: None });
            let prefix = IpNet::new_assert(IpAddr::from([10, number, 0, 0]), 16);
            apply(Change::Internal { prefix, router: id });
        }
        let policy = Policy {
            metrics: vec![Metric::compile("default", "internal_hops").unwrap()],
            adjustments: Adjustments::new(Vec::new()).unwrap(),
            default_router: None,
        };
        let tables = Arc::new(Tables::build(builder.view(), Arc::new(policy), None));
        let asker = Asker { client: [10, 0, 0, 1].into(), now: SystemTime::UNIX_EPOCH };
        for (limits, refused) in [("max_pids = 4\nmax_costs = 24", true), ("max_pids = 6", false)] {
            let config = toml::from_str(limits).unwrap();
            let settings = Arc::new(MapSettings { config, name_key: [7; 16] });
            let maps = Maps::new(tables.clone(), settings, None);
            for id in ["groups", "groups-num-routingcost"] {
                let answer = maps.answer(id, None, &asker);
                assert_eq!(
                    matches!(answer, Err(Failure::TooLarge(_))),
                    refused,
                    "{id}: {answer:?}"
                );
            }
            let all = super::super::properties::full(&maps);
            assert_eq!(matches!(all, Err(Failure::TooLarge(_))), refused);
            let made = maps.network_maps.iter().any(|map| map.get().is_some());
            assert_eq!(made, !refused);
        }
    }
}
