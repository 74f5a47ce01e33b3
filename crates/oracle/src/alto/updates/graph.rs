//! The updates graph of one resource (RFC 9569 section 3): its latest versions, and what leads to them.
//!
//! Versions are numbered one after the other. An edge from 0 to a version is a snapshot, an edge from a version
//! to the next one is an incremental change; both are made once, however many clients read them.
//!
//! ```text
//!         .------snapshot-----.-----snapshot----.
//!         |                   v                 v
//!         0 --snapshot--> 17 ----> 18 ----> 19 ----> 20      20 --> 21: does not exist yet
//!                         start    changes           end
//! ```
//!
//! The same graph feeds the streams of RFC 8895: a substream is a position in it. What is kept is bounded in
//! versions and bytes; the start then moves right to a version with a snapshot (section 3.2).

use super::{merge, patch};
use axum::body::Bytes;
use serde_json::Value;
use std::collections::VecDeque;

/// Media type of a JSON merge patch (RFC 7396 section 4).
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// Media type of a JSON patch (RFC 6902 section 6).
pub const JSON_PATCH: &str = "application/json-patch+json";

/// A snapshot is kept of every version whose number divides by this, so that the start can move there.
const CHECKPOINT: u64 = 16;
/// A snapshot is kept of this many of the latest versions: a client is sent the last one, and a new version
/// may come before it asks for it.
const RECENT: u64 = 3;

/// The encoding of incremental changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As merge patches.
    Merge,
    /// As merge patch or JSON patch, whichever is shorter; for maps with long arrays.
    Shorter,
}

impl Encoding {
    /// The media types for the directory (RFC 8895 section 6.3, RFC 9569 section 5.2).
    pub fn media_types(self) -> &'static str {
        match self {
            Encoding::Merge => MERGE_PATCH,
            Encoding::Shorter => "application/merge-patch+json,application/json-patch+json",
        }
    }
}

/// What is on an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Of a snapshot, the resource's own; of a change, that of the patch.
    pub media_type: &'static str,
    /// JSON in one line.
    pub text: Bytes,
}

/// Why there is nothing on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no such edge, and there will be none.
    Never,
    /// It begins before the graph does.
    Gone,
    /// It is the next one.
    Next,
    /// It is later than the next one.
    Later,
}

/// What a graph may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Versions.
    pub versions: usize,
    /// Bytes of snapshots and changes, as long as more than the last version is there.
    pub bytes: usize,
}

