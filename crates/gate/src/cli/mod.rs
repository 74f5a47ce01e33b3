//! The sub-commands of `nigh gate`.

mod operation;

pub use operation::{Operation, RenderError};

use clap::Subcommand;

/// `nigh gate ...`
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Something is asked of the daemon over its control socket.
    #[command(flatten)]
    Operation(Operation),
}
