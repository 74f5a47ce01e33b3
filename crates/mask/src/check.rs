//! Whether anything of a capture is still in the masked one.
//!
//! Two readings, of which the second knows nothing of policies and programs:
//!
//! - the **secrets** of the original: all addresses of its headers, however deep, its MAC addresses, the
//!   names of hosts, and all that is behind the last header, or in an option about which nothing is known, as
//!   runs of eight bytes;
//! - the masked file, in which they are looked for at every byte of every packet, and of all else that the
//!   file has: as they are, reversed, shifted by one to seven bits, as hexadecimal digits and as text.
//!
//! Then the report estimates what the masked capture reveals without them: how many hosts look alike, what
//! is left that distinguishes machines, and what packets that somebody knows reveal of the others.
//!
//! Four bytes are short: among many addresses and many bytes some are found by chance. So for each address
//! of IPv4 a decoy is looked for, too, another one of its network that the original does not have. As often
//! as these are found, or as random bytes would give, chance finds the addresses; only more is a leak.

mod clocks;
mod find;
mod fingerprints;
mod hosts;
mod html;
mod injection;
mod names;
mod outline;
mod reveals;
mod secrets;
#[cfg(test)]
mod tests;
mod text;

pub use find::Finding;
pub use fingerprints::{Fingerprint, Trace};
pub use hosts::{Anonymity, Feature, HostsBy};
pub use injection::{Injection, Times, TimesKept};
pub use reveals::{Family, Known, Mapping, Reveals};

use find::Findings;
use fingerprints::{Fingerprints, Ports};
use hosts::Hosts;
use injection::Pairs;
use outline::Outline;
use secrets::Secrets;

use crate::{counted::counted, file::link_and_bytes};
use capture::{Item, ReadError, read_all};
use serde::Serialize;
use std::{fmt, io::Read};

/// What was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Packets of the original.
    pub packets: u64,
    /// Packets of the masked capture.
    pub masked: u64,
    /// Addresses of IPv4 that were looked for.
    pub ipv4: usize,
    /// Addresses of IPv6.
    pub ipv6: usize,
    /// MAC addresses.
    pub macs: usize,
    /// Names of hosts.
    pub names: usize,
    /// How often a name was not looked for, since there were too many.
    pub names_skipped: u64,
    /// Runs of what is behind the headers, and in options about which nothing is known.
    pub runs: usize,
    /// Runs that were not looked for, since there were too many.
    pub runs_skipped: u64,
    /// What was found of each, in each form.
    pub findings: Vec<Finding>,
    /// Whether more of anything was found than chance explains.
    pub leaks: bool,
    /// How many hosts look alike.
    pub anonymity: Anonymity,
    /// What is left that distinguishes machines, programs and packets.
    pub fingerprints: Vec<Fingerprint>,
    /// What known packets reveal to an attacker.
    pub injection: Injection,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The original.
    #[error("the original: {0}")]
    Original(ReadError),
    /// The masked capture.
    #[error("the masked capture: {0}")]
    Masked(ReadError),
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let masked = counted(self.masked, "packet", "packets");
        writeln!(f, "{masked}, {} in the original", self.packets)?;
        writeln!(f, "looked for {}", self.looked_for())?;
        for skipped in self.skipped() {
            writeln!(f, "{skipped}")?;
        }
        for finding in &self.findings {
            writeln!(f, "  {} {finding}", if finding.is_leak() { "LEAK" } else { "    " })?;
        }
        writeln!(f, "{}", self.verdict())?;
        let fingerprints = self.fingerprints.iter().map(Fingerprint::to_string);
        let fingerprints: Vec<String> = fingerprints.collect();
        for (title, text) in [
            ("k-anonymity", self.anonymity.to_string()),
            ("remaining fingerprints", fingerprints.join("\n")),
            ("what known packets reveal to an attacker", self.injection.to_string()),
        ] {
            writeln!(f, "{title}:")?;
            for line in text.lines() {
                writeln!(f, "  {line}")?;
            }
            if text.is_empty() {
                writeln!(f, "  none")?;
            }
        }
        Ok(())
    }
}

