//! The variants of the gateway: each is set up, measured and removed.

use crate::{
    Failure,
    own::{CopyOut, Daemon},
    peers::{self, Peer},
    processor,
    stage::{REFUSED, Stage},
};
use std::path::Path;

/// Variants of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The kernel's forwarding and nothing else.
    Forwarding,
    /// The gate's kernel part: first packets are copied out.
    CopyOut,
    /// The daemon: first packets are inspected.
    Classify,
    /// The same, and a rule about the names of files.
    Files,
    /// The daemon, which writes down connections and files.
    Audit,
    /// The daemon, which has clamd scan all files.
    Scan,
    /// Names, audit and scan.
    All,
    /// The daemon, which refuses BitTorrent and remembers whom.
    Refuse,
    /// The same, already in the driver.
    RefuseDriver,
    /// The daemon, which refuses BitTorrent and forgets at once.
    Deny,
    /// The daemon, which holds back what is undecided.
    Hold,
    /// The daemon, with one limit of so many Mbit/s in each direction for everything.
    Limit(u64),
    /// Every packet to a program with nDPI, whole.
    Nfqueue,
    /// The same, but connections that are decided pass by the queue.
    NfqueueMark,
    /// Every packet goes to the program, which drops those to the refused endpoint.
    NfqueueRefuse,
    /// Every packet to the program, which drops the flows that nDPI calls BitTorrent.
    NfqueueDeny,
    /// Suricata inline.
    Suricata,
}

/// A variant that runs.
pub(crate) enum Running<'a> {
    Kernel,
    CopyOut(CopyOut),
    Daemon(Daemon),
    Peer(Peer<'a>),
}

impl Running<'_> {
    /// Its program, if there is one beside the benchmark's own.
    pub(crate) fn pid(&mut self) -> Option<u32> {
        match self {
            Self::Kernel | Self::CopyOut(_) => None,
            Self::Daemon(daemon) => Some(daemon.pid()),
            Self::Peer(peer) => Some(peer.pid()),
        }
    }

    /// Seconds that its program has run.
    pub(crate) fn seconds(&mut self) -> Result<f64, Failure> {
        self.pid().map_or(Ok(0.0), processor::of_process)
    }

    /// Stops it and returns what it reports.
    pub(crate) fn end(self) -> Result<String, Failure> {
        match self {
            Self::Kernel => Ok(String::new()),
            Self::CopyOut(copy) => copy.end(),
            Self::Daemon(daemon) => daemon.end(),
            Self::Peer(peer) => peer.end(),
        }
    }
}

impl Variant {
    /// Those whose throughput is measured, in the table's order: the paper's seven configurations first.
    pub(crate) const ALL: [Self; 10] = [
        Self::Forwarding,
        Self::CopyOut,
        Self::Classify,
        Self::Files,
        Self::Audit,
        Self::Scan,
        Self::All,
        Self::Nfqueue,
        Self::NfqueueMark,
        Self::Suricata,
    ];

    /// Whether `GATE_VARIANTS` asks for it; all are wanted without.
    pub(crate) fn is_wanted(self) -> bool {
        std::env::var("GATE_VARIANTS")
            .map_or(true, |words| words.split(',').any(|word| word == self.word()))
    }

    /// Whether it is the gate.
    pub(crate) fn is_ours(self) -> bool {
        !self.is_peer() && self != Self::Forwarding
    }

    /// Whether it is a gateway of others.
    fn is_peer(self) -> bool {
        use Variant::{Nfqueue, NfqueueDeny, NfqueueMark, NfqueueRefuse, Suricata};
        matches!(self, Nfqueue | NfqueueMark | NfqueueRefuse | NfqueueDeny | Suricata)
    }

    /// Whether files go through a scanner, which decides how fast they are.
    pub(crate) fn scans(self) -> bool {
        matches!(self, Self::Scan | Self::All)
    }

