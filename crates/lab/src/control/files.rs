//! `nigh lab gen` and `nigh lab show`: files of networks.

use crate::{
    LinkId, LinkSettings, NodeId,
    generate::{Generate, GenerateError},
    network::{Network, OpenError, Owner},
};
use clap::Args;
use job::command::Exit;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
    time::Instant,
};
use terminal::progress::{ProgressBar, styled};

/// So many kinds of links are shown.
const KINDS: usize = 10;

/// Arguments of `nigh lab gen`.
#[derive(Clone, Debug, Args)]
pub struct GenArgs {
    /// The file to write; one that is there is replaced when the new one is complete
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What to make.
    #[command(flatten)]
    pub generate: Generate,
    /// Print as JSON what was made
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `nigh lab show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// The network's file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print as JSON what is in it
    #[arg(long)]
    pub json: bool,
}

/// A network's file cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The network cannot be made.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The file cannot be read, or is none.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl FileError {
    /// How the command ends.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Generate(_) => Exit::Usage,
            _ => Exit::Failed,
        }
    }
}

/// What is in a network's file.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Summary {
    file: PathBuf,
    bytes: u64,
    nodes: u32,
    links: u32,
    bytes_per_node: f64,
    /// Of links, by weight and settings.
    kinds: usize,
    prefixes: u64,
    addresses: u64,
    entries: u64,
    most_links: usize,
    most_links_at: Option<String>,
    /// How long it took to make the network, where it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_in_seconds: Option<f64>,
}

/// Makes an internet and writes it.
///
/// # Errors
/// See [`FileError`].
pub fn generate(args: &GenArgs) -> Result<String, FileError> {
    let started = Instant::now();
    let bar = styled(ProgressBar::no_length(), "{msg:24} {wide_bar} {percent:>3} %");
    let network = args.generate.make(&mut |progress| {
        bar.set_message(progress.step);
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
    let network = network?;
    let made_in_seconds = started.elapsed().as_secs_f64();
    let write = |source| FileError::Write { path: args.file.clone(), source };
    network.save(&args.file).map_err(write)?;
    let kinds = kinds_in_use(&network).len();
    Ok(show(&summary(&args.file, &network, kinds, Some(made_in_seconds)), args.json))
}

/// Says what is in a file.
///
/// # Errors
/// See [`FileError`].
pub fn describe(args: &ShowArgs) -> Result<String, FileError> {
    let network = Network::open(&args.file)?;
    let kinds = kinds_in_use(&network);
    let mut text = show(&summary(&args.file, &network, kinds.len(), None), args.json);
    if !args.json {
        for (weight, settings) in kinds.iter().take(KINDS) {
            let _ = writeln!(text, "  links of weight {weight}: {settings}");
        }
        if let Some(more) = kinds.len().checked_sub(KINDS).filter(|more| *more > 0) {
            let _ = writeln!(text, "  and {more} more kinds of links");
        }
    }
    Ok(text)
}

/// The weights and settings that links have, each pair once.
fn kinds_in_use(network: &Network) -> Vec<(u32, LinkSettings)> {
    let mut in_use = vec![false; network.kinds().len()];
    for link in 0..network.links() {
        in_use[usize::from(network.kind_of(LinkId(link)).0)] = true;
    }
    let mut seen = FxHashSet::default();
    let kinds = network.kinds().iter().zip(in_use).filter(|(_, in_use)| *in_use);
    kinds.map(|(kind, _)| (kind.weight, kind.settings)).filter(|kind| seen.insert(*kind)).collect()
}

fn summary(file: &Path, network: &Network, kinds: usize, made_in_seconds: Option<f64>) -> Summary {
    let degree = |node: &NodeId| network.links_of(*node).len();
    let busiest = (0..network.nodes()).map(NodeId).max_by_key(degree);
    let (mut prefixes, mut addresses) = (0, 0);
    for (_, owner) in network.prefixes() {
        match owner {
            Owner::Prefix(..) => prefixes += 1,
            Owner::Node(_) => addresses += 1,
        }
    }
    Summary {
        file: file.to_owned(),
        bytes: network.bytes(),
        nodes: network.nodes(),
        links: network.links(),
        bytes_per_node: network.bytes() as f64 / f64::from(network.nodes().max(1)),
        kinds,
        prefixes,
        addresses,
        entries: network.entries(),
        most_links: busiest.as_ref().map_or(0, degree),
        most_links_at: busiest.map(|node| network.name(node).into_owned()),
        made_in_seconds,
    }
}

fn show(summary: &Summary, json: bool) -> String {
    if json {
        return format!("{:#}\n", serde_json::json!(summary));
    }
    let mut text = format!(
        "{}: {} nodes, {} directed links of {} kinds, {} prefixes, {} explicit addresses, {} forwarding entries; {} bytes, {:.1} a node",
        summary.file.display(),
        summary.nodes,
        summary.links,
        summary.kinds,
        summary.prefixes,
        summary.addresses,
        summary.entries,
        summary.bytes,
        summary.bytes_per_node,
    );
    if let Some(name) = &summary.most_links_at {
        let _ = write!(text, "; most links: {} at {name}", summary.most_links);
    }
    if let Some(seconds) = summary.made_in_seconds {
        let _ = write!(text, "; made in {seconds:.1} s");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("internet.nigh");
        let generate = Generate { nodes: 200, ..Generate::default() };
        let made = generate_json(&GenArgs { file: file.clone(), generate, json: true });
        let args = ShowArgs { file: file.clone(), json: true };
        let read: serde_json::Value =
            serde_json::from_str(&describe(&args).expect("a file")).expect("JSON");
        assert_eq!(made["nodes"], 200);
        for key in ["nodes", "links", "kinds", "prefixes", "bytes", "most_links_at"] {
            assert_eq!(made[key], read[key], "{key}");
        }
        let args = ShowArgs { file, json: false };
        let text = describe(&args).expect("a file");
        assert!(text.contains("200 nodes"), "{text}");
        let kinds: Vec<_> = text.lines().filter(|line| line.starts_with("  links of")).collect();
        let distinct: FxHashSet<_> = kinds.iter().collect();
        assert_eq!((kinds.len(), distinct.len()), (KINDS, KINDS), "{text}");
        let network = Network::open(&args.file).expect("a network");
        let mut in_use = FxHashSet::default();
        for link in (0..network.links()).map(LinkId) {
            in_use.insert((network.weight(link), *network.settings(link)));
        }
        assert_eq!(made["kinds"], in_use.len());
        let missing = ShowArgs { file: folder.path().join("no"), json: false };
        assert!(describe(&missing).is_err());
    }

    fn generate_json(args: &GenArgs) -> serde_json::Value {
        serde_json::from_str(&generate(args).expect("a network")).expect("JSON")
    }

    #[test]
    fn numbers_out_of_range_are_refused_and_write_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("internet.nigh");
        let wrong = Generate { transit: 1.5, ..Generate::default() };
        let args = GenArgs { file: file.clone(), generate: wrong, json: false };
        let error = generate(&args).expect_err("transit out of range");
        assert!(matches!(error, FileError::Generate(_)));
        assert_eq!(error.exit(), Exit::Usage);
        assert!(!file.exists());
    }
}
