//! The sub-commands of `nigh gate`.

mod classify;
pub mod names;
mod operation;
mod replay;
mod watch;

pub use classify::{ClassifyArgs, ClassifyError, classify};
pub use replay::{ReplayArgs, ReplayError, replay};
pub use watch::{WatchError, watch};

pub use operation::Operation;

use clap::Subcommand;

/// `nigh gate ...`
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// A request to the daemon over its control socket.
    #[command(flatten)]
    Operation(Operation),
    /// Watch the gate in a terminal: applications or hosts by rate, refusals, scans, limits
    #[command(after_help = "Example:\n  nigh gate watch")]
    Watch,
    /// Classify the flows of a capture; needs no daemon
    ///
    /// With -c the file's packets and signatures are used. With --json it prints JSON lines: one for each
    /// flow, and with --truth one for each application after them. With --truth it reports how well flows were
    /// classified: recall and precision by application, and the share of other flows that got its label.
    #[command(
        after_help = "Examples:\n  nigh gate classify evening.pcap\n  nigh gate classify evening.pcap --flows\n  nigh gate classify a.pcap b.pcap --json | jq -r .application\n  nigh gate classify testdata/gate/*.pcap --truth testdata/gate/TRUTH"
    )]
    Classify(ClassifyArgs),
    /// Send a capture's packets out of an interface, as they were recorded
    #[command(
        after_help = "Examples:\n  nigh gate replay evening.pcap --interface veth0\n  nigh gate replay evening.pcap --interface veth0 --speed max"
    )]
    Replay(ReplayArgs),
}
