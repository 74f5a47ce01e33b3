//! Parsers in processes of their own: bytes of strangers are read where nothing can be done with them.
//!
//! ```text
//!   daemon: Link<Names>    ── packets, ends ──►  nigh: Engine (nDPI, our parsers, signatures)
//!                          ◄─ labels ──────────
//!           Link<Contents> ── packets, answers ─► nigh: Manager (streams, files, chat)
//!                          ◄─ events, what is held
//! ```
//!
//! - [`names`], [`contents`]: the two parsers: items in, answers out. They know no process.
//! - [`frame`]: how items and answers are written.
//! - [`sandbox`]: what the process gives up before it reads the first packet.
//! - [`run`]: the process.
//! - [`link`]: the daemon's end: a deadline, a check of each answer, another start.
//!
//! Why: `docs/decisions/207-parsers-in-their-own-processes.md`.

pub mod contents;
pub mod frame;
pub mod link;
pub mod names;
pub mod run;
pub mod sandbox;

use classify::{
    flow::Side,
    packet::{Packet, Tcp},
};
use serde::{Serialize, de::DeserializeOwned};

/// A parser: takes items, gives answers.
pub trait Parser: Sized {
    /// What it is set up with.
    type Settings: Serialize + DeserializeOwned + Clone;
    /// What it takes.
    type Item<'a>: Serialize + serde::Deserialize<'a>;
    /// What it gives.
    type Answer: Serialize + DeserializeOwned;

    /// Its name on the command line.
    const NAME: &'static str;

    /// Sets it up.
    ///
    /// # Errors
    /// A sentence for the operator.
    fn new(settings: &Self::Settings) -> Result<Self, String>;

    /// Takes an item; what there is to say of it is added to `answers`.
    fn take(&mut self, item: Self::Item<'_>, answers: &mut Vec<Self::Answer>);

    /// How many parts an answer has that are kept one by one.
    fn parts(_: &Self::Answer) -> usize {
        1
    }

    /// Whether an answer is one that the parser gives if nobody has taken it over: texts are not too
    /// long, numbers fit each other.
    fn is_sound(answer: &Self::Answer) -> bool;
}

/// The SYNs of the client and the server with these sequence numbers, as far as they were seen: only packets with
/// payload are copied out, and a SYN shows where a side's bytes begin.
fn syns(sequences: [Option<u32>; 2]) -> impl Iterator<Item = Packet<'static>> {
    let sides = [Side::Client, Side::Server].into_iter().zip(sequences);
    sides.filter_map(|(from, sequence)| {
        let tcp = Tcp { sequence: sequence?, acknowledgement: 0, flags: Tcp::SYN };
        Some(Packet { at_ns: 0, from, tcp: Some(tcp), payload: &[], length: 0 })
    })
}

/// Longest text in an answer, beside those of torrents. The parsers' own bounds are far below: an answer that
/// strangers can bring about must never be refused.
const MAX_TEXT: usize = 1 << 20;

/// Whether a text may come from a parser.
fn fits(text: &str) -> bool {
    text.len() <= MAX_TEXT
}
