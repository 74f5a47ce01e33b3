//! Packets of an interface, masked in the kernel before anything of them gets here.
//!
//! ```text
//! interface -> engine in the kernel: sample, filter, mask -> ring -> output: files, a pipe, a TAP device
//! ```

mod engine;
pub mod filter;
pub mod options;
pub mod output;
#[cfg(test)]
mod tests;

use datapath::mask as kernel;

/// Why nothing is masked, or no more.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The policy names what only files can have masked.
    #[error(
        "the policy names {part}, which lies above the transport: the kernel does not look there, and what it has not masked must not leave it; take the line out, or capture by other means and mask the file with `nigh mask file`"
    )]
    Above {
        /// The first part that it names.
        part: &'static str,
    },
    /// The programs could not be loaded.
    #[error(transparent)]
    Load(#[from] kernel::LoadError),
    /// The key could not be set.
    #[error(transparent)]
    Key(#[from] kernel::KeyError),
}
