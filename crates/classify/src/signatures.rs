//! Signatures of the operator's own: `[[gate.signature]]`, patterns over the first bytes of each side.
//!
//! ```toml
//! [[gate.signature]]
//! name = "old-chat"              # becomes the application's name
//! category = "chat"
//! transport = "tcp"              # both when not given
//! side = "client"                # either when not given
//! ports = [6667, 7000]           # of the server; any when none is given
//! pattern = '^NICK [^\r\n]+\r?\n'
//! within = 512                   # bytes of that side that are inspected
//! ```
//!
//! Patterns are regular expressions over bytes (`\xff` is one byte, `.` all but a line's end). All that may
//! fit a side are looked for at once, in one pass (regex-automata); none can take more than linear time.
//! With TCP they are looked for in the first bytes put in order, with UDP in each datagram.

use crate::{
    flow::{Flow, Side, Transport},
    label::{Category, Certainty, Engine, Label},
};
use config::Report;
use regex_automata::{
    Input, MatchKind, PatternSet,
    meta::{BuildError, Config, Regex},
    util::syntax,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most bytes of a side that a signature may inspect.
pub const MAX_WITHIN: u16 = 4096;
/// Most bytes that are inspected when `within` is not given.
const WITHIN: u16 = 1024;
/// Longest pattern.
const MAX_PATTERN: usize = 4096;
/// Most signatures.
const MAX_SIGNATURES: usize = 1000;
/// Memory that the automaton of one pattern, and of all that are looked for together, may take.
const AUTOMATON: (usize, usize) = (1 << 20, 64 << 20);
/// Longest name.
const MAX_NAME: usize = 64;

/// A signature: gives an application's name to flows by a pattern over the first bytes of one side.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignatureConfig {
    /// The application's name, as rules and status use it.
    pub name: String,
    /// The application's category.
    #[serde(default = "other")]
    pub category: Category,
    /// The transport protocol; both when not given.
    pub transport: Option<Transport>,
    /// The side whose bytes are inspected; either when not given.
    pub side: Option<Side>,
    /// Ports of the server; any when none is given.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// Regular expression over bytes, in the syntax of the Rust crate regex without look-around.
    pub pattern: String,
    /// Bytes of that side that are inspected, 1 to 4096.
    #[serde(default = "within")]
    #[schemars(range(min = 1, max = MAX_WITHIN))]
    pub within: u16,
}

const fn other() -> Category {
    Category::Other
}

const fn within() -> u16 {
    WITHIN
}

/// Reports everything that is wrong with signatures; keys as `signature[2].pattern`.
pub fn check(list: &[SignatureConfig], report: &mut Report<'_>) {
    if list.len() > MAX_SIGNATURES {
        report.add("signature", format!("more than {MAX_SIGNATURES} signatures"));
        return;
    }
    let mut good = true;
    for (at, one) in list.iter().enumerate() {
        let mut problems = Vec::new();
        one.check(&mut Report::new(&mut problems, ""));
        good &= problems.is_empty();
        report.take(&format!("signature[{at}]"), problems);
    }
    if good && let Err(error) = Signatures::compile(list) {
        report.add("signature", error.to_string());
    }
}

/// Signatures that cannot be looked for together.
#[derive(Debug, thiserror::Error)]
#[error(
    "the patterns of all signatures together need too much memory: remove or shorten some ({0})"
)]
pub struct CompileError(Box<BuildError>);

/// Compiled signatures.
#[derive(Default)]
pub struct Signatures {
    list: Vec<SignatureConfig>,
    groups: Vec<Group>,
}

/// The signatures that inspect the same bytes.
struct Group {
    transport: Transport,
    side: Side,
    within: usize,
    regex: Regex,
    /// By pattern: which of all signatures it is.
    which: Vec<usize>,
}

impl fmt::Debug for Signatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signatures({})", self.list.len())
    }
}

fn builder(limit: usize) -> regex_automata::meta::Builder {
    let mut builder = Regex::builder();
    builder.syntax(syntax::Config::new().unicode(false).utf8(false)).configure(
        Config::new()
            .match_kind(MatchKind::All)
            .utf8_empty(false)
            .nfa_size_limit(Some(limit))
            .onepass_size_limit(Some(limit)),
    );
    builder
}

