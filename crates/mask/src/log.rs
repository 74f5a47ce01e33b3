//! The log of what was masked: who ran what, and when. Lines of JSON that are only ever appended.
//!
//! ```text
//! {"event":"begin","time":"2026-11-23T13:02:11Z","uid":1000,"run":"5f0c2a91d3e07c44","record":"masked by nigh ..","input":"in.pcap","output":"out.pcapng"}
//! {"event":"end","time":"2026-11-23T13:02:19Z","uid":1000,"run":"5f0c2a91d3e07c44","counts":{"frames":1000,"masked":1000,..}}
//! ```
//!
//! A run that was killed has a beginning and no end. There are no keys in it, only their ids.

use crate::key;
use serde::Serialize;
use std::{
    fmt::Display,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::SystemTime,
};

/// The log of one run, which has begun.
#[derive(Debug)]
pub struct Log {
    file: File,
    /// The identifier of the run.
    run: String,
}

#[derive(Debug, Default, Serialize)]
struct Line<'a> {
    event: &'static str,
    time: String,
    /// Whose rights the program has.
    uid: u32,
    /// Who logged in, where the kernel knows it: it stays through sudo.
    login_uid: Option<u32>,
    run: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Log {
    /// Opens the log, which only its owner may read if it is new, and notes that a run begins; `record` is
    /// what its result says of itself.
    ///
    /// # Errors
    /// When it cannot be opened or written.
    pub fn begin(path: &Path, record: &str, input: &Path, output: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let run = config::hex::encode(&key::fresh()?[..8]);
        let mut log = Self { file, run };
        let line = Line {
            record: Some(record),
            input: Some(input),
            output: Some(output),
            ..Line::default()
        };
        log.write("begin", line)?;
        Ok(log)
    }

    /// Notes how it ended: what was counted, and why it ended early if it did.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(
        &mut self,
        counts: Option<&impl Serialize>,
        error: Option<&impl Display>,
    ) -> io::Result<()> {
        let line = Line {
            counts: counts.map(serde_json::to_value).transpose()?,
            error: error.map(ToString::to_string),
            ..Line::default()
        };
        self.write("end", line)
    }

    /// Writes a line at once, so that those of other runs do not come between.
    fn write(&mut self, event: &'static str, line: Line<'_>) -> io::Result<()> {
        // What proc(5) calls "not set".
        let login = fs::read_to_string("/proc/self/loginuid").ok();
        let login_uid =
            login.and_then(|text| text.trim().parse().ok()).filter(|it| *it != u32::MAX);
        let line = Line {
            event,
            time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            uid: nix::unistd::geteuid().as_raw(),
            login_uid,
            run: &self.run,
            ..line
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Counts;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn runs_are_appended_with_their_beginning_and_their_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let begin = || Log::begin(&path, "a record", Path::new("in"), Path::new("out"));
        let counts = Counts { frames: 7, ..Counts::default() };
        let mut first = begin().expect("a log");
        let mut second = begin().expect("a log");
        second.end(None::<&Counts>, Some(&"the disk is full")).expect("written");
        first.end(Some(&counts), None::<&io::Error>).expect("written");
        let text = fs::read_to_string(&path).expect("a log");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let events: Vec<_> = lines.iter().map(|line| line["event"].as_str()).collect();
        assert_eq!(events, [Some("begin"), Some("begin"), Some("end"), Some("end")]);
        assert_eq!(lines[0]["run"], lines[3]["run"]);
        assert_ne!(lines[0]["run"], lines[1]["run"]);
        assert_eq!(lines[3]["counts"]["frames"], 7);
        assert_eq!(lines[2]["error"], "the disk is full");
        let own = fs::metadata(folder.path()).expect("a folder").uid();
        assert!(lines.iter().all(|line| line["uid"] == own));
        let mode = fs::metadata(&path).expect("a log").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }
}
