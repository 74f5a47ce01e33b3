//! What the gateway does with what it forwards: each way is set up, measured and taken away again.

use crate::{
    Failure,
    peers::{self, Peer},
    stage::Stage,
};

/// Ways of being a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The kernel's forwarding and nothing else.
    Forwarding,
    /// Every packet to a program with nDPI, whole.
    Nfqueue,
    /// The same with the first 2 KB of every packet.
    NfqueueShort,
    /// The same, but connections that are decided pass by the queue.
    NfqueueMark,
    /// Suricata inline.
    Suricata,
}

/// A way at work.
pub(crate) enum Running<'a> {
    Kernel,
    Peer(Peer<'a>),
}

impl Running<'_> {
    /// Seconds that its program has run, if there is one.
    pub(crate) fn seconds(&self) -> Result<f64, Failure> {
        match self {
            Self::Kernel => Ok(0.0),
            Self::Peer(peer) => peer.seconds(),
        }
    }

    /// Ends it; what it says at its end.
    pub(crate) fn end(self) -> Result<String, Failure> {
        match self {
            Self::Kernel => Ok(String::new()),
            Self::Peer(peer) => peer.end(),
        }
    }
}

impl Way {
    /// All of them, in the table's order.
    pub(crate) const ALL: [Self; 5] =
        [Self::Forwarding, Self::Nfqueue, Self::NfqueueShort, Self::NfqueueMark, Self::Suricata];

    /// Its name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forwarding => "forwarding alone",
            Self::Nfqueue => "NFQUEUE + nDPI",
            Self::NfqueueShort => "NFQUEUE + nDPI, 2 KB of a packet",
            Self::NfqueueMark => "NFQUEUE + nDPI, decided ones marked",
            Self::Suricata => "Suricata inline",
        }
    }

    /// Its word in `GATE_WAYS`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Forwarding => "forwarding",
            Self::Nfqueue => "nfqueue",
            Self::NfqueueShort => "nfqueue-short",
            Self::NfqueueMark => "nfqueue-mark",
            Self::Suricata => "suricata",
        }
    }

    /// Sets it up in the stage's gateway. `Err`: why it is skipped.
    pub(crate) fn start(self, stage: &Stage) -> Result<Result<Running<'_>, String>, Failure> {
        let peer = match self {
            Self::Forwarding => return Ok(Ok(Running::Kernel)),
            Self::Nfqueue => peers::nfqueue(stage, &[], false)?,
            Self::NfqueueShort => peers::nfqueue(stage, &["--copy", "2048"], false)?,
            Self::NfqueueMark => peers::nfqueue(stage, &["--mark", "1"], true)?,
            Self::Suricata => peers::suricata(stage)?,
        };
        Ok(peer.map(Running::Peer))
    }
}
