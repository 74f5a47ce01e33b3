//! `nigh probe show` over HTTP: the same filters, the answer as JSON and bounded.

use super::{
    Direction, Mesh,
    cli::{ShowArgs, What},
};
use crate::archive::{Archive, Entry, QueryError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Entries of an answer by default, but for a matrix.
const ENTRIES: usize = 1000;
/// Most entries that an answer is made of.
const MOST: usize = 20_000;
/// As many of those that have samples or hops.
const MOST_LONG: usize = 1000;
/// About as many bytes has an answer at most.
const BYTES: usize = 8 << 20;

/// What is asked for, as the parameters of a URL; the names and defaults are those of `nigh probe show`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ask {
    /// What to show.
    pub what: What,
    /// Measured by this station.
    pub from: Option<String>,
    /// Measured was this station or address.
    pub to: Option<String>,
    /// Measured by this test of the schedule.
    pub test: Option<String>,
    /// How far back.
    #[serde(with = "humantime_serde")]
    pub since: Duration,
    /// Which delay.
    pub direction: Direction,
    /// At most this many entries, which are the newest.
    pub limit: Option<usize>,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            what: What::default(),
            from: None,
            to: None,
            test: None,
            since: Duration::from_secs(86_400),
            direction: Direction::default(),
            limit: None,
        }
    }
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// What is shown.
    pub what: What,
    /// Whether there is more, older than this, that the limit cut off.
    pub more: bool,
    /// The matrix, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<Mesh>,
    /// The entries otherwise, the oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<Entry>>,
}

impl Ask {
    /// Looks into the archive.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn answer(&self, archive: &Archive, now_ns: i64) -> Result<Answer, QueryError> {
        let most = match self.what {
            What::Throughput | What::Traces => MOST_LONG,
            What::Delay | What::Mesh | What::Clocks => MOST,
        };
        let usual = if self.what == What::Mesh { most } else { ENTRIES };
        let limit = self.limit.unwrap_or(usual).min(most);
        let args = ShowArgs {
            what: self.what,
            from: self.from.clone(),
            to: self.to.clone(),
            test: self.test.clone(),
            since: self.since,
            direction: self.direction,
            way: None,
            archive: None,
            svg: None,
            json: true,
        };
        let mut query = args.query(now_ns);
        // One more, to see whether there is.
        query.limit = Some(limit + 1);
        let mut entries = archive.query(&query)?;
        let mut more = entries.len() > limit;
        entries.drain(..entries.len().saturating_sub(limit));
        if self.what == What::Mesh {
            let mesh = Some(Mesh::new(&entries, self.direction));
            return Ok(Answer { what: self.what, more, mesh, entries: None });
        }
        let mut bytes = 0;
        let newest = entries.iter().rev().take_while(|entry| {
            bytes += serde_json::to_vec(entry).map_or(0, |text| text.len());
            bytes <= BYTES
        });
        let older = entries.len() - newest.count();
        more |= older > 0;
        entries.drain(..older);
        Ok(Answer { what: self.what, more, mesh: None, entries: Some(entries) })
    }
}
