//! The sub-commands of `nigh gate`.

mod classify;
mod detach;
pub mod names;
mod operation;
mod replay;
mod watch;

pub use classify::{ClassifyArgs, ClassifyError, classify};
pub use detach::{Detached, detach};
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
    /// Take off the gate that a stopped daemon left in force: everything passes; needs no daemon
    ///
    /// A stop leaves the gate on its interfaces, so that a restart interrupts no flow: decided flows keep their
    /// verdicts and limits, new ones follow on_failure. This ends it, in the network namespace of the caller. It
    /// needs CAP_NET_ADMIN and the right to write to the folder of the maps, which root has.
    #[command(after_help = "Example:\n  systemctl stop nigh && nigh gate detach")]
    Detach,
    /// Send a capture's packets out of an interface, as they were recorded
    #[command(
        after_help = "Examples:\n  nigh gate replay evening.pcap --interface veth0\n  nigh gate replay evening.pcap --interface veth0 --speed max"
    )]
    Replay(ReplayArgs),
}
