//! What the gateway does with what it forwards: each way is set up, measured and taken away again.

use crate::{
    Failure,
    peers::{self, Peer},
    stage::{REFUSED, Stage},
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
    /// Every packet to the program, which drops what goes to the place that is refused.
    NfqueueRefuse,
    /// Every packet to the program, which drops the flows that nDPI calls BitTorrent.
    NfqueueDeny,
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
    /// Those whose throughput is measured, in the table's order.
    pub(crate) const ALL: [Self; 5] =
        [Self::Forwarding, Self::Nfqueue, Self::NfqueueShort, Self::NfqueueMark, Self::Suricata];

    /// Its name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forwarding => "forwarding alone",
            Self::Nfqueue => "NFQUEUE + nDPI",
            Self::NfqueueShort => "NFQUEUE + nDPI, 2 KB of a packet",
            Self::NfqueueMark => "NFQUEUE + nDPI, decided ones marked",
            Self::NfqueueRefuse => "NFQUEUE, a list of its own",
            Self::NfqueueDeny => "NFQUEUE, nDPI each time",
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
            Self::NfqueueRefuse => "nfqueue-refuse",
            Self::NfqueueDeny => "nfqueue-deny",
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
            Self::NfqueueRefuse => {
                peers::nfqueue(stage, &["--refuse", &REFUSED.to_string()], false)?
            }
            Self::NfqueueDeny => peers::nfqueue(stage, &["--deny", "BitTorrent"], false)?,
            Self::Suricata => peers::suricata(stage)?,
        };
        Ok(peer.map(Running::Peer))
    }
}
