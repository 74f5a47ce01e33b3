//! What the gateway does with what it forwards: each way is set up, measured and taken away again.

use crate::{
    Failure,
    own::{CopyOut, Daemon},
    peers::{self, Peer},
    stage::{REFUSED, Stage},
};

/// Ways of being a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The kernel's forwarding and nothing else.
    Forwarding,
    /// The gate's kernel part: first packets are copied out.
    CopyOut,
    /// The daemon: first packets are looked at.
    Classify,
    /// The daemon, which refuses BitTorrent and remembers whom.
    Refuse,
    /// The daemon, which refuses BitTorrent and forgets at once.
    Deny,
    /// The daemon, which holds back what is undecided.
    Hold,
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
    CopyOut(CopyOut),
    Daemon(Daemon),
    Peer(Peer<'a>),
}

impl Running<'_> {
    /// Seconds that its program has run, if there is one.
    pub(crate) fn seconds(&mut self) -> Result<f64, Failure> {
        match self {
            Self::Kernel | Self::CopyOut(_) => Ok(0.0),
            Self::Daemon(daemon) => daemon.seconds(),
            Self::Peer(peer) => peer.seconds(),
        }
    }

    /// Ends it; what it says at its end.
    pub(crate) fn end(self) -> Result<String, Failure> {
        match self {
            Self::Kernel => Ok(String::new()),
            Self::CopyOut(copy) => copy.end(),
            Self::Daemon(daemon) => daemon.end(),
            Self::Peer(peer) => peer.end(),
        }
    }
}

impl Way {
    /// Those whose throughput is measured, in the table's order.
    pub(crate) const ALL: [Self; 7] = [
        Self::Forwarding,
        Self::CopyOut,
        Self::Classify,
        Self::Nfqueue,
        Self::NfqueueShort,
        Self::NfqueueMark,
        Self::Suricata,
    ];

    /// Whether `GATE_WAYS` asks for it; all are wanted without.
    pub(crate) fn is_wanted(self) -> bool {
        std::env::var("GATE_WAYS")
            .map_or(true, |words| words.split(',').any(|word| word == self.word()))
    }

    /// Whether it is the gate.
    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::CopyOut | Self::Classify | Self::Refuse | Self::Deny | Self::Hold)
    }

    /// Its name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forwarding => "forwarding alone",
            Self::CopyOut => "gate: copy out",
            Self::Classify => "gate: copy out, classify",
            Self::Refuse => "gate, connection cache",
            Self::Deny => "gate, no connection cache",
            Self::Hold => "gate, holding",
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
            Self::CopyOut => "copy-out",
            Self::Classify => "classify",
            Self::Refuse => "refuse",
            Self::Deny => "deny",
            Self::Hold => "hold",
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
            Self::CopyOut => return Ok(Ok(Running::CopyOut(CopyOut::start(stage)?))),
            Self::Classify | Self::Refuse | Self::Deny | Self::Hold => {
                return Ok(Ok(Running::Daemon(Daemon::start(stage, &self.section())?)));
            }
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

    /// What stands in the daemon's section.
    fn section(self) -> String {
        let rule = |words: &str| format!("[[gate.rule]]\nname = \"p2p\"\n{words}\n");
        let bittorrent = "application = [\"bittorrent\"]\naction = \"deny\"\ndeny = \"drop\"";
        match self {
            Self::Refuse => rule(bittorrent),
            Self::Deny => format!("refuse_for = \"0s\"\n{}", rule(bittorrent)),
            Self::Hold => format!("hold = true\n{}", rule("action = \"allow\"")),
            _ => rule("category = [\"peer-to-peer\"]\naction = \"count\""),
        }
    }
}
