//! The section `[gate.audit]` of the configuration.

use super::ipfix;
use config::{Problem, Report, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, path::PathBuf, time::Duration};

/// Most records that wait to be written.
const MAX_QUEUE: usize = 1_000_000;
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// Longest time that files are kept, other than for ever.
const LONGEST: Duration = DAY.saturating_mul(36_525);
/// Longest time between two requests that the disk hold what was written.
const LONGEST_SYNC: Duration = HOUR;
/// Smallest and largest size of a file.
const SIZES: std::ops::RangeInclusive<Size> = Size(1 << 20)..=Size(1 << 40);

/// The audit log: flows, files, chat and refusals as Suricata EVE lines, and flows as IPFIX.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Folder of the log's files, an absolute path; created with mode 0750 if it is missing.
    pub folder: PathBuf,
    /// Kinds of records that are written; all when not given.
    #[serde(default = "all_kinds")]
    pub record: BTreeSet<Kind>,
    /// Log the SHA-256 of files. All content of all files is then read in user space.
    #[serde(default)]
    pub hash: bool,
    /// Log the text of chat messages; if false, only sender and recipient.
    #[serde(default = "yes")]
    pub chat_text: bool,
    /// Most records that wait to be written; records beyond are lost and counted.
    #[serde(default = "queue")]
    #[schemars(range(min = 1, max = MAX_QUEUE))]
    pub queue: usize,
    /// Size at which a file is full and the next one begins.
    #[serde(default = "size")]
    pub rotate_size: Size,
    /// Age at which a file is full and the next one begins.
    #[serde(default = "day", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub rotate_after: Duration,
    /// Full files are deleted this long after their last record; 0 is never. Files become old at most twice as
    /// fast as time passes, whatever the clock says.
    #[serde(default = "month", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub keep: Duration,
    /// Most bytes of all files together; the oldest full files are deleted first.
    #[serde(default = "total")]
    pub total_size: Size,
    /// Interval of fsync; 0 is after each write.
    #[serde(default = "sync", with = "humantime_serde")]
    #[schemars(with = "config::schema::Duration")]
    pub sync: Duration,
    /// Export of flows as IPFIX; off when not given.
    pub ipfix: Option<ipfix::Config>,
    /// Anonymization of addresses in the log; addresses are logged as seen when not given.
    pub addresses: Option<Addresses>,
}

/// Anonymization of addresses in the log.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Addresses {
    /// Prefix-preserving mapping from addresses to pseudonyms.
    pub mapping: MappingName,
    /// File with the key, 32 bytes or their hexadecimal digits; only its owner may read it.
    pub key: PathBuf,
}

/// Mappings that keep prefixes and the version of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MappingName {
    /// Crypto-PAn (Xu et al., ICNP 2002).
    CryptoPan,
    /// ipcrypt-pfx (draft-denis-ipcrypt).
    IpcryptPfx,
}

/// Kinds of records that can be skipped.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Flows that ended.
    Flows,
    /// File transfers.
    Files,
    /// Messages, joins, parts and file offers of IRC and XMPP.
    Chat,
    /// Refused flows and files.
    Refusals,
    /// The scanner's verdicts.
    Scans,
    /// Streams with missing, contradictory or impossible segments.
    Anomalies,
}

fn all_kinds() -> BTreeSet<Kind> {
    use Kind::{Anomalies, Chat, Files, Flows, Refusals, Scans};
    [Flows, Files, Chat, Refusals, Scans, Anomalies].into()
}

const fn yes() -> bool {
    true
}

const fn queue() -> usize {
    16_384
}

const fn size() -> Size {
    Size(256 << 20)
}

const fn total() -> Size {
    Size(10 << 30)
}

const fn day() -> Duration {
    DAY
}

const fn month() -> Duration {
    DAY.saturating_mul(30)
}

const fn sync() -> Duration {
    Duration::from_secs(1)
}