impl SignatureConfig {
    fn check(&self, report: &mut Report<'_>) {
        let name = !self.name.is_empty()
            && self.name.len() <= MAX_NAME
            && self
                .name
                .chars()
                .all(|c| !c.is_uppercase() && (c.is_alphanumeric() || "-_.".contains(c)));
        if !name {
            let text = format!("1 to {MAX_NAME} letters in lower case, digits, `-`, `_`, `.`");
            report.add("name", text);
        }
        if self.within == 0 || self.within > MAX_WITHIN {
            let text = format!("{} is not a number of bytes from 1 to {MAX_WITHIN}", self.within);
            report.add("within", text);
        }
        if self.pattern.is_empty() || self.pattern.len() > MAX_PATTERN {
            report.add("pattern", format!("a pattern has 1 to {MAX_PATTERN} bytes"));
            return;
        }
        match builder(AUTOMATON.0).build(&self.pattern) {
            Err(error) => report.add("pattern", reason(&error)),
            Ok(regex) if regex.is_match("") => {
                report.add("pattern", "it matches empty input too: every flow would match");
            }
            Ok(_) => {}
        }
    }

    fn fits(&self, flow: &Flow) -> bool {
        self.ports.is_empty() || self.ports.contains(&flow.server.port())
    }
}

/// What is wrong with one pattern, in a line.
fn reason(error: &BuildError) -> String {
    if let Some(limit) = error.size_limit() {
        return format!(
            "this pattern needs more than {limit} bytes of memory: shorten repetitions"
        );
    }
    // The parser draws the pattern with a mark below it; the last line says what is wrong.
    let text = error.syntax_error().map_or_else(|| error.to_string(), ToString::to_string);
    let last = text.lines().next_back().unwrap_or_default();
    format!("no regular expression: {}", last.trim_start_matches("error: "))
}

impl Signatures {
    /// Compiles signatures in their order, which is also the order in which they are preferred.
    ///
    /// # Errors
    /// When they need too much memory together, or one was not checked.
    pub fn compile(list: &[SignatureConfig]) -> Result<Self, CompileError> {
        let mut groups: Vec<(Transport, Side, u16, Vec<usize>)> = Vec::new();
        for (at, one) in list.iter().enumerate() {
            let transports =
                one.transport.map_or(vec![Transport::Tcp, Transport::Udp], |t| vec![t]);
            let sides = one.side.map_or(vec![Side::Client, Side::Server], |side| vec![side]);
            for &transport in &transports {
                for &side in &sides {
                    let key = (transport, side, one.within);
                    let group = groups.iter_mut().find(|(t, s, w, _)| (*t, *s, *w) == key);
                    match group {
                        Some((.., which)) => which.push(at),
                        None => groups.push((transport, side, one.within, vec![at])),
                    }
                }
            }
        }
        let groups = groups.into_iter().map(|(transport, side, within, which)| {
            let patterns: Vec<&str> = which
                .iter()
                .filter_map(|&at| list.get(at))
                .map(|one| one.pattern.as_str())
                .collect();
            let regex = builder(AUTOMATON.1).build_many(&patterns);
            let regex = regex.map_err(|error| CompileError(Box::new(error)))?;
            Ok(Group { transport, side, within: within.into(), regex, which })
        });
        Ok(Self { list: list.to_vec(), groups: groups.collect::<Result<_, _>>()? })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The first signature that matches the bytes of a side of a flow.
    pub fn find(&self, flow: &Flow, side: Side, bytes: &[u8]) -> Option<Label> {
        let mut best: Option<usize> = None;
        for group in &self.groups {
            if group.transport != flow.transport || group.side != side {
                continue;
            }
            let bytes = bytes.get(..group.within).unwrap_or(bytes);
            let mut found = PatternSet::new(group.regex.pattern_len());
            group.regex.which_overlapping_matches(&Input::new(bytes), &mut found);
            let found = found.iter().filter_map(|pattern| group.which.get(pattern.as_usize()));
            let fits = |at: &&usize| self.list.get(**at).is_some_and(|one| one.fits(flow));
            best = best.into_iter().chain(found.filter(fits).copied()).min();
        }
        let one = self.list.get(best?)?;
        Some(Label {
            application: one.name.clone().into(),
            detail: None,
            category: one.category,
            certainty: Certainty::Certain,
            engine: Engine::Signature,
            reason: format!("signature {}", one.name).into(),
        })
    }
}

#[cfg(test)]
mod tests;
