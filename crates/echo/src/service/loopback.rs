//! Adds the service addresses to `lo` while running, and removes exactly those again.
//!
//! Before an address is added it is recorded in a file of the state directory, so that the next start
//! recognizes its own addresses on `lo`: those that are still configured are taken over, the rest removed.
//! The record is valid only for the boot and the network namespace in which it was written, as the addresses
//! do not outlive these.
//!
//! A stop leaves the addresses to the kernel for [`LINGER`], which answers pings until the next start takes
//! them over: a restart loses none.

use super::kernel::{Kernel, KernelError};
use datapath::clock::monotonic_ns;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fs, io,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

/// The record's file in the state directory.
const FILE: &str = "echo-addresses.json";

/// How long the addresses stay after a stop: long enough for an upgrade of the package.
const LINGER: Duration = Duration::from_secs(30);

/// The kernel may remove an address somewhat later than it was told.
const LATE_NS: u64 = 5_000_000_000;

/// The addresses on `lo` could not be set.
#[derive(Debug, thiserror::Error)]
pub enum LoopbackError {
    /// The kernel refused.
    #[error("{0}; the capability NET_ADMIN is needed, or echo.assign = false")]
    Kernel(#[from] KernelError),
    /// There is no interface `lo`.
    #[error("there is no interface lo; make one, or set echo.assign = false")]
    NoLoopback,
    /// The record cannot be written.
    #[error("{path}: {error}; give a state directory that can be written (node.state)")]
    Note {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Note {
    /// The boot and the network namespace in which the addresses were added.
    boot: String,
    added: BTreeSet<IpAddr>,
    /// After a stop, until they are taken over: when the kernel removes them, in nanoseconds of CLOCK_MONOTONIC.
    #[serde(default)]
    until_ns: Option<u64>,
}

/// The addresses that this service has put on `lo`.
#[derive(Debug)]
pub(crate) struct Loopback {
    kernel: Kernel,
    path: PathBuf,
    note: Note,
}

impl Loopback {
    /// Reads what an earlier daemon that crashed has left behind.
    pub(crate) fn open(kernel: Kernel, state: &Path) -> Self {
        let path = state.join(FILE);
        let boot = boot_and_namespace();
        let note = fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .filter(|note: &Note| {
                note.boot == boot && note.until_ns.is_none_or(|end| end.saturating_add(LATE_NS) > monotonic_ns())
            })
            .unwrap_or_else(|| Note { boot, ..Note::default() });
        Self { kernel, path, note }
    }

    /// Makes `lo` have the wanted addresses, and no others that were added here.
    pub(crate) async fn set(&mut self, wanted: &[IpAddr]) -> Result<(), LoopbackError> {
        if wanted.is_empty() && self.note.added.is_empty() {
            return Ok(());
        }
        let (lo, present) = self.present().await?;
        let missing = wanted.iter().filter(|ip| !present.contains(ip));
        let missing: Vec<IpAddr> = missing.copied().collect();
        let unwanted = self.note.added.iter().filter(|ip| !wanted.contains(ip));
        let unwanted: Vec<IpAddr> = unwanted.copied().collect();
        let left =
            self.note.until_ns.take().map_or_else(BTreeSet::new, |_| self.note.added.clone());
        self.note.added.extend(&missing);
        if !left.is_empty() || !missing.is_empty() {
            self.write()?;
        }
        for ip in left.into_iter().filter(|ip| wanted.contains(ip)) {
            self.kernel.keep_address(lo, ip, None).await?;
        }
        for ip in missing {
            if self.kernel.add_address(lo, ip).await? {
                tracing::info!(%ip, "address added to lo");
            }
        }
        for ip in unwanted {
            self.kernel.remove_address(lo, ip).await?;
            self.note.added.remove(&ip);
            tracing::info!(%ip, "address removed from lo");
            self.write()?;
        }
        Ok(())
    }

    /// Leaves the addresses to the kernel, which removes them after [`LINGER`] unless a start takes them over.
    pub(crate) async fn leave(&mut self) -> Result<(), LoopbackError> {
        if self.note.added.is_empty() {
            return Ok(());
        }
        let (lo, present) = self.present().await?;
        self.note.until_ns = Some(monotonic_ns() + LINGER.as_nanos() as u64);
        self.write()?;
        for ip in self.note.added.iter().filter(|ip| present.contains(ip)) {
            self.kernel.keep_address(lo, *ip, Some(LINGER.as_secs() as u32)).await?;
        }
        tracing::info!("the kernel removes the addresses from lo in {} s", LINGER.as_secs());
        Ok(())
    }

    /// The index of `lo`, and the addresses that it has.
    async fn present(&self) -> Result<(u32, Vec<IpAddr>), LoopbackError> {
        let lo = self.kernel.link("lo").await?.ok_or(LoopbackError::NoLoopback)?.index;
        Ok((lo, self.kernel.addresses(lo).await?))
    }

    fn write(&self) -> Result<(), LoopbackError> {
        let failed = |error| LoopbackError::Note { path: self.path.clone(), error };
        if self.note.added.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        let text = serde_json::to_vec(&self.note).map_err(|error| failed(error.into()))?;
        config::file::write_private(&self.path, &text).map_err(failed)
    }
}

/// Identifies the boot and the network namespace.
fn boot_and_namespace() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}
