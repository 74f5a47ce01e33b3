//! Two hosts with two wires between them, and a key for both:
//!
//! ```text
//!   left  10.1.1.1 ── p1, 40 Mbit/s, 2 ms ── 10.1.1.2  right
//!         10.1.2.1 ── p2, 40 Mbit/s, 2 ms ── 10.1.2.2
//! ```

use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use testbed::{Lab, Process, wait_until};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_nigh");
/// Long enough for a machine that does other things as well.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);
/// Where sessions are taken.
pub(crate) const LISTEN: [&str; 4] = ["--listen", "10.1.1.2:7000", "--listen", "10.1.2.2:7000"];
/// The paths there.
pub(crate) const PATHS: [&str; 4] =
    ["--path", "10.1.1.1>10.1.1.2:7000", "--path", "%p2>10.1.2.2:7000"];

pub(crate) struct Stage {
    pub(crate) lab: Lab,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let mut scene = String::from("[lab]\nseed = 7\n");
        for n in 1..=2 {
            scene += &format!(
                "[[wire]]\nbetween = [\
                 {{ name = \"left\", interface = \"p{n}\", address = \"10.1.{n}.1/24\" }}, \
                 {{ name = \"right\", interface = \"p{n}\", address = \"10.1.{n}.2/24\" }}]\n\
                 rate = \"40Mbit\"\ndelay = \"2ms\"\nqueue = \"200KB\"\n"
            );
        }
        let stage = Self { lab: Lab::start(Path::new(BINARY), &scene).unwrap() };
        stage.nigh("left", &["key", &stage.file("key")]);
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.lab.folder().join(name)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Runs `nigh psock WORDS` to a good end.
    pub(crate) fn nigh(&self, host: &str, words: &[&str]) -> String {
        self.lab.check(host, &[&[BINARY, "psock"], words].concat()).unwrap()
    }

    /// Starts `nigh psock WORDS`.
    pub(crate) fn spawn(&self, host: &str, words: &[&[&str]]) -> Process {
        self.lab.spawn(host, &[&[BINARY, "psock"][..], &words.concat()].concat()).unwrap()
    }

    /// Waits until somebody on a host listens at a port.
    pub(crate) fn listening(&self, host: &str, port: u16) {
        let end = format!(":{port} ");
        wait_until("a listener", LIMIT, || {
            self.lab.check(host, &["ss", "-tlnH"]).unwrap().contains(&end)
        })
        .unwrap();
    }

    /// Cuts the first path or puts it back: what is in flight on it is lost, and both ends see nothing of
    /// it but silence.
    pub(crate) fn first_path(&self, up: bool) {
        self.lab.ask(&["link", "left-right", "set", &format!("up={up}")]).unwrap();
    }

    /// What has been sent on the connections over the first path that work; none without any.
    pub(crate) fn sent_on_first_path(&self) -> Option<u64> {
        let words = ["ss", "-tniH", "state", "established", "dst", "10.1.1.2"];
        let text = self.lab.check("left", &words).unwrap();
        let sent = text.split_whitespace().filter_map(|word| word.strip_prefix("bytes_sent:"));
        (!text.trim().is_empty()).then(|| sent.filter_map(|n| n.parse::<u64>().ok()).sum())
    }
}

/// Bytes of no pattern, the same in every run.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let word = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(word).take(length).collect()
}
