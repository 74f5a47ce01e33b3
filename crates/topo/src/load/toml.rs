//! Topology files in TOML.
//!
//! ```toml
//! [[router]]
//! id = "10.0.0.1"
//! name = "core1"          # optional
//!
//! [[link]]
//! from = "10.0.0.1"
//! to = "10.0.0.2"
//! id = 0                  # distinguishes parallel links
//! bandwidth = "10Gbit"    # or 10_000: a number alone is Mbit/s
//! latency = "2.5ms"       # or 2.5
//! weight = 10
//! congestion = 0          # optional
//! loss = "0%"             # optional, or a number from 0 to 1
//! both = true             # the same in the other direction; false when absent
//!
//! [[internal]]
//! prefix = "192.0.2.0/24" # or prefixes = [...]
//! router = "10.0.0.1"
//!
//! [[external]]
//! prefix = "0.0.0.0/0"    # or prefixes = [...]
//! exit = "10.0.0.2"
//! as_distance = 3
//! as_number = 64500       # origin AS; 0 when absent
//!
//! [[next_hop]]            # optional: overrides weights
//! at = "10.0.0.1"
//! to = "10.0.0.3"
//! via = "10.0.0.2"        # the router at the other end of the link
//! id = 0                  # of the link
//! ```
//!
//! A router has to be declared, but may be so below. Limit: 256 MiB a file.

use super::{About, LoadError, Notices, Out, Progress};
use crate::{
    change::Change,
    path::{ExternalPath, LinkKey, LinkProperties},
    value::RouterId,
};
use config::file::open_regular;
use ipnet::IpNet;
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
    ops::Range,
    path::Path,
};
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

/// Largest file, in bytes.
const SIZE: u64 = 256 << 20;
/// The sections.
const SECTIONS: [&str; 5] = ["router", "link", "internal", "external", "next_hop"];

/// Loads a file.
pub fn load(
    path: &Path,
    each: &mut dyn FnMut(Change),
    progress: &mut dyn FnMut(Progress),
) -> Result<Notices, LoadError> {
    let unread = |error| LoadError::Read { path: path.to_owned(), error };
    let mut text = Vec::new();
    let file = open_regular(path).map_err(unread)?;
    file.take(SIZE + 1).read_to_end(&mut text).map_err(unread)?;
    if text.len() as u64 > SIZE {
        return Err(unread(io::Error::other("the file is larger than 256 MiB")));
    }
    parse(&text, path, each, progress)
}

