//! `nigh gate classify`: classifies the flows of captures, without a gate.

use ::capture::{ReadError, unpack};
use clap::Args;
use classify::{
    Engine, OpenError, Settings,
    offline::{Classified, Counts, Line, classify_capture},
    truth::{self, Score, TruthError},
};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};
use terminal::{
    progress,
    text::{lines, table},
};

/// Arguments of `nigh gate classify`.
#[derive(Clone, Debug, Args)]
pub struct ClassifyArgs {
    /// Captures in the order of their recording: pcap or pcapng, optionally compressed with gzip or zstd
    #[arg(required = true, value_name = "FILE")]
    pub captures: Vec<PathBuf>,
    /// List each flow instead of each application
    #[arg(long)]
    pub flows: bool,
    /// Packets with payload after which a flow is unknown [default: gate.packets, else 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub packets: Option<u8>,
    /// Report how well flows were classified, by this table of their true labels
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
}

/// Captures could not be classified.
#[derive(Debug, thiserror::Error)]
pub enum ClassifyError {
    /// The engines.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file.
    #[error("cannot open {}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A capture.
    #[error("{}: {source}", .path.display())]
    Capture {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: ReadError,
    },
    /// The table of truth.
    #[error("{}: {source}", .path.display())]
    Truth {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        source: TruthError,
    },
    /// The table of truth has a hole.
    #[error("{flows} flows with payload match no line of the truth table; the first is {first}")]
    Unlisted {
        /// How many.
        flows: usize,
        /// One of them.
        first: classify::flow::Flow,
    },
    /// The output.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

impl ClassifyError {
    /// Whether the reader of the output has closed it.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Reads the captures and writes what their flows are.
///
/// # Errors
/// See [`ClassifyError`]; what was found until then is written.
pub fn classify(
    args: &ClassifyArgs,
    settings: Settings,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), ClassifyError> {
    let settings = Settings { packets: args.packets.unwrap_or(settings.packets), ..settings };
    let mut engine = Engine::new(&settings)?;
    let truth = args.truth.as_deref().map(read_truth).transpose()?;
    let mut score = Score::default();
    for path in &args.captures {
        let (flows, counts) = read(&mut engine, path)?;
        if let Some(table) = &truth {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            flows.iter().for_each(|flow| score.add(table, &name, flow));
        }
        if json {
            for flow in &flows {
                serde_json::to_writer(&mut *out, &Line::from(flow)).map_err(io::Error::from)?;
                out.write_all(b"\n")?;
            }
        } else if args.flows {
            out.write_all(flow_table(&flows).as_bytes())?;
        } else if truth.is_none() {
            out.write_all(application_table(&flows).as_bytes())?;
        }
        if !json && truth.is_none() {
            writeln!(out, "{}: {}", path.display(), frames(&counts))?;
        }
    }
    if truth.is_some() {
        let text = if json { score_json(&score) } else { score_table(&score) };
        out.write_all(text.as_bytes())?;
    }
    out.flush()?;
    match score.unlisted.first() {
        Some(&first) => Err(ClassifyError::Unlisted { flows: score.unlisted.len(), first }),
        None => Ok(()),
    }
}

fn read_truth(path: &Path) -> Result<truth::Table, ClassifyError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ClassifyError::File { path: path.to_owned(), source })?;
    truth::Table::read(&text)
        .map_err(|source| ClassifyError::Truth { path: path.to_owned(), source })
}

fn read(engine: &mut Engine, path: &Path) -> Result<(Vec<Classified>, Counts), ClassifyError> {
    let failed = |source| ClassifyError::File { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let bar = progress::bytes(Some(bytes)).with_message(path.display().to_string());
    let file = unpack(bar.wrap_read(file)).map_err(failed)?;
    let done = classify_capture(engine, file);
    bar.finish_and_clear();
    done.map_err(|source| ClassifyError::Capture { path: path.to_owned(), source })
}

/// `bittorrent/dht`, or `unknown`.
fn name(one: &Classified) -> String {
    let Some(label) = &one.label else { return "unknown".into() };
    match &label.detail {
        Some(detail) => format!("{}/{detail}", label.application),
        None => label.application.to_string(),
    }
}

/// The applications, those with the most bytes first.
fn application_table(flows: &[Classified]) -> String {
    let mut all: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for one in flows {
        let likely =
            one.label.as_ref().is_some_and(|l| l.certainty == classify::label::Certainty::Likely);
        let [count, unsure, packets, bytes] = all.entry(name(one)).or_default();
        *count += 1;
        *unsure += u64::from(likely);
        *packets += one.packets;
        *bytes += one.bytes;
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, [.., bytes])| std::cmp::Reverse(*bytes));
    let mut out = table(["application", "flows", "likely", "packets", "bytes"], 1);
    for (name, numbers) in all {
        let numbers = numbers.map(|number| number.to_string());
        out.add_row(std::iter::once(name).chain(numbers));
    }
    lines(&out)
}

