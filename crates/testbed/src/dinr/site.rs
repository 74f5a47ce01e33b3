//! `nigh run` as one of the two sites.

use super::{Internet, SERVICE4, site_sections};
use crate::{Error, Namespace, Nigh, wait_until};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

/// `nigh run` on the service host of a site.
#[derive(Debug)]
pub struct Site<'a> {
    asn: u32,
    name: &'static str,
    host: &'a Namespace,
    binary: &'a Path,
    sections: String,
    nigh: Nigh,
}

/// What a site's ledger says of the IPv4 service address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets that arrived.
    pub received: u64,
    /// Requests answered by the program.
    pub answered: u64,
    /// Packets left to the kernel.
    pub passed: u64,
    /// Packets dropped, by reason, where there were any.
    pub dropped: Vec<(String, u64)>,
}

impl Ledger {
    /// All drops together.
    pub fn drops(&self) -> u64 {
        self.dropped.iter().map(|(_, count)| count).sum()
    }

    /// What was counted since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |reason: &str| {
            earlier.dropped.iter().find(|(name, _)| name == reason).map_or(0, |(_, count)| *count)
        };
        let dropped = self.dropped.iter().map(|(name, count)| (name.clone(), count - before(name)));
        Self {
            received: self.received - earlier.received,
            answered: self.answered - earlier.answered,
            passed: self.passed - earlier.passed,
            dropped: dropped.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

impl<'a> Site<'a> {
    /// Starts `nigh run` at a site (12 or 13). It announces by itself as soon as it is healthy.
    ///
    /// # Errors
    ///
    /// As [`Nigh::start`].
    pub fn start(internet: &'a Internet, asn: u32, binary: &'a Path) -> Result<Self, Error> {
        Self::start_with(internet, asn, binary, "")
    }

    /// As [`Site::start`], with more sections than those of the responder.
    ///
    /// # Errors
    ///
    /// As [`Nigh::start`].
    pub fn start_with(
        internet: &'a Internet,
        asn: u32,
        binary: &'a Path,
        more: &str,
    ) -> Result<Self, Error> {
        let host = internet.service(asn);
        let name = internet.router(asn).name;
        let sections = site_sections(asn) + more;
        let nigh = Nigh::start(host, binary, name, &sections)?;
        Ok(Self { asn, name, host, binary, sections, nigh })
    }

    /// The daemon.
    pub fn nigh(&mut self) -> &mut Nigh {
        &mut self.nigh
    }

    /// The name as the paper writes it, such as `DINR_A`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Drains it, as `nigh drain` does, and returns when that is done.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn drain(&self) -> Result<(), Error> {
        self.nigh.control(&json!({"do": "drain"})).map(drop)
    }

    /// Starts it again after it was killed, with the same files.
    ///
    /// # Errors
    ///
    /// As [`Nigh::start`].
    pub fn restart(&mut self) -> Result<(), Error> {
        self.nigh.restart(self.host, self.binary, self.name, &self.sections)
    }

    /// Asks the responder, as `nigh echo` does: the value of `request`.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn ask(&self, request: &Value) -> Result<Value, Error> {
        self.nigh.control(&json!({"do": "echo", "request": request}))
    }

    /// The ledger's row of the IPv4 service address.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub fn ledger(&self) -> Result<Ledger, Error> {
        let answer = self.ask(&json!({"do": "ledger"}))?;
        let row = answer["rows"]
            .as_array()
            .and_then(|rows| rows.iter().find(|row| row["address"].as_str() == Some(SERVICE4)));
        let row = row.ok_or_else(|| Error::new(format!("ledger of AS {}", self.asn), &answer))?;
        let count = |name: &str| row[name].as_u64().unwrap_or_default();
        let dropped = row["dropped"].as_object().into_iter().flatten();
        let dropped = dropped.map(|(name, count)| (name.clone(), count.as_u64().unwrap_or(0)));
        Ok(Ledger {
            received: count("received"),
            answered: count("answered"),
            passed: count("passed"),
            dropped: dropped.filter(|(_, count)| *count > 0).collect(),
        })
    }

    /// Waits until an AS's best path to the service is `path`; returns how long that took.
    ///
    /// # Errors
    ///
    /// When it is another after `timeout`; the error carries what nigh wrote.
    pub fn wait_for_path(
        &self,
        internet: &Internet,
        asn: u32,
        prefix: &str,
        path: &str,
        timeout: Duration,
    ) -> Result<Duration, Error> {
        let router = internet.router(asn);
        let what = format!("path `{path}` to {prefix} at {}", router.name);
        wait_until(&what, timeout, || router.best_path(prefix).as_deref() == Some(path)).map_err(
            |error| Error::new(error.what, format!("{}\n{}", error.why, self.nigh.wrote())),
        )
    }
}
