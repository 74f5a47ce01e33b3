//! `nigh lab import`: the command, its progress and what it prints.

use super::report::Count;
use super::{Format, ImportError, ImportOptions, ImportReport, Importer};
use crate::SettingsChange;
use crate::network::Network;
use clap::Args;
use std::fmt::Write as _;
use std::fs::metadata;
use std::io;
use std::path::{Path, PathBuf};
use terminal::progress::{self, ProgressBar};

/// Arguments of `nigh lab import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// Files, also packed with gzip or bzip2; what each is follows from its content
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The network's file
    #[arg(short, long, value_name = "NETWORK")]
    pub output: PathBuf,
    /// What all files are, where that is not recognised
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Which addresses are those of one router: a router a line; repeatable
    #[arg(long, value_name = "FILE")]
    pub aliases: Vec<PathBuf>,
    /// What links do of which files say nothing else, as "rate=1Gbit mtu=9000" [default: delay=1ms]
    #[arg(long, value_name = "SETTINGS", default_value = "", hide_default_value = true)]
    pub link: SettingsChange,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A file is not taken, or they make no network.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The network cannot be written.
    #[error("cannot write {}: {error}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Imports files and writes the network; returns what to print.
///
/// # Errors
///
/// See [`CommandError`].
pub fn run(args: &ImportArgs) -> Result<String, CommandError> {
    let mut files = Vec::new();
    for path in &args.aliases {
        files.push((Format::Nodes, path));
    }
    for path in &args.files {
        let format = match args.format {
            Some(format) => format,
            None => super::recognise(path)?,
        };
        files.push((format, path));
    }
    // Files that others refer to come first.
    files.sort_by_key(|(format, _)| format.order());
    let size = |path: &Path| metadata(path).map_or(0, |metadata| metadata.len());
    let bytes = files.iter().map(|(_, path)| size(path)).sum();
    let bar = if args.json { ProgressBar::hidden() } else { progress::bytes(Some(bytes)) };
    let mut importer = Importer::new();
    for (format, path) in files {
        bar.set_message(path.display().to_string());
        importer.file(path, Some(format), &mut |read| bar.inc(read))?;
    }
    bar.set_message("the network is made");
    let options = ImportOptions { link: args.link };
    let (network, report) = importer.finish(&options).map_err(ImportError::from)?;
    let file = &args.output;
    network.save(file).map_err(|error| CommandError::Write { file: file.clone(), error })?;
    bar.finish_and_clear();
    Ok(if args.json {
        let mut text = serde_json::to_string_pretty(&report).unwrap_or_default();
        text.push('\n');
        text
    } else {
        text(&report, &network, file)
    })
}

/// The report for people.
fn text(report: &ImportReport, network: &Network, file: &Path) -> String {
    let ImportReport { nodes, links, kinds, prefixes, entries, .. } = report;
    let bytes = network.bytes();
    let mut text = format!(
        "{}: {nodes} nodes, {links} directed links (kinds: {kinds}), {prefixes} prefixes, \
         {entries} forwarding entries, {bytes} bytes\n",
        file.display()
    );
    for file in &report.files {
        let _ = write!(text, "  {} as {}: ", file.file.display(), file.format.name());
        let _ = match file.lines {
            0 => writeln!(text, "{} taken, {} bad", file.taken, file.bad),
            lines => writeln!(text, "{lines} lines, {} taken, {} bad", file.taken, file.bad),
        };
    }
    counts(&mut text, "Unreadable, and ignored", &report.bad);
    counts(&mut text, "Valid, but skipped", &report.skipped);
    if !report.assumptions.is_empty() {
        text.push_str("Assumed\n");
    }
    for assumption in &report.assumptions {
        let _ = writeln!(text, "  {assumption}");
    }
    text
}

fn counts(text: &mut String, title: &str, counts: &[Count]) {
    if !counts.is_empty() {
        let _ = writeln!(text, "{title}");
    }
    for count in counts {
        let _ = writeln!(text, "  {} times: {}", count.count, count.what);
        for example in &count.examples {
            let _ = writeln!(text, "    {example}");
        }
    }
}
