//! Packets of an interface, masked in the kernel before anything of them gets here; or in this process, where
//! the kernel has no cipher.
//!
//! ```text
//! interface -> engine in the kernel: sample, filter, mask -> ring         -> output: files, a pipe, a TAP device
//! interface -> kernel: sample, filter, copy               -> ring -> mask -> output
//! ```

mod ability;
mod choice;
mod clock;
mod engine;
pub mod filter;
mod masker;
pub mod options;
pub mod output;
mod periods;
mod run;
#[cfg(test)]
mod tests;

pub use ability::ability;
pub use choice::{Choice, Chosen};
pub use engine::{keys, settings};
pub use run::{Live, Summary};

use datapath::mask as kernel;
use std::io;

/// Why nothing is masked, or no more.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The policy names what only files can have masked.
    #[error(
        "the policy names {part} of the application layer, which is not masked in live traffic: remove the line, or capture by other means and mask the file with `nigh mask file`"
    )]
    Application {
        /// The first part that it names.
        part: &'static str,
    },
    /// The kernel is to mask, and cannot.
    #[error(
        "this kernel {0}, so it cannot mask packets: without `--engine kernel`, this process masks them, and gets their original bytes"
    )]
    Lacks(String),
    /// The programs could not be loaded.
    #[error(transparent)]
    Load(#[from] kernel::LoadError),
    /// There is no such interface.
    #[error(
        "there is no interface {0:?} in this network namespace: `ip link` lists those that there are"
    )]
    NoInterface(String),
    /// What is masked would come in again.
    #[error("{0} is the interface whose packets are masked: give the TAP device another name")]
    Round(String),
    /// It was deleted.
    #[error("the interface is gone")]
    Gone,
    /// The mask cannot be put on the interface.
    #[error(transparent)]
    Attach(#[from] kernel::AttachError),
    /// The filter is none.
    #[error(transparent)]
    Filter(#[from] filter::FilterError),
    /// The key could not be set.
    #[error(transparent)]
    Key(#[from] kernel::KeyError),
    /// Packets have nowhere to go.
    #[error(transparent)]
    Output(#[from] output::OutputError),
    /// Signals, clocks, the ring or capabilities.
    #[error("cannot wait for packets: {0}")]
    Io(#[from] io::Error),
}
