//! A client, a router and a node with the responder, in a row:
//!
//! ```text
//!   client eth0 .2 -- 172.17.0.0/30 -- .1 lan  router  eth0 .29 -- 172.16.0.28/30 -- .30 eth0 node
//! ```

use serde_json::{Value, json};
use std::path::Path;
pub(crate) use testbed::LIMIT;
use testbed::{End, Finished, Namespace, Nigh, Receiver, link};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_nigh");
pub(crate) const SERVICE4: &str = "50.50.50.50";
pub(crate) const SERVICE6: &str = "2001:db8:50::50";
pub(crate) const NO_LIMIT: &str = "[echo.limit]\nrate = 0\n";

/// The three namespaces, and the daemon.
pub(crate) struct Site {
    pub(crate) nigh: Nigh,
    pub(crate) client: Namespace,
    pub(crate) router: Namespace,
    pub(crate) node: Namespace,
    _receiver: Receiver,
}

/// The sections of the configuration; `more` is the rest of `[echo]` and what follows it.
pub(crate) fn sections(more: &str) -> String {
    format!(
        "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"{SERVICE4}\", \"{SERVICE6}\"]\n{more}\n"
    )
}

/// Only the namespaces.
pub(crate) fn row() -> (Namespace, Namespace, Namespace, Receiver) {
    let client = Namespace::new("client").unwrap();
    let router = Namespace::new("router").unwrap();
    let node = Namespace::new("node").unwrap();
    router.forward().unwrap();
    link(
        End::new(&client, "eth0").address("172.17.0.2/30").address("2001:db8:2::2/64"),
        End::new(&router, "lan").address("172.17.0.1/30").address("2001:db8:2::1/64"),
    )
    .unwrap();
    link(
        End::new(&router, "eth0").address("172.16.0.29/30").address("2001:db8:1::29/64"),
        End::new(&node, "eth0").address("172.16.0.30/30").address("2001:db8:1::30/64"),
    )
    .unwrap();
    for (namespace, gateways, to) in [
        (&client, ["172.17.0.1", "2001:db8:2::1"], ["default", "default"]),
        (&node, ["172.16.0.29", "2001:db8:1::29"], ["default", "default"]),
        (&router, ["172.16.0.30", "2001:db8:1::30"], ["50.0.0.0/8", "2001:db8:50::/48"]),
    ] {
        for (gateway, to) in gateways.into_iter().zip(to) {
            namespace.check(&["ip", "route", "add", to, "via", gateway]).unwrap();
        }
    }
    let receiver = Receiver::new(&router, "eth0").unwrap();
    (client, router, node, receiver)
}

impl Site {
    /// Starts the daemon with these sections, see [`sections`].
    pub(crate) fn start(more: &str) -> Self {
        let (client, router, node, receiver) = row();
        let nigh = Nigh::start(&node, Path::new(BINARY), "node-a", &sections(more)).unwrap();
        Self { nigh, client, router, node, _receiver: receiver }
    }

    /// Writes new sections and has them read.
    pub(crate) fn reload(&self, more: &str) {
        self.nigh.configure("node-a", &sections(more)).unwrap();
        self.nigh.control(&json!({"do": "reload"})).unwrap();
    }

    /// Runs a sub-command of nigh against the daemon.
    pub(crate) fn ask(&self, words: &[&str]) -> Finished {
        let socket = self.nigh.socket();
        let line = [&[BINARY][..], words, &["--socket", socket.to_str().unwrap()]].concat();
        self.node.run(&line, LIMIT).unwrap()
    }

    /// The value of `echo` in the status.
    pub(crate) fn status(&self) -> Value {
        self.nigh.control(&json!({"do": "status"})).unwrap()["echo"].clone()
    }

    /// As [`ledger_row`].
    pub(crate) fn row(&self, address: &str) -> Row {
        ledger_row(&self.nigh, address)
    }

    /// Pings from the client and returns how many of the requests were answered.
    pub(crate) fn ping(&self, words: &[&str]) -> Pinged {
        ping(&self.client, words)
    }
}

/// The ledger's row of an address, checked: received = answered + passed + drops.
pub(crate) fn ledger_row(nigh: &Nigh, address: &str) -> Row {
    let ledger = nigh.control(&json!({"do": "echo", "request": {"do": "ledger"}})).unwrap();
    let rows = ledger["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["address"] == address).unwrap();
    let row = Row {
        received: row["received"].as_u64().unwrap(),
        answered: row["answered"].as_u64().unwrap(),
        passed: row["passed"].as_u64().unwrap(),
        dropped: row["dropped"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(reason, count)| (reason.clone(), count.as_u64().unwrap()))
            .filter(|(_, count)| *count > 0)
            .collect(),
    };
    let drops: u64 = row.dropped.iter().map(|(_, count)| count).sum();
    assert_eq!(row.received, row.answered + row.passed + drops, "{row:?}");
    row
}

/// A row of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) received: u64,
    pub(crate) answered: u64,
    pub(crate) passed: u64,
    pub(crate) dropped: Vec<(String, u64)>,
}

impl Row {
    pub(crate) fn dropped(&self, reason: &str) -> u64 {
        self.dropped.iter().find(|(name, _)| name == reason).map_or(0, |(_, count)| *count)
    }
}

/// What ping counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pinged {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
}

/// Runs ping to its end.
pub(crate) fn ping(from: &Namespace, words: &[&str]) -> Pinged {
    let line = [&["ping", "-n", "-W", "1"][..], words].concat();
    let finished = from.run(&line, LIMIT).unwrap();
    // "20 packets transmitted, 20 received, 0% packet loss, time 395ms"
    let summary = finished.stdout.lines().find(|line| line.contains("packets transmitted"));
    let summary = summary.unwrap_or_else(|| panic!("{}{}", finished.stdout, finished.stderr));
    assert!(!finished.stdout.contains("DUP!"), "{}", finished.stdout);
    let number = |word: &str| {
        let part = summary.split(", ").find(|part| part.contains(word)).unwrap();
        part.split(' ').next().unwrap().parse().unwrap()
    };
    Pinged { sent: number("transmitted"), answered: number("received") }
}

/// All of so many.
pub(crate) fn all(count: u64) -> Pinged {
    Pinged { sent: count, answered: count }
}