/// A new version is not a JSON object; it is not taken.
#[derive(Debug, thiserror::Error)]
#[error("the resource's new version is not a JSON object: {0}")]
pub struct NotJson(#[from] serde_json::Error);

#[derive(Debug)]
struct Version {
    tag: Option<String>,
    snapshot: Option<Bytes>,
    /// From the version before; the first one's is not needed.
    change: Option<Item>,
}

/// The last version of a graph, for comparing while others read the graph.
#[derive(Debug)]
pub struct Base {
    last: Bytes,
    encoding: Encoding,
}

/// A version that has been compared with the last one, and is to be taken over.
#[derive(Debug)]
pub struct Next {
    tag: Option<String>,
    text: Bytes,
    /// None if no patch can express it.
    change: Option<Item>,
}

impl Base {
    /// Compares a new version with the last one; none if nothing changed.
    ///
    /// # Errors
    ///
    /// `text` is no JSON object.
    pub fn next(&self, text: Bytes) -> Result<Option<Next>, NotJson> {
        if self.last == text {
            return Ok(None);
        }
        let (old, new) = (parse(&self.last)?, parse(&text)?);
        if old == new {
            return Ok(None);
        }
        Ok(Some(Next { tag: tag(&new), change: self.change(&old, &new), text }))
    }

    fn change(&self, old: &Value, new: &Value) -> Option<Item> {
        let merge = merge::diff(old, new)
            .map(|patch| Item { media_type: MERGE_PATCH, text: patch.to_string().into() });
        if self.encoding == Encoding::Merge {
            return merge;
        }
        let text = patch::diff(old, new).to_string();
        let patch = Item { media_type: JSON_PATCH, text: text.into() };
        Some(merge.filter(|merge| merge.text.len() <= patch.text.len()).unwrap_or(patch))
    }
}

/// The versions of one resource.
#[derive(Debug)]
pub struct Graph {
    media_type: &'static str,
    encoding: Encoding,
    bounds: Bounds,
    /// Number of the first one in `versions`, which has a snapshot, as the last one has.
    start: u64,
    versions: VecDeque<Version>,
}

impl Graph {
    /// The graph of a resource whose first version is `text`.
    pub fn new(
        media_type: &'static str,
        encoding: Encoding,
        bounds: Bounds,
        text: Bytes,
    ) -> Result<Graph, NotJson> {
        let first = Version { tag: tag(&parse(&text)?), snapshot: Some(text), change: None };
        Ok(Graph { media_type, encoding, bounds, start: 1, versions: VecDeque::from([first]) })
    }

    /// Number of the first version.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Number of the last version.
    pub fn end(&self) -> u64 {
        self.start + (self.versions.len() as u64).saturating_sub(1)
    }

    /// Media type of the resource itself.
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// What a new version would be compared with.
    pub fn base(&self) -> Base {
        Base { last: self.latest().text, encoding: self.encoding }
    }

    /// Takes a new version over; false if nothing changed.
    ///
    /// # Errors
    ///
    /// `text` is no JSON object.
    pub fn push(&mut self, text: Bytes) -> Result<bool, NotJson> {
        let next = self.base().next(text)?;
        let changed = next.is_some();
        if let Some(next) = next {
            self.take(next);
        }
        Ok(changed)
    }

    /// Changes how many bytes may be kept, from the next version on.
    pub fn set_bytes(&mut self, bytes: usize) {
        self.bounds.bytes = bytes;
    }

    /// Takes over a version that was compared with the last one.
    pub fn take(&mut self, next: Next) {
        let cut = next.change.is_none();
        let Next { tag, text, change } = next;
        self.versions.push_back(Version { tag, snapshot: Some(text), change });
        if cut {
            // No patch can express it: the graph starts again with this version.
            self.drop_before(self.end());
        }
        self.forget_snapshots();
        self.compact();
    }

    /// Drops the snapshots that no rule keeps.
    fn forget_snapshots(&mut self) {
        let (start, end) = (self.start, self.end());
        for (number, version) in (start..).zip(&mut self.versions) {
            if number != start && number % CHECKPOINT != 0 && number + RECENT <= end {
                version.snapshot = None;
            }
        }
    }

    /// Drops snapshots between the first and the last, then moves the start to the right, until the graph keeps to
    /// its bounds or only the last version is left.
    fn compact(&mut self) {
        let end = self.end();
        for (number, version) in (self.start..).zip(&mut self.versions) {
            // Large maps: all changes are worth more than a snapshot in their middle.
            let large =
                version.snapshot.as_ref().is_some_and(|text| text.len() > self.bounds.bytes / 8);
            if number != self.start && number != end && large {
                version.snapshot = None;
            }
        }
        while self.versions.len() > self.bounds.versions.max(1) || self.bytes() > self.bounds.bytes
        {
            let next = (self.start..)
                .zip(&self.versions)
                .skip(1)
                .find_map(|(number, version)| version.snapshot.is_some().then_some(number));
            let Some(next) = next else { return };
            self.drop_before(next);
        }
    }

    fn drop_before(&mut self, start: u64) {
        while self.start < start && self.versions.len() > 1 {
            self.versions.pop_front();
            self.start += 1;
        }
    }

    /// Bytes that the graph keeps.
    pub fn bytes(&self) -> usize {
        let of = |version: &Version| {
            version.snapshot.as_ref().map_or(0, Bytes::len)
                + version.change.as_ref().map_or(0, |item| item.text.len())
        };
        self.versions.iter().map(of).sum()
    }

    fn version(&self, number: u64) -> Option<&Version> {
        self.versions.get(usize::try_from(number.checked_sub(self.start)?).ok()?)
    }

    /// What is on the edge from version `from` to version `to` (RFC 9569 section 4.2).
    pub fn edge(&self, from: u64, to: u64) -> Result<Item, Missing> {
        let end = self.end();
        match (from, to) {
            (0, 0) => Err(Missing::Never),
            (0, to) if to < self.start => Err(Missing::Gone),
            (0, to) if to > end => Err(Missing::Later),
            (0, to) => self.snapshot(to).ok_or(Missing::Never),
            (from, to) if from.checked_add(1) != Some(to) => {
                Err(if from < self.start && from < to { Missing::Gone } else { Missing::Never })
            }
            (from, _) if from < self.start => Err(Missing::Gone),
            (from, _) if from == end => Err(Missing::Next),
            (from, _) if from > end => Err(Missing::Later),
            (_, to) => {
                self.version(to).and_then(|version| version.change.clone()).ok_or(Missing::Never)
            }
        }
    }

    fn snapshot(&self, number: u64) -> Option<Item> {
        let text = self.version(number)?.snapshot.clone()?;
        Some(Item { media_type: self.media_type, text })
    }

    /// The whole of the last version.
    pub fn latest(&self) -> Item {
        self.snapshot(self.end())
            .unwrap_or(Item { media_type: self.media_type, text: Bytes::new() })
    }

    /// Tag of the last version.
    pub fn latest_tag(&self) -> Option<&str> {
        self.version(self.end())?.tag.as_deref()
    }

    /// The changes from a version to the last one, if all are there and together shorter than the whole.
    pub fn changes_since(&self, number: u64) -> Option<Vec<Item>> {
        let end = self.end();
        let changes: Result<Vec<_>, _> =
            (number..end).map(|from| self.edge(from, from + 1)).collect();
        let changes = changes.ok().filter(|_| number >= self.start)?;
        let bytes: usize = changes.iter().map(|item| item.text.len()).sum();
        (bytes < self.latest().text.len()).then_some(changes)
    }

    /// The edge that a client with the version `tag`, or none, should take first: the path with the fewest bytes
    /// to the last version (RFC 9569 section 7.4.2). Who has the last version may wait for the next one.
    pub fn next_edge(&self, tag: Option<&str>) -> (u64, u64) {
        let end = self.end();
        // From the back: bytes of the changes from each version to the end, and the best snapshot so far.
        let (mut behind, mut best, mut from_tag) = (0, None, None);
        for (number, version) in
            (self.start..).zip(&self.versions).collect::<Vec<_>>().into_iter().rev()
        {
            if let Some(snapshot) = &version.snapshot {
                let bytes = snapshot.len() + behind;
                if best.is_none_or(|(least, _)| bytes < least) {
                    best = Some((bytes, number));
                }
            }
            if from_tag.is_none() && tag.is_some() && version.tag.as_deref() == tag {
                from_tag = Some((behind, number));
            }
            behind += version.change.as_ref().map_or(0, |change| change.text.len());
        }
        match (from_tag, best) {
            (Some((bytes, number)), Some((least, _))) if bytes <= least => (number, number + 1),
            (_, Some((_, number))) => (0, number),
            (_, None) => (0, end),
        }
    }

    /// The edge recommended when a view is opened (RFC 9569 section 6.2): the latest snapshot, or the first change
    /// after the client's version if that path has fewer bytes.
    pub fn start_edge(&self, tag: Option<&str>) -> (u64, u64) {
        match self.next_edge(tag) {
            (0, _) => (0, self.end()),
            change => change,
        }
    }
}

fn parse(text: &[u8]) -> Result<Value, NotJson> {
    let object: serde_json::Map<String, Value> = serde_json::from_slice(text)?;
    Ok(Value::Object(object))
}

/// The version tag in a resource (RFC 7285 section 10.3).
fn tag(value: &Value) -> Option<String> {
    Some(value.pointer("/meta/vtag/tag")?.as_str()?.to_owned())
}