/// Reads a file that is already in memory.
pub fn parse(
    text: &[u8],
    name: &Path,
    each: &mut dyn FnMut(Change),
    progress: &mut dyn FnMut(Progress),
) -> Result<Notices, LoadError> {
    let mut notices = Notices::default();
    let mut about = About { file: name, notices: &mut notices };
    let size = text.len() as u64;
    match std::str::from_utf8(text) {
        Ok(text) => {
            let so_far = Progress { read: size, of: Some(size), changes: 0 };
            let mut out = Out { each, progress, so_far };
            Reader { text, starts: line_starts(text), about: &mut about, out: &mut out }.read();
            (out.progress)(out.so_far);
        }
        Err(error) => {
            let before = &text[..error.valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            about.error(line, "", "this is not UTF-8 text");
        }
    }
    if notices.errors > 0 { Err(LoadError::Bad(notices)) } else { Ok(notices) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RouterEntry {
    id: Spanned<RouterId>,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkEntry {
    from: Spanned<RouterId>,
    to: Spanned<RouterId>,
    #[serde(default)]
    id: u32,
    #[serde(deserialize_with = "config::read_mbit")]
    bandwidth: f64,
    #[serde(deserialize_with = "config::read_milliseconds")]
    latency: f64,
    weight: u32,
    #[serde(default)]
    congestion: f64,
    #[serde(default, deserialize_with = "config::read_share")]
    loss: f64,
    #[serde(default)]
    both: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InternalEntry {
    prefix: Option<Spanned<IpNet>>,
    #[serde(default)]
    prefixes: Vec<Spanned<IpNet>>,
    router: Spanned<RouterId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExternalEntry {
    prefix: Option<Spanned<IpNet>>,
    #[serde(default)]
    prefixes: Vec<Spanned<IpNet>>,
    exit: Spanned<RouterId>,
    as_distance: u16,
    #[serde(default)]
    as_number: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NextHopEntry {
    at: Spanned<RouterId>,
    to: Spanned<RouterId>,
    via: Spanned<RouterId>,
    #[serde(default)]
    id: u32,
}

/// Where each line begins.
fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

struct Reader<'a, 'n, 'o> {
    text: &'a str,
    starts: Vec<usize>,
    about: &'a mut About<'n>,
    out: &'a mut Out<'o>,
}

type Node<'i> = Spanned<DeValue<'i>>;

impl<'a> Reader<'a, '_, '_> {
    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    fn error(&mut self, span: &Range<usize>, key: &str, message: impl Into<String>) {
        let line = self.line(span.start);
        self.about.error(line, key, message);
    }

    fn read(mut self) {
        let (root, errors) = DeTable::parse_recoverable(self.text);
        for error in &errors {
            self.error(&error.span().unwrap_or_default(), "", error.message());
        }
        if !errors.is_empty() {
            return;
        }
        let mut sections: BTreeMap<&str, &Node<'_>> = BTreeMap::new();
        for (key, value) in root.get_ref() {
            let name: &str = key.get_ref();
            match SECTIONS.iter().find(|known| **known == name) {
                Some(known) => {
                    sections.insert(known, value);
                }
                None => {
                    let message =
                        format!("is not a known section; the sections are {}", list(&SECTIONS));
                    self.error(&key.span(), name, message);
                }
            }
        }
        let routers = self.routers(sections.get("router").copied());
        let links = self.links(sections.get("link").copied(), &routers);
        for (key, entry) in self.entries::<InternalEntry>("internal", sections.get("internal")) {
            let Some(router) = self.known(&routers, &entry.router, &key, "router") else {
                continue;
            };
            for prefix in self.prefixes(&key, &entry.router.span(), entry.prefix, entry.prefixes) {
                self.out.change(Change::Internal { prefix, router });
            }
        }
        for (key, entry) in self.entries::<ExternalEntry>("external", sections.get("external")) {
            let Some(exit) = self.known(&routers, &entry.exit, &key, "exit") else { continue };
            let path = ExternalPath { as_distance: entry.as_distance, as_number: entry.as_number };
            for prefix in self.prefixes(&key, &entry.exit.span(), entry.prefix, entry.prefixes) {
                self.out.change(Change::Route { prefix, exit, path });
            }
        }
        for (key, entry) in self.entries::<NextHopEntry>("next_hop", sections.get("next_hop")) {
            let known = [(&entry.at, "at"), (&entry.to, "to"), (&entry.via, "via")]
                .map(|(router, field)| self.known(&routers, router, &key, field));
            let [Some(at), Some(to), Some(end)] = known else { continue };
            let via = LinkKey { from: at, to: end, id: entry.id };
            let change = Change::NextHop { at, to, via };
            if let Err(refusal) = change.check() {
                self.error(&entry.at.span(), &key, refusal.to_string());
            } else if !links.contains(&via) {
                self.error(&entry.via.span(), &key, format!("there is no link {via}"));
            } else {
                self.out.change(change);
            }
        }
    }

    fn routers(&mut self, section: Option<&Node<'_>>) -> BTreeSet<RouterId> {
        let mut routers = BTreeSet::new();
        for (key, entry) in self.entries::<RouterEntry>("router", section.as_ref()) {
            let id = *entry.id.get_ref();
            if !routers.insert(id) {
                let message = format!("router {id} is defined twice");
                self.error(&entry.id.span(), &format!("{key}.id"), message);
                continue;
            }
            self.out.change(Change::Router { id, name: entry.name });
        }
        routers
    }

    fn links(
        &mut self,
        section: Option<&Node<'_>>,
        routers: &BTreeSet<RouterId>,
    ) -> BTreeSet<LinkKey> {
        let mut links = BTreeSet::new();
        for (key, entry) in self.entries::<LinkEntry>("link", section.as_ref()) {
            let from = self.known(routers, &entry.from, &key, "from");
            let to = self.known(routers, &entry.to, &key, "to");
            let (Some(from), Some(to)) = (from, to) else { continue };
            let properties = LinkProperties {
                bandwidth: entry.bandwidth,
                latency: entry.latency,
                weight: entry.weight,
                congestion: entry.congestion,
                loss: entry.loss,
            };
            let forward = LinkKey { from, to, id: entry.id };
            let reverse = entry.both.then_some(LinkKey { from: to, to: from, id: entry.id });
            for link in std::iter::once(forward).chain(reverse) {
                let change = Change::Link { key: link, properties };
                if let Err(refusal) = change.check() {
                    self.error(&entry.from.span(), &key, refusal.to_string());
                } else if !links.insert(link) {
                    let message = format!("link {link} is defined twice; give it another id");
                    self.error(&entry.from.span(), &key, message);
                } else {
                    self.out.change(change);
                    continue;
                }
                break;
            }
        }
        links
    }

    /// A router that has to be declared.
    fn known(
        &mut self,
        routers: &BTreeSet<RouterId>,
        id: &Spanned<RouterId>,
        key: &str,
        field: &str,
    ) -> Option<RouterId> {
        if routers.contains(id.get_ref()) {
            return Some(*id.get_ref());
        }
        let message = format!(
            "there is no [[router]] with the id {}; add one, or correct the id",
            id.get_ref()
        );
        self.error(&id.span(), &format!("{key}.{field}"), message);
        None
    }

    /// Prefixes of an entry, one or many.
    fn prefixes(
        &mut self,
        key: &str,
        near: &Range<usize>,
        one: Option<Spanned<IpNet>>,
        many: Vec<Spanned<IpNet>>,
    ) -> Vec<IpNet> {
        if one.is_none() && many.is_empty() {
            self.error(near, &format!("{key}.prefix"), "is missing");
        }
        let mut prefixes = Vec::with_capacity(many.len() + 1);
        for prefix in one.into_iter().chain(many) {
            let whole = prefix.get_ref().trunc();
            if whole != *prefix.get_ref() {
                let message = format!("{} has host bits set; write {whole}", prefix.get_ref());
                let line = self.line(prefix.span().start);
                self.about.warn(line, &format!("{key}.prefix"), message);
            }
            prefixes.push(whole);
        }
        prefixes
    }

    /// The entries of a section with their dotted keys.
    fn entries<T: DeserializeOwned>(
        &mut self,
        name: &str,
        section: Option<&&Node<'_>>,
    ) -> Vec<(String, T)> {
        let Some(section) = section else { return Vec::new() };
        let DeValue::Array(array) = section.get_ref() else {
            self.error(&section.span(), name, format!("write it as `[[{name}]]`"));
            return Vec::new();
        };
        let mut entries = Vec::with_capacity(array.len());
        for (index, node) in array.iter().enumerate() {
            let key = format!("{name}[{index}]");
            match T::deserialize(ValueDeserializer::from(node.clone())) {
                Ok(entry) => entries.push((key, entry)),
                Err(error) => {
                    let span = error.span().unwrap_or(node.span());
                    let key = field_at(node, &span)
                        .map_or_else(|| key.clone(), |field| format!("{key}.{field}"));
                    self.error(&span, &key, error.message());
                }
            }
        }
        entries
    }
}

/// The key of the entry at an offset, or whose value is there.
fn field_at(node: &Node<'_>, span: &Range<usize>) -> Option<String> {
    let DeValue::Table(table) = node.get_ref() else { return None };
    table
        .iter()
        .find(|(key, value)| {
            key.span() == *span
                || (value.span().start <= span.start && span.end <= value.span().end)
        })
        .map(|(key, _)| key.get_ref().to_string())
}

/// Words with commas and an "and".
fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