impl Report {
    /// What was not looked for, in words.
    fn skipped(&self) -> impl Iterator<Item = String> {
        let runs = counted(self.runs_skipped, "run of payload", "runs of payload");
        let names = counted(self.names_skipped, "name of a host", "names of hosts");
        let all = [(self.runs_skipped, runs), (self.names_skipped, names)];
        let too_many = |what| format!("not searched, because there are too many: {what}");
        all.into_iter().filter(|(count, _)| *count > 0).map(move |(_, what)| too_many(what))
    }

    /// What was looked for, in words.
    fn looked_for(&self) -> String {
        format!(
            "{}, {}, {}, {} and {}",
            counted(self.ipv4, "IPv4 address", "IPv4 addresses"),
            counted(self.ipv6, "IPv6 address", "IPv6 addresses"),
            counted(self.macs, "MAC address", "MAC addresses"),
            counted(self.names, "name of a host", "names of hosts"),
            counted(self.runs, "run of payload", "runs of payload"),
        )
    }

    /// Whether something was found, in words.
    pub fn verdict(&self) -> &'static str {
        match (self.leaks, self.findings.is_empty()) {
            (true, _) => "the masked capture contains data of the original",
            (false, true) => "nothing was found",
            (false, false) => "nothing was found beyond chance",
        }
    }
}

/// Looks for what is in the original in the masked capture.
///
/// # Errors
/// When one of them is no capture, or is damaged.
pub fn check(original: impl Read + Send, masked: impl Read + Send) -> Result<Report, CheckError> {
    let mut secrets = Secrets::default();
    let (mut packets, mut out) = (0, Vec::new());
    let (mut pairs, mut ports) = (Pairs::default(), Ports::default());
    read_all::<ReadError>(original, |item, _| {
        packets += u64::from(!matches!(item, Item::Other(_)));
        let Item::Frame(frame) = item else { return Ok(()) };
        match link_and_bytes(&frame) {
            Some((link, bytes)) => secrets.add(link, bytes, &mut out),
            None => secrets.add_runs(frame.bytes),
        }
        if let Some(packet) = Outline::of(&frame, &mut out) {
            pairs.add_original(&packet);
            ports.add(&packet);
        }
        Ok(())
    })
    .map_err(CheckError::Original)?;
    let mut findings = Findings::new(&secrets);
    let (mut hosts, mut fingerprints) = (Hosts::default(), Fingerprints::default());
    let mut count = 0;
    read_all::<ReadError>(masked, |item, _| {
        match item {
            Item::Frame(frame) => {
                count += 1;
                findings.look(Some(count), frame.bytes);
                if let Some(packet) = Outline::of(&frame, &mut out) {
                    pairs.add_masked(&packet);
                    let host = hosts.add(&packet);
                    fingerprints.add(&packet, host);
                }
            }
            Item::Lost => count += 1,
            Item::Other(bytes) => findings.look(None, bytes),
        }
        Ok(())
    })
    .map_err(CheckError::Masked)?;
    let findings = findings.finish();
    let anonymity = hosts.finish();
    Ok(Report {
        packets,
        masked: count,
        ipv4: secrets.ipv4.len(),
        ipv6: secrets.ipv6.len(),
        macs: secrets.macs.len(),
        names: secrets.names.len(),
        names_skipped: secrets.names.skipped,
        runs: secrets.runs.len(),
        runs_skipped: secrets.skipped,
        leaks: findings.iter().any(Finding::is_leak),
        findings,
        fingerprints: fingerprints.finish(&ports, anonymity.hosts),
        injection: pairs.finish(fingerprints.single_sizes()),
        anonymity,
    })
}
