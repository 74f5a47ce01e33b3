//! `nigh probe show`: the command line.

use super::{
    Direction, Look, Mesh, Plot, Table, chart, clocks, delays, matrix, svg_chart, svg_matrix,
    svg_table, table, throughputs, traces,
};
use crate::{
    archive::{Entry, Query, QueryError, Reader},
    record::Kind,
};
use clap::{Args, ValueEnum};
use datapath::clock::unix_ns;
use job::command::{PrintError, print};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    time::Duration,
};

/// Columns where the output is no terminal.
const COLUMNS: u16 = 80;
/// Most plots that are drawn.
const PLOTS: usize = 16;
/// Most entries that are read, the newest.
const ENTRIES: usize = 500_000;

/// Arguments of `nigh probe show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// What to show
    #[arg(value_name = "WHAT", default_value = "mesh")]
    pub what: What,
    /// Only what this station measured
    #[arg(long, value_name = "STATION")]
    pub from: Option<String>,
    /// Only what was measured to this station or address
    #[arg(long, value_name = "STATION|ADDRESS")]
    pub to: Option<String>,
    /// Only what this test of the schedule measured
    #[arg(long, value_name = "TEST")]
    pub test: Option<String>,
    /// How far back
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = config::duration)]
    pub since: Duration,
    /// Which delay
    #[arg(long, value_name = "DIRECTION", default_value = "forward")]
    pub direction: Direction,
    /// The old name of `--direction`, refused
    #[arg(long, hide = true, value_parser = config::renamed_flag("--direction"))]
    pub(crate) way: Option<String>,
    /// The folder of the archive [default: probe in node.state of the configuration file]
    #[arg(long, value_name = "DIR")]
    pub archive: Option<PathBuf>,
    /// Write a picture into this file; `-` is stdout
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub svg: Option<PathBuf>,
    /// Print as JSON what the archive has; of the mesh its cells
    #[arg(long)]
    pub json: bool,
}

/// What can be shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Delays over time, with their error intervals
    Delay,
    /// Throughput over time
    Throughput,
    /// Who measured whom: median delay and loss
    #[default]
    Mesh,
    /// Errors of clocks
    Clocks,
    /// The paths through the network
    Traces,
}

/// It cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// The archive cannot be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The picture cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The text cannot be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
}

/// What is shown, before it is text or a picture.
enum Shown {
    Plots(Vec<Plot>, (i64, i64)),
    Mesh(Mesh),
    Table(Table),
}

/// Reads an archive and shows what was asked for.
///
/// # Errors
/// See [`ShowError`].
pub fn run(args: &ShowArgs, archive: &Path) -> Result<(), ShowError> {
    let now_ns = unix_ns().cast_signed();
    let entries = Reader::open(archive)?.query(&args.query(now_ns))?;
    let to_terminal = io::stdout().is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = if to_terminal { ratatui::crossterm::terminal::size().ok() } else { None };
    let look = Look {
        columns: columns.map_or(COLUMNS, |size| size.0.max(COLUMNS / 2)),
        colour: to_terminal && !plain,
    };
    let text = args.render(&entries, now_ns, look);
    if let Some(path) = args.svg.as_deref().filter(|path| *path != Path::new("-")) {
        std::fs::write(path, text)
            .map_err(|source| ShowError::Write { path: path.to_owned(), source })?;
    } else {
        print(&text)?;
    }
    Ok(())
}

impl ShowArgs {
    /// What is asked of the archive.
    pub(super) fn query(&self, now_ns: i64) -> Query {
        let since = i64::try_from(self.since.as_nanos()).unwrap_or(i64::MAX);
        let kinds = match self.what {
            What::Throughput => vec![Kind::Throughput],
            What::Clocks => vec![Kind::Clock],
            What::Traces => vec![Kind::Trace],
            // Those of ICMP echo belong to them.
            What::Delay | What::Mesh if self.direction == Direction::RoundTrip => {
                vec![Kind::Delay, Kind::Ping]
            }
            What::Delay | What::Mesh => vec![Kind::Delay],
        };
        Query {
            since_ns: Some(now_ns.saturating_sub(since)),
            from: self.from.clone(),
            to: self.to.clone(),
            test: self.test.clone(),
            kinds,
            limit: Some(ENTRIES),
            ..Query::default()
        }
    }

    /// The entries as text, as SVG or as JSON.
    pub(super) fn render(&self, entries: &[Entry], now_ns: i64, look: Look) -> String {
        let shown = self.shown(entries, now_ns);
        if self.json {
            let json = match &shown {
                Shown::Mesh(mesh) => serde_json::to_string_pretty(mesh),
                _ => serde_json::to_string_pretty(entries),
            };
            return json.unwrap_or_default() + "\n";
        }
        match (&shown, self.svg.is_some()) {
            (Shown::Plots(plots, range), true) => svg_chart(plots, Some(*range)),
            (Shown::Plots(plots, range), false) => {
                let texts: Vec<_> =
                    plots.iter().map(|plot| chart(plot, Some(*range), look)).collect();
                if texts.is_empty() {
                    "nothing was measured\n".to_owned()
                } else {
                    texts.join("\n")
                }
            }
            (Shown::Mesh(mesh), true) => svg_matrix(mesh),
            (Shown::Mesh(mesh), false) => matrix(mesh, look),
            (Shown::Table(it), true) => svg_table(it),
            (Shown::Table(it), false) => table(it, look),
        }
    }

    fn shown(&self, entries: &[Entry], now_ns: i64) -> Shown {
        let plots = |mut plots: Vec<Plot>| {
            if plots.len() > PLOTS {
                tracing::warn!(
                    "{} pairs: the first {PLOTS} are drawn; choose with --from, --to and --test",
                    plots.len()
                );
                plots.truncate(PLOTS);
            }
            // All pairs over the same time: from the first to the last of all.
            let range = Plot::common(&plots);
            Shown::Plots(plots, range.unwrap_or((now_ns.saturating_sub(1), now_ns)))
        };
        match self.what {
            What::Delay => plots(delays(entries, self.direction)),
            What::Throughput => plots(throughputs(entries)),
            What::Mesh => Shown::Mesh(Mesh::new(entries, self.direction)),
            What::Clocks => Shown::Table(clocks(entries)),
            What::Traces => Shown::Table(traces(entries)),
        }
    }
}
