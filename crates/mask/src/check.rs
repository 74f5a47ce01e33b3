//! Whether anything of a capture is still in the masked one.
//!
//! Two readings, of which the second knows nothing of policies and programs:
//!
//! - the **secrets** of the original: all addresses of its headers, however deep, its MAC addresses, and
//!   all that is behind the last header as runs of eight bytes;
//! - the masked file, in which they are looked for at every byte of every packet, and of all else that the
//!   file has: as they are, reversed, shifted by one to seven bits, as hexadecimal digits and as text.
//!
//! Four bytes are short: among many addresses and many bytes some are found by chance. So for each address
//! of IPv4 a decoy is looked for, too, another one of its network that the original does not have. As often
//! as these are found, or as random bytes would give, chance finds the addresses; only more is a leak.

mod find;
mod secrets;
#[cfg(test)]
mod tests;
mod text;

pub use find::Finding;
use find::Findings;
use secrets::Secrets;

use crate::file::place;
use capture::{Item, ReadError, read, read_all};
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
    /// Runs of what is behind the headers.
    pub runs: usize,
    /// Runs that were not looked for, since there were too many.
    pub runs_left_out: u64,
    /// What was found of each, in each form.
    pub findings: Vec<Finding>,
    /// Whether more of anything was found than chance explains.
    pub leaks: bool,
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
        let Self { packets, masked, ipv4, ipv6, macs, runs, runs_left_out, .. } = self;
        writeln!(f, "{masked} packets, {packets} in the original")?;
        writeln!(
            f,
            "looked for {ipv4} addresses of IPv4, {ipv6} of IPv6, {macs} MAC addresses and {runs} runs of \
             payload"
        )?;
        if *runs_left_out > 0 {
            writeln!(
                f,
                "{runs_left_out} more runs of payload were not looked for: they are too many"
            )?;
        }
        for finding in &self.findings {
            writeln!(f, "  {} {finding}", if finding.is_leak() { "LEAK" } else { "    " })?;
        }
        f.write_str(match (self.leaks, self.findings.is_empty()) {
            (true, _) => "something of the original is in the masked capture\n",
            (false, true) => "nothing was found\n",
            (false, false) => "nothing was found but what chance explains\n",
        })
    }
}

/// Looks for what is in the original in the masked capture.
///
/// # Errors
/// When one of them is no capture, or is damaged.
pub fn check(original: impl Read + Send, masked: impl Read + Send) -> Result<Report, CheckError> {
    let mut secrets = Secrets::default();
    let (mut packets, mut out) = (0, Vec::new());
    read::<ReadError>(original, |frame, _| {
        packets += 1;
        match place(&frame) {
            Some((link, bytes)) => secrets.add(link, bytes, &mut out),
            None => secrets.add_runs(frame.bytes),
        }
        Ok(())
    })
    .map_err(CheckError::Original)?;
    let mut findings = Findings::new(&secrets);
    let mut count = 0;
    read_all::<ReadError>(masked, |item, _| {
        match item {
            Item::Frame(frame) => {
                count += 1;
                findings.look(Some(count), frame.bytes);
            }
            Item::Lost => count += 1,
            Item::Other(bytes) => findings.look(None, bytes),
        }
        Ok(())
    })
    .map_err(CheckError::Masked)?;
    let findings = findings.finish();
    Ok(Report {
        packets,
        masked: count,
        ipv4: secrets.ipv4.len(),
        ipv6: secrets.ipv6.len(),
        macs: secrets.macs.len(),
        runs: secrets.runs.len(),
        runs_left_out: secrets.left_out,
        leaks: findings.iter().any(Finding::is_leak),
        findings,
    })
}