    /// Its name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Forwarding => "forwarding alone",
            Self::CopyOut => "gate: copy out",
            Self::Classify => "gate: copy out, classify",
            Self::Files => "gate: + file names",
            Self::Audit => "gate: + audit",
            Self::Scan => "gate: + virus scan",
            Self::All => "gate: all of it",
            Self::Limit(_) => "gate, a limit",
            Self::Refuse => "gate, connection cache",
            Self::RefuseDriver => "gate, connection cache in the driver",
            Self::Deny => "gate, no connection cache",
            Self::Hold => "gate, holding",
            Self::Nfqueue => "NFQUEUE + nDPI",
            Self::NfqueueMark => "NFQUEUE + nDPI, decided ones marked",
            Self::NfqueueRefuse => "NFQUEUE, a list of its own",
            Self::NfqueueDeny => "NFQUEUE, nDPI each time",
            Self::Suricata => "Suricata inline",
        }
    }

    /// Its word in `GATE_VARIANTS`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Forwarding => "forwarding",
            Self::CopyOut => "copy-out",
            Self::Classify => "classify",
            Self::Files => "files",
            Self::Audit => "audit",
            Self::Scan => "scan",
            Self::All => "all",
            Self::Limit(_) => "limit",
            Self::Refuse => "refuse",
            Self::RefuseDriver => "refuse-driver",
            Self::Deny => "deny",
            Self::Hold => "hold",
            Self::Nfqueue => "nfqueue",
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
            Self::Nfqueue => peers::nfqueue(stage, &[], false)?,
            Self::NfqueueMark => peers::nfqueue(stage, &["--mark", "1"], true)?,
            Self::NfqueueRefuse => {
                peers::nfqueue(stage, &["--refuse", &REFUSED.to_string()], false)?
            }
            Self::NfqueueDeny => peers::nfqueue(stage, &["--deny", "BitTorrent"], false)?,
            Self::Suricata => peers::suricata(stage)?,
            _ => return Ok(Ok(Running::Daemon(Daemon::start(stage, self)?))),
        };
        Ok(peer.map(Running::Peer))
    }

    /// The content of the daemon's section, with files of its own below a folder and clamd at a socket.
    pub(crate) fn section(self, folder: &Path, clamd: Option<&Path>) -> String {
        let rule = |words: &str| format!("[[gate.rule]]\nname = \"p2p\"\n{words}\n");
        let count = rule("category = [\"peer-to-peer\"]\naction = \"count\"");
        let bittorrent = "application = [\"bittorrent\"]\naction = \"deny\"\ndeny = \"drop\"";
        let names = "[[gate.file]]\nname = \"programs\"\nnames = [\"*.exe\", \"*.scr\"]\n\
                     action = \"deny\"\n";
        let audit = format!("[gate.audit]\nfolder = \"{}\"\n", folder.display());
        let scan = clamd.map_or(String::new(), |clamd| {
            format!(
                "[[gate.file]]\nname = \"viruses\"\naction = \"scan\"\n[gate.scan]\n\
                 clamd = \"{}\"\n",
                clamd.display()
            )
        });
        match self {
            Self::Files => format!("{count}{names}"),
            Self::Audit => format!("{count}{audit}"),
            Self::Scan => format!("{count}{scan}"),
            Self::All => format!("{count}{names}{scan}{audit}"),
            Self::Refuse => rule(bittorrent),
            Self::RefuseDriver => format!("refuse_at = \"driver\"\n{}", rule(bittorrent)),
            Self::Deny => format!("refuse_for = \"0s\"\n{}", rule(bittorrent)),
            Self::Hold => format!("hold = true\n{}", rule("action = \"allow\"")),
            Self::Limit(rate) => format!(
                "[[gate.limit]]\nname = \"rate\"\nto_internal = \"{rate}mbit\"\n\
                 from_internal = \"{rate}mbit\"\n{}",
                rule("action = \"limit\"\nlimit = \"rate\"")
            ),
            _ => count,
        }
    }
}
