//! Networks from files of measurements: traces, collections of routers and links, relations of ASes,
//! and topologies of other programs.
//!
//! ```text
//!   traces       traceroute, mtr, scamper, warts, Atlas  --.
//!   routers      ITDK nodes and links, aliases           ---\
//!   ASes         AS relationships, prefix2as             -----> Graph --> Network, ImportReport
//!   topologies   oracle's files, GraphML                 ---/
//! ```
//!
//! Each format has a reader that puts what it finds into one graph, so files of several kinds make one
//! network. A line that cannot be read is counted and shown, and the others are taken. What no file
//! says is assumed, and the report says what was assumed.

mod ases;
mod assemble;
mod atlas;
mod business;
pub mod command;
mod graph;
mod input;
mod json;
mod mtr;
mod oracle;
mod report;
mod routers;
mod scamper;
#[cfg(test)]
mod tests;
mod trace;
mod traceroute;
mod warts;
mod zoo;

pub use assemble::AssembleError;
pub use graph::TooMany;
pub use report::{Count, Example, FileReport, ImportReport};

use crate::{Network, SettingsChange};
use clap::ValueEnum;
use graph::Graph;
use input::Input;
use report::Context;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text of traceroute or of tracert
    Traceroute,
    /// Addresses of routers, one router a line; nodes of an Internet Topology Data Kit are the same
    Nodes,
    /// Links of an Internet Topology Data Kit
    Links,
    /// ASes of the nodes of an Internet Topology Data Kit
    NodeAses,
    /// AS relationships, serial 1 or 2
    AsRelations,
    /// Prefixes and the ASes in which they originate
    #[value(name = "prefix2as")]
    #[serde(rename = "prefix2as")]
    PrefixToAs,
    /// JSON of mtr
    Mtr,
    /// Text of mtr --report
    MtrReport,
    /// JSON of scamper, as sc_warts2json writes it
    Scamper,
    /// Warts of scamper
    Warts,
    /// Traceroutes of RIPE Atlas in JSON
    Atlas,
    /// The oracle's main file in the format oracle.conf, with a file for each router beside it
    OracleConf,
    /// The oracle's topology in TOML
    OracleToml,
    /// GraphML of the Internet Topology Zoo
    #[value(name = "graphml")]
    #[serde(rename = "graphml")]
    GraphMl,
}

impl Format {
    /// What it is called on the command line.
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Files that others refer to are read before them.
    pub fn order(self) -> u8 {
        match self {
            Self::Nodes => 0,
            Self::Links => 1,
            _ => 2,
        }
    }
}

/// What an import assumes of links.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImportOptions {
    /// Settings of links that files do not describe. If this has no delay it is 1 ms.
    pub link: SettingsChange,
}

/// Why an import failed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot open {}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is of no known kind.
    #[error("{} has an unknown format: give it with --format", file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
    },
    /// Nothing in a file could be taken.
    #[error("nothing in {} can be taken as {}{}", file.display(), format.name(), first(bad))]
    Nothing {
        /// The file.
        file: PathBuf,
        /// What it was read as.
        format: Format,
        /// What was wrong.
        bad: Vec<Count>,
    },
    /// There is too much in a file.
    #[error("{}: {error}", file.display())]
    TooMany {
        /// The file.
        file: PathBuf,
        /// What there is too much of.
        error: TooMany,
    },
    /// No network can be made of it.
    #[error("no network can be made of these files: {0}")]
    Assemble(#[from] AssembleError),
}

/// The first thing that was wrong, for a sentence.
fn first(bad: &[Count]) -> String {
    let Some(count) = bad.first() else { return String::new() };
    let example = count.examples.first().map(|example| format!(" ({example})"));
    format!(": {}{}", count.what, example.unwrap_or_default())
}

