//! GraphML as the Internet Topology Zoo writes it: nodes with labels and coordinates, edges with speeds.

use super::Failure;
use super::graph::{DirectedLink, Known, Node, TooMany};
use super::oracle::MOST_RATE;
use super::report::Context;
use crate::{Nanos, SettingsChange};
use roxmltree::{Document, Node as Element, ParsingOptions};
use rustc_hash::FxHashMap;

/// Largest file, bytes.
pub(super) const SIZE: u64 = 64 << 20;
/// Most elements, attributes and texts.
const MOST_PARTS: u32 = 20_000_000;
/// Kilometres a second in glass.
const SPEED: f64 = 200_000.0;
/// The earth's mean radius in kilometres.
const RADIUS: f64 = 6_371.0;

/// A position on earth, in radians.
#[derive(Clone, Copy)]
struct Position {
    latitude: f64,
    longitude: f64,
}

impl Position {
    /// Kilometres along the great circle (haversine).
    fn distance(self, other: Self) -> f64 {
        let half = |one: f64, two: f64| ((two - one) / 2.0).sin().powi(2);
        let chord = half(self.latitude, other.latitude)
            + self.latitude.cos() * other.latitude.cos() * half(self.longitude, other.longitude);
        2.0 * RADIUS * chord.sqrt().min(1.0).asin()
    }
}

/// What the file calls its data, by key.
type Keys<'d> = FxHashMap<&'d str, &'d str>;

/// The text of an element's datum with that name.
fn datum<'d>(element: Element<'d, '_>, keys: &Keys<'_>, name: &str) -> Option<&'d str> {
    let mut data = element.children().filter(|child| child.has_tag_name("data"));
    let is = |data: &Element<'_, '_>| {
        data.attribute("key").and_then(|key| keys.get(key)).is_some_and(|known| *known == name)
    };
    data.find(|data| is(data))?.text().map(str::trim).filter(|text| !text.is_empty())
}

/// The finite number of an element's datum with that name.
fn number(element: Element<'_, '_>, keys: &Keys<'_>, name: &str) -> Option<f64> {
    datum(element, keys, name)?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Reads a file; nodes whose label another one has get `name` behind it.
pub(super) fn read(text: &str, name: &str, context: &mut Context<'_>) -> Result<(), Failure> {
    let options = ParsingOptions { nodes_limit: MOST_PARTS, ..ParsingOptions::default() };
    let document = match Document::parse_with_options(text, options) {
        Ok(document) => document,
        Err(error) => {
            let line = error.pos().row.into();
            context.bad(line, "the text is no XML", &error.to_string());
            return Ok(());
        }
    };
    let root = document.root_element();
    let mut keys = Keys::default();
    for key in root.children().filter(|child| child.has_tag_name("key")) {
        if let (Some(id), Some(name)) = (key.attribute("id"), key.attribute("attr.name")) {
            keys.insert(id, name);
        }
    }
    let line = |element: Element<'_, '_>| -> u64 {
        document.text_pos_at(element.range().start).row.into()
    };
    for graph in root.children().filter(|child| child.has_tag_name("graph")) {
        let mut nodes: FxHashMap<&str, (Node, Option<Position>)> = FxHashMap::default();
        for element in graph.children().filter(|child| child.has_tag_name("node")) {
            let Some(id) = element.attribute("id") else {
                context.bad(line(element), "a node has no id", "");
                continue;
            };
            if nodes.contains_key(id) {
                context.bad(line(element), "a node is defined a second time", id);
                continue;
            }
            let position = position(element, &keys);
            if position.is_none() {
                context.skipped(line(element), "a node has no coordinates", id);
            }
            let node = context.graph.unnamed()?;
            let label = datum(element, &keys, "label").unwrap_or(id);
            for name in
                [label.to_owned(), format!("{label} {name}"), format!("{label} {name} {id}")]
            {
                context.graph.name(node, &name);
            }
            nodes.insert(id, (node, position));
            context.taken();
        }
        let directed = graph.attribute("edgedefault") == Some("directed");
        let mut open = FxHashMap::default();
        for element in graph.children().filter(|child| child.has_tag_name("edge")) {
            let end = |name| element.attribute(name).and_then(|id| nodes.get(id)).copied();
            let (Some(from), Some(to)) = (end("source"), end("target")) else {
                context.bad(line(element), "an edge joins nodes that are not there", "");
                continue;
            };
            if from.0 == to.0 {
                context.skipped(line(element), "an edge begins and ends at the same node", "");
                continue;
            }
            let known = known(element, &keys, from.1, to.1);
            edge(context, [from.0, to.0], known, directed, &mut open)?;
            context.taken();
        }
        context.assume(
            "The delay of a link is that of light in glass along the great circle (200,000 km/s).",
        );
    }
    Ok(())
}

fn position(element: Element<'_, '_>, keys: &Keys<'_>) -> Option<Position> {
    let latitude = number(element, keys, "Latitude").filter(|angle| angle.abs() <= 90.0)?;
    let longitude = number(element, keys, "Longitude").filter(|angle| angle.abs() <= 180.0)?;
    Some(Position { latitude: latitude.to_radians(), longitude: longitude.to_radians() })
}

/// The properties of an edge.
fn known(
    element: Element<'_, '_>,
    keys: &Keys<'_>,
    from: Option<Position>,
    to: Option<Position>,
) -> Known {
    let delay = from.zip(to).map(|(from, to)| from.distance(to) / SPEED);
    let rate = number(element, keys, "LinkSpeedRaw").filter(|rate| *rate >= 1.0);
    let settings = SettingsChange {
        delay: delay.map(|seconds| Nanos((seconds * 1e9).round() as u64)),
        rate: rate.map(|rate| Some((rate as u64).min(MOST_RATE))),
        ..SettingsChange::default()
    };
    Known { settings, ..Known::default() }
}

/// Makes a link. Of directed edges one and the next one back are one link.
fn edge(
    context: &mut Context<'_>,
    [from, to]: [Node; 2],
    known: Known,
    directed: bool,
    open: &mut FxHashMap<(Node, Node), Vec<DirectedLink>>,
) -> Result<(), TooMany> {
    let graph = &mut *context.graph;
    let waiting = open.get_mut(&(to, from)).and_then(Vec::pop);
    let direction = match waiting {
        Some(direction) => direction.back(),
        None => {
            let direction = graph.join(from, to)?;
            graph.known.insert(direction.back(), Known { missing: directed, ..known });
            if directed {
                open.entry((from, to)).or_default().push(direction);
            }
            direction
        }
    };
    graph.known.insert(direction, known);
    Ok(())
}
