//! Scenes that are measured: two systems, `left` and `right`, with a wire for each path between them.

use crate::{Failure, NIGH, child::Transport};
use psock::PresharedKey;
use std::{fmt::Write as _, path::Path, time::Duration};
use testbed::Lab;

/// What a path does to packets, in the words of a scene.
pub(crate) struct Wire {
    /// Such as `155Mbit`; `None`: as fast as this machine.
    pub(crate) rate: Option<&'static str>,
    /// One-way delay.
    pub(crate) delay: &'static str,
    /// Before the transmitter of each direction; none where there is no rate.
    pub(crate) queue: Option<&'static str>,
    /// Of each direction.
    pub(crate) loss: Option<&'static str>,
}

/// A path with a rate and a queue of one product of its rate and its round trip of 10 ms.
const fn path(rate: &'static str, queue: &'static str) -> Wire {
    Wire { rate: Some(rate), delay: "5ms", queue: Some(queue), loss: None }
}

/// The two paths of *Psock Parallel Socket Library* (CESNET, 2005) of different rates.
pub(crate) const UNEQUAL: [Wire; 2] = [path("155Mbit", "194KB"), path("620Mbit", "775KB")];
/// The two equal paths of *Psock Parallel Socket Library*, on one of which there is foreign
/// traffic for a while.
pub(crate) const EQUAL: [Wire; 2] = [path("310Mbit", "388KB"), path("310Mbit", "388KB")];
/// A fast path and a slow one on which 300 ms of packets can wait.
pub(crate) const SWOLLEN: [Wire; 2] = [path("620Mbit", "775KB"), path("20Mbit", "750KB")];
/// Two equal paths on which one packet of a thousand is lost in each direction.
pub(crate) const LOSSY: [Wire; 2] = [
    Wire { loss: Some("0.1%"), ..path("310Mbit", "388KB") },
    Wire { loss: Some("0.1%"), ..path("310Mbit", "388KB") },
];
/// Four paths with as much room as this machine has.
pub(crate) const FOUR: [Wire; 4] =
    [const { Wire { rate: None, delay: "2ms", queue: None, loss: None } }; 4];

/// The congestion control of all, unless set otherwise.
pub(crate) const CONGESTION: &str = "cubic";

/// A running scene.
pub(crate) struct Stage {
    pub(crate) lab: Lab,
    pub(crate) paths: usize,
}

impl Stage {
    /// Runs a scene. Both systems have Linux' own limits of buffers, whatever the host has.
    pub(crate) fn start(wires: &[Wire]) -> Result<Self, Failure> {
        let mut scene = String::from("[lab]\nseed = 7\n");
        for (number, wire) in wires.iter().enumerate() {
            let n = number + 1;
            write!(
                scene,
                "[[wire]]\nbetween = [\
                 {{ name = \"left\", interface = \"p{n}\", address = \"10.1.{n}.1/24\" }}, \
                 {{ name = \"right\", interface = \"p{n}\", address = \"10.1.{n}.2/24\" }}]\n\
                 delay = \"{}\"\n",
                wire.delay
            )?;
            for (key, value) in [("rate", wire.rate), ("queue", wire.queue), ("loss", wire.loss)] {
                if let Some(value) = value {
                    writeln!(scene, "{key} = \"{value}\"")?;
                }
            }
        }
        let stage = Self { lab: Lab::start(Path::new(NIGH), &scene)?, paths: wires.len() };
        for side in ["left", "right"] {
            stage.lab.check(side, &["sh", "-c", SETTINGS])?;
        }
        // MPTCP over all of them: what connects learns the other addresses from the other end.
        stage.lab.check(
            "left",
            &["ip", "mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8"],
        )?;
        stage.lab.check("right", &["ip", "mptcp", "limits", "set", "subflow", "8"])?;
        for n in 2..=wires.len() {
            let (address, device) = (format!("10.1.{n}.2"), format!("p{n}"));
            let words = ["ip", "mptcp", "endpoint", "add", &address, "dev", &device, "signal"];
            stage.lab.check("right", &words)?;
        }
        Ok(stage)
    }

    /// The options of an encrypted session with this driver, and more of them.
    pub(crate) fn psock(&self, driver: &str, more: &[(&str, &str)]) -> Result<Transport, Failure> {
        let key = self.lab.folder().join("key");
        if !key.exists() {
            PresharedKey::generate()?.write(&key)?;
        }
        let key = key.to_str().ok_or("the key's path is not text")?;
        let usual = [("driver", driver), ("key", key), ("congestion", CONGESTION)];
        // What is set later counts.
        let options = [&usual, more].concat();
        let owned = options.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned()));
        Ok(Transport::Psock(owned.collect()))
    }

    /// Cuts a path or puts it back, numbers from 1: what is in flight on it is lost, and both ends
    /// see nothing of it but silence.
    pub(crate) fn set(&self, number: usize, up: bool) -> Result<(), Failure> {
        let name = match number {
            1 => "left-right".to_owned(),
            n => format!("left-right#{n}"),
        };
        self.lab.ask(&["link", &name, "set", &format!("up={up}")])?;
        Ok(())
    }
}

/// A time for a run, with room for a machine that does other things as well.
pub(crate) fn limit(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds * 3.0 + 30.0)
}

const SETTINGS: &str = "cd /proc/sys/net/ipv4 && echo 4096 131072 6291456 > tcp_rmem \
    && echo 4096 16384 4194304 > tcp_wmem && echo 1 > tcp_no_metrics_save";