/// Why a file was given up.
#[derive(Debug)]
enum Failure {
    Io(io::Error),
    TooMany(TooMany),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<TooMany> for Failure {
    fn from(error: TooMany) -> Self {
        Self::TooMany(error)
    }
}

/// Takes files one by one, and makes a network of them.
#[derive(Debug, Default)]
pub struct Importer {
    graph: Graph,
    report: ImportReport,
}

impl Importer {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a file. Its format is recognised if none is given. `progress` gets how many bytes of it
    /// were read since the last call.
    ///
    /// # Errors
    ///
    /// It cannot be read, its format is not known, or nothing in it is right.
    pub fn file(
        &mut self,
        path: &Path,
        format: Option<Format>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ImportError> {
        let file =
            File::open(path).map_err(|error| ImportError::Read { file: path.to_owned(), error })?;
        let beside = path.parent().unwrap_or(Path::new(""));
        self.take(file, path, Some(beside), format, progress)
    }

    /// Takes what is read from anywhere; `name` is shown in the report. No other files are opened.
    ///
    /// # Errors
    ///
    /// As [`Importer::file`].
    pub fn read(
        &mut self,
        reader: impl Read,
        name: &Path,
        format: Option<Format>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ImportError> {
        self.take(reader, name, None, format, progress)
    }

    /// Takes a file; others that it names begin at `beside`.
    fn take(
        &mut self,
        reader: impl Read,
        name: &Path,
        beside: Option<&Path>,
        format: Option<Format>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ImportError> {
        let unread = |error| ImportError::Read { file: name.to_owned(), error };
        let input = Input::new(reader, progress).map_err(unread)?;
        let format = format.or_else(|| recognised(&input.head));
        let format = format.ok_or_else(|| ImportError::Unknown { file: name.to_owned() })?;
        let before = self.report.bad.clone();
        let mut context = Context::new(&mut self.graph, &mut self.report, name, format);
        let result = dispatch(format, input, beside, &mut context);
        match result {
            Ok(()) => {}
            Err(Failure::TooMany(error)) => {
                return Err(ImportError::TooMany { file: name.to_owned(), error });
            }
            Err(Failure::Io(error)) => {
                context.bad(0, "the file cannot be read to its end", &error.to_string());
            }
        }
        let file = context.done();
        if file.taken == 0 {
            let bad = self.report.bad.iter().filter(|count| !before.contains(count));
            let bad = bad.cloned().collect();
            return Err(ImportError::Nothing { file: name.to_owned(), format, bad });
        }
        Ok(())
    }

    /// The network, and the report on it.
    ///
    /// # Errors
    ///
    /// The network is too large.
    pub fn finish(
        mut self,
        options: &ImportOptions,
    ) -> Result<(Network, ImportReport), AssembleError> {
        let network = assemble::assemble(self.graph, options, &mut self.report)?;
        Ok((network, self.report))
    }
}

/// A file's name without its folder and without the suffix of its format.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').find(|part| !part.is_empty());
    stem.unwrap_or("source").to_owned()
}

/// Reads a file with the reader of its format.
fn dispatch(
    format: Format,
    input: Input<'_>,
    beside: Option<&Path>,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    let name = stem(context.path());
    match format {
        Format::Traceroute => traceroute::read(input.reader(), &name, context),
        Format::Nodes => routers::nodes(input.reader(), context),
        Format::Links => routers::links(input.reader(), context),
        Format::NodeAses => routers::ases(input.reader(), context),
        Format::AsRelations => ases::relations(input.reader(), context),
        Format::PrefixToAs => ases::origins(input.reader(), context),
        Format::Mtr => mtr::json(input.reader(), context),
        Format::MtrReport => mtr::report(input.reader(), context),
        Format::Scamper => scamper::read(input.reader(), &name, context),
        Format::Warts => warts::read(input.reader(), &name, context),
        Format::Atlas => atlas::read(input.reader(), context),
        Format::OracleConf => oracle::conf(&input.whole(oracle::SIZE)?, beside, context),
        Format::OracleToml => oracle::toml(&input.whole(oracle::SIZE)?, context),
        Format::GraphMl => {
            let text = String::from_utf8(input.whole(zoo::SIZE)?);
            zoo::read(&text.map_err(io::Error::other)?, &name, context)
        }
    }
}

/// What a file is, from its content.
///
/// # Errors
///
/// It cannot be read, or is of no known kind.
pub fn recognise(path: &Path) -> Result<Format, ImportError> {
    let file = path.to_owned();
    let input = File::open(path).and_then(|file| Input::new(file, |_| ()));
    match input {
        Ok(input) => recognised(&input.head).ok_or(ImportError::Unknown { file }),
        Err(error) => Err(ImportError::Read { file, error }),
    }
}

/// The format of a file that begins like that.
fn recognised(head: &[u8]) -> Option<Format> {
    type Is = fn(&str) -> bool;
    const LINES: [(Is, Format); 9] = [
        (traceroute::is_head, Format::Traceroute),
        (mtr::is_head, Format::MtrReport),
        (routers::is_node, Format::Nodes),
        (routers::is_link, Format::Links),
        (routers::is_as, Format::NodeAses),
        (ases::is_relation, Format::AsRelations),
        (ases::is_origin, Format::PrefixToAs),
        (oracle::is_conf, Format::OracleConf),
        (oracle::is_toml, Format::OracleToml),
    ];
    if head.starts_with(&warts::MAGIC) {
        return Some(Format::Warts);
    }
    let text = String::from_utf8_lossy(head);
    if text.contains("<graphml") {
        return Some(Format::GraphMl);
    }
    let start = text.trim_start();
    if start.starts_with('{') || (start.starts_with('[') && !start.starts_with("[[")) {
        let words = [
            (Format::Atlas, "\"prb_id\""),
            (Format::Atlas, "\"msm_id\""),
            (Format::Mtr, "\"hubs\""),
            (Format::Scamper, "\"type\""),
        ];
        return words.iter().find(|(_, word)| text.contains(word)).map(|&(format, _)| format);
    }
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.find_map(|line| LINES.iter().find(|(is, _)| is(line)).map(|&(_, format)| format))
}
