//! A [`Gateway`] that runs the daemon.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::{cell::RefCell, path::Path, time::Duration};
use testbed::{Finished, Gateway, Namespace, Nigh, wait_until};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_nigh");
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// The address of the internal host.
pub(crate) const INTERNAL: &str = Gateway::INTERNAL[0];
/// The address of the external host.
pub(crate) const EXTERNAL: &str = Gateway::EXTERNAL[0];

/// The three namespaces, and the daemon on the middle one.
pub(crate) struct Site {
    pub(crate) nigh: Nigh,
    pub(crate) internal: Namespace,
    pub(crate) gate: Namespace,
    pub(crate) external: Namespace,
    /// The output of the last internal client.
    client: RefCell<String>,
}

/// The configuration; `more` is the rest of `[gate]` and what follows it.
fn sections(more: &str) -> String {
    format!("[gate]\ninternal = [\"lan0\"]\n{more}\n")
}

impl Site {
    /// Makes the namespaces and starts the daemon with these sections.
    pub(crate) fn start(more: &str) -> Self {
        let Gateway { internal, router: gate, external } = Gateway::new(false, |end| end).unwrap();
        // What a daemon of a namespace left that had the same number before is none of ours.
        forget(&gate);
        let nigh = Nigh::start(&gate, Path::new(BINARY), "gate", &sections(more)).unwrap();
        let site = Self { nigh, internal, gate, external, client: RefCell::default() };
        site.wait("the gate's first status", |status| status["healthy"] == true);
        site
    }

    /// Starts the daemon again with these sections; it is killed before that.
    pub(crate) fn restart(&mut self, more: &str) {
        self.nigh.restart(&self.gate, Path::new(BINARY), "gate", &sections(more)).unwrap();
    }

    /// Has the running daemon read these sections.
    pub(crate) fn reload(&self, more: &str) {
        self.nigh.configure("gate", &sections(more)).unwrap();
        self.nigh.control(&json!({ "do": "reload" })).unwrap();
    }

    /// Runs `nigh gate ...` against the daemon.
    pub(crate) fn ask(&self, words: &[&str]) -> Finished {
        let socket = self.nigh.socket();
        let all = [&[BINARY, "gate"][..], words, &["--socket", socket.to_str().unwrap()]].concat();
        let done = self.gate.run(&all, LIMIT).unwrap();
        assert!(done.success(), "{words:?}: {}{}", done.stdout, done.stderr);
        done
    }

    /// What `nigh gate status` shows, as it is now.
    pub(crate) fn status(&self) -> Value {
        self.nigh.control(&json!({ "do": "status", "job": "gate" })).unwrap()
    }

    /// The gate's state, for a test that fails.
    pub(crate) fn state(&self) -> String {
        format!("{:#}\n{}\n{}", self.status(), self.nigh.wrote(), self.client.borrow())
    }

    /// The rows of `nigh gate flows` for an application.
    pub(crate) fn flows(&self, application: &str) -> Vec<Value> {
        let words = ["flows", "--application", application, "-n", "1000", "--json"];
        let rows: Value = serde_json::from_str(&self.ask(&words).stdout).unwrap();
        rows.as_array().cloned().unwrap_or_default()
    }

    /// Waits until the status is as it should be.
    pub(crate) fn wait(&self, what: &str, as_it_should: impl Fn(&Value) -> bool) -> Value {
        let mut status = Value::Null;
        let done = wait_until(what, LIMIT, || {
            status = self.status();
            as_it_should(&status)
        });
        assert!(done.is_ok(), "{what}: {status:#}\n{}", self.nigh.wrote());
        status
    }

    /// Runs an internal client to its end; whether it succeeded.
    pub(crate) fn client(&self, words: &[&str]) -> bool {
        let done = self.internal.run(words, LIMIT).unwrap();
        *self.client.borrow_mut() = format!("{words:?}: {}{}", done.status, done.stderr);
        done.success()
    }
}

impl Drop for Site {
    /// Stops the daemon as an operator does, and removes what that leaves in force.
    fn drop(&mut self) {
        let _ = self.nigh.process().signal(Signal::SIGTERM);
        let _ = wait_until("the daemon's end", LIMIT, || self.nigh.process().ended().is_some());
        forget(&self.gate);
    }
}

/// Removes what daemons of this namespace have left in the kernel.
fn forget(gate: &Namespace) {
    if let Ok(folder) = gate.enter(datapath::gate::home) {
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// A counter of a map in the status, 0 where it has none of that name.
pub(crate) fn count(map: &Value, name: &str) -> u64 {
    map[name].as_u64().unwrap_or_default()
}

/// Whether the received packets are the sum of the outcomes, at each counter.
pub(crate) fn exact(status: &Value) -> bool {
    let Some(counters) = status["packets"].as_object() else { return false };
    counters.values().all(|counter| {
        let outcomes = counter["outcomes"].as_object().into_iter().flatten();
        let sum: u64 = outcomes.filter_map(|(_, count)| count.as_u64()).sum();
        counter["received"].as_u64() == Some(sum)
    })
}