/// The flows in the order of the capture.
fn flow_table(flows: &[Classified]) -> String {
    let mut out = table(["packets", "bytes", "known after", "flow", "application"], 0);
    for one in flows {
        let what = one.label.as_ref().map_or_else(|| "unknown".into(), ToString::to_string);
        let after = one.known_after.map_or_else(|| "-".into(), |packets| packets.to_string());
        out.add_row([
            one.packets.to_string(),
            one.bytes.to_string(),
            after,
            one.flow.to_string(),
            what,
        ]);
    }
    lines(&out)
}

/// The outcome of a capture's frames, in a line.
fn frames(counts: &Counts) -> String {
    let mut text = format!("{} frames", counts.frames);
    for (count, what) in [
        (counts.of_flows, "of flows"),
        (counts.not_ip, "without IP"),
        (counts.other_protocols, "of other protocols"),
        (counts.lost_fragments, "fragments without their first"),
        (counts.damaged, "damaged"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    if counts.cut > 0 {
        let _ = write!(text, "; {} were truncated in the capture", counts.cut);
    }
    if counts.truncated {
        text.push_str("; the file ends within a packet");
    }
    text
}

/// `99.50 %`
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.2} %", share * 100.0))
}

fn score_table(score: &Score) -> String {
    let header =
        ["application", "flows", "recall", "within 8", "unknown", "precision", "false positives"];
    let mut out = table(header, 1);
    for (truth, tally) in &score.by_truth {
        let application = truth.application.as_str();
        let (precision, wrong) = if application == truth::OTHER {
            (None, None)
        } else {
            (score.precision(application), score.false_share(application))
        };
        let hidden = if truth.how == truth::How::Hidden { " (hidden)" } else { "" };
        out.add_row([
            format!("{application}{hidden}"),
            tally.flows.to_string(),
            percent(truth::share(tally.found, tally.flows)),
            percent(truth::share(tally.within_8, tally.flows)),
            tally.unknown.to_string(),
            percent(precision),
            percent(wrong),
        ]);
    }
    for (application, flows) in &score.false_positives {
        let known = score.by_truth.keys().any(|truth| truth.application == *application);
        if !known {
            let of = score.flows_other_than(application);
            let share = percent(truth::share(*flows, of));
            let mut row = vec![application.clone()];
            row.extend(["0", "-", "-", "-", "-"].map(str::to_owned));
            row.push(share);
            out.add_row(row);
        }
    }
    lines(&out)
}

fn score_json(score: &Score) -> String {
    let mut text = String::new();
    for (truth, tally) in &score.by_truth {
        let application = truth.application.as_str();
        let line = serde_json::json!({
            "truth": application,
            "how": truth.how,
            "flows": tally.flows,
            "found": tally.found,
            "within_8": tally.within_8,
            "unknown": tally.unknown,
            "recall": truth::share(tally.found, tally.flows),
            "precision": score.precision(application),
            "false_positives": score.false_positives.get(application).unwrap_or(&0),
            "false_share": score.false_share(application),
        });
        let _ = writeln!(text, "{line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use classify::{
        Facts,
        flow::{Flow, Transport},
    };

    #[test]
    fn the_manual_has_every_field_of_a_line() {
        let socket = "192.0.2.1:80".parse().unwrap();
        let one = Classified {
            flow: Flow { transport: Transport::Tcp, client: socket, server: socket },
            packets: 0,
            with_payload: 0,
            bytes: 0,
            first_ns: 0,
            last_ns: 0,
            label: None,
            known_after: None,
            facts: Facts::default(),
        };
        let line = serde_json::to_value(Line::from(&one)).unwrap();
        let manual = include_str!("../../../../docs/gate-classification.md");
        let (_, fields) = manual.split_once("Fields of a JSON line: ").unwrap();
        // Words in brackets are values.
        let fields = fields.lines().next().unwrap().split(['(', ')']).step_by(2);
        let mut listed: Vec<&str> =
            fields.flat_map(|part| part.split('`').skip(1).step_by(2)).collect();
        listed.sort_unstable();
        let mut keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        keys.sort_unstable();
        assert_eq!(listed, keys);
    }
}