impl Config {
    /// The section with nothing set but the folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            record: all_kinds(),
            hash: false,
            chat_text: true,
            queue: queue(),
            rotate_size: size(),
            rotate_after: day(),
            keep: month(),
            total_size: total(),
            sync: sync(),
            ipfix: None,
            addresses: None,
        }
    }

    /// Everything that is wrong with the values, each key as in the section; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let report = &mut Report::new(&mut problems, "");
        if !self.folder.is_absolute() {
            report.add("folder", "must begin with `/`");
        }
        if self.addresses.as_ref().is_some_and(|addresses| !addresses.key.is_absolute()) {
            report.add("addresses.key", "must begin with `/`");
        }
        if self.record.is_empty() {
            report.add("record", "the list is empty; remove [gate.audit] to log nothing");
        }
        if !(1..=MAX_QUEUE).contains(&self.queue) {
            report.add("queue", format!("{} is not from 1 to {MAX_QUEUE} records", self.queue));
        }
        if !SIZES.contains(&self.rotate_size) {
            let [least, most] = [SIZES.start(), SIZES.end()];
            let text = format!("{} is not from {least} to {most}", self.rotate_size);
            report.add("rotate_size", text);
        }
        if self.total_size < self.rotate_size {
            report.add("total_size", "must not be smaller than rotate_size");
        }
        if !(HOUR..=LONGEST).contains(&self.rotate_after) {
            report.add("rotate_after", "must be from 1h to 100years");
        }
        if !self.keep.is_zero() && !(HOUR..=LONGEST).contains(&self.keep) {
            report.add("keep", "must be from 1h to 100years, or 0s for ever");
        }
        if self.sync > LONGEST_SYNC {
            report.add("sync", "must be 1h at most, or 0s for each write");
        }
        if let Some(ipfix) = &self.ipfix {
            report.take("ipfix", ipfix.problems());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let config: Config = toml::from_str(text).expect("a section");
        config.problems().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_folder_is_enough_and_files_are_kept_for_thirty_days() {
        let config: Config = toml::from_str("folder = '/var/log/nigh/gate'").unwrap();
        assert_eq!(config, Config::new("/var/log/nigh/gate"));
        assert_eq!(config.keep, Duration::from_secs(30 * 86_400));
        assert_eq!(config.record.len(), 6);
        assert_eq!(config.problems(), []);
        assert!(toml::from_str::<Config>("").is_err());
        assert!(toml::from_str::<Config>("folder = '/x'\nkept = '1day'").is_err());
    }

    #[test]
    fn every_value_that_makes_no_sense_is_named() {
        for (text, key) in [
            ("folder = 'here'", "folder"),
            ("folder = '/x'\nrecord = []", "record"),
            ("folder = '/x'\nqueue = 0", "queue"),
            ("folder = '/x'\nrotate_size = '0'", "rotate_size"),
            ("folder = '/x'\ntotal_size = '255MiB'", "total_size"),
            ("folder = '/x'\nrotate_after = '1s'", "rotate_after"),
            ("folder = '/x'\nkeep = '1s'", "keep"),
            ("folder = '/x'\nsync = '2h'", "sync"),
            ("folder = '/x'\n[ipfix]", "ipfix.file"),
            ("folder = '/x'\n[ipfix]\ncollector = '192.0.2.1:0'", "ipfix.collector"),
            ("folder = '/x'\n[ipfix]\nfile = true\ndomain = 0", "ipfix.domain"),
            ("folder = '/x'\n[ipfix]\nfile = true\nrefresh = '2days'", "ipfix.refresh"),
        ] {
            let found = problems(text);
            assert!(
                found.first().is_some_and(|it| it.starts_with(&format!("{key}: "))),
                "{found:?}"
            );
        }
        assert_eq!(problems("folder = '/x'\nkeep = '0s'\nsync = '0s'"), [""; 0]);
    }
}
