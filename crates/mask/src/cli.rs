//! `nigh mask`.

use crate::{
    check::{self, CheckError},
    counted::counted,
    explain::{Explanation, explain},
    file::{Job, JobError, MaskError, link_and_bytes},
    key::{self, Key, KeyError, Rotation, read_key},
    live::{Live, LiveError, Summary, options::LiveArgs},
    log::Log,
    machine::{MappingName, Secrets},
    policy::{Policy, PolicyError, SHIPPED},
};
use capture::{ReadError, unpack};
use clap::{Args, Subcommand};
use job::command::{Exit, PrintError, print, print_counters, print_json, print_result};
use serde_json::json;
use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
};
use terminal::progress::{self, ProgressBar};

/// What is done.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Mask a capture (pcap or pcapng, optionally compressed with gzip or zstd); the output is pcapng
    #[command(
        after_help = "Examples:\n  nigh mask key campus.key\n  nigh mask file --policy research --key campus.key in.pcap out.pcapng\n  nigh mask file --policy research --key-command 'pass show campus' --rotate day in.pcap out.pcapng\n  tcpdump -w - | nigh mask file --policy strict - - | tshark -r -"
    )]
    File(FileArgs),
    /// Mask the packets of an interface in the kernel, before they reach user space (if the kernel can: see --engine)
    Live(Box<LiveArgs>),
    /// Check whether anything of the original is left in a masked capture; exit code 4 if so, 1 if the check fails
    #[command(
        after_help = "Examples:\n  nigh mask check out.pcapng --against in.pcap\n  nigh mask check out.pcapng --against in.pcap --html report.html"
    )]
    Check {
        /// The masked capture
        masked: PathBuf,
        /// The original capture
        #[arg(long, value_name = "CAPTURE")]
        against: PathBuf,
        /// Also write the report as an HTML page
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// List, show, check and compile policies
    #[command(
        subcommand,
        after_help = "Examples:\n  nigh mask policy list\n  nigh mask policy check mine.toml"
    )]
    Policy(PolicyCommand),
    /// Make a file with a new key that only its owner can read
    #[command(
        after_help = "Examples:\n  nigh mask key campus.key\n  nigh mask key --id campus.key"
    )]
    Key {
        /// Print the id of the key in the file, as it appears in captures
        #[arg(long)]
        id: bool,
        /// The file; without `--id` it must not exist yet
        file: PathBuf,
    },
}

/// Arguments of `nigh mask file`.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// The capture; `-` is stdin
    input: PathBuf,
    /// The masked capture; `-` is stdout
    output: PathBuf,
    /// The policy: strict, research, flows, debug, or a file
    #[arg(long, value_name = "POLICY")]
    policy: String,
    #[command(flatten)]
    key: key::Source,
    /// Use a separate key, derived from the given one, for each period of packet times (UTC)
    #[arg(long, value_enum, value_name = "PERIOD")]
    rotate: Option<Rotation>,
    /// Mapping of addresses for the policy's action `prefix`
    #[arg(long, value_enum, default_value_t = MappingName::CryptoPan)]
    mapping: MappingName,
    /// Append a record of the run to this file, as JSON lines without keys
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Threads that mask [default: all processors]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

/// Commands on policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List the policies that come with nigh
    #[command(after_help = "Example:\n  nigh mask policy list")]
    List,
    /// Print a policy
    #[command(after_help = "Example:\n  nigh mask policy show research > mine.toml")]
    Show {
        /// strict, research, flows, debug, or a file
        policy: String,
    },
    /// Check a policy, and list what it keeps, changes and removes
    #[command(after_help = "Example:\n  nigh mask policy check mine.toml")]
    Check {
        /// strict, research, flows, debug, or a file
        policy: String,
    },
    /// Show a packet before and after a policy, field by field, under a temporary key
    #[command(
        after_help = "Example:\n  nigh mask policy explain research in.pcap --packet 3\n  nigh mask --json policy explain strict in.pcap"
    )]
    Explain {
        /// strict, research, flows, debug, or a file
        policy: String,
        /// The capture with the packet
        capture: PathBuf,
        /// Number of the packet, counted from 1
        #[arg(long, value_name = "NUMBER", default_value_t = 1)]
        packet: u64,
    },
    /// Print the program that a policy compiles to
    #[command(after_help = "Example:\n  nigh mask policy compile research")]
    Compile {
        /// strict, research, flows, debug, or a file
        policy: String,
    },
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The process cannot be shut to debuggers and core dumps.
    #[error("cannot keep keys out of core dumps: {0}")]
    Conceal(io::Error),
    /// A capture or policy cannot be opened.
    #[error("cannot open {}: {source}", .path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A key cannot be created.
    #[error("cannot create {}: {source}", .path.display())]
    Create {
        /// Its file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no such policy.
    #[error("there is no policy {0:?}: nigh has {list}; a file can be one too", list = policies().collect::<Vec<_>>().join(", "))]
    NoPolicy(String),
    /// It is none.
    #[error("{name}: {source}")]
    Policy {
        /// Its name or file.
        name: String,
        /// What is wrong.
        source: PolicyError,
    },
    /// The key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is none.
    #[error(
        "policy {0} needs a key: give `--key FILE` (`nigh mask key FILE` makes one), `--key-command`, \
         `--key-ring`, or `--forget` for one that nobody will have"
    )]
    NoKey(String),
    /// The job.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The capture is not masked, or not to its end.
    #[error("{}: {source}{}", .path.display(), because(.source))]
    Mask {
        /// The capture.
        path: PathBuf,
        /// What is wrong.
        source: MaskError,
    },
    /// The packets of an interface are not masked, or no more.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// It cannot be checked.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The capture has fewer packets.
    #[error("{} has {}: there is no packet {number}", .path.display(), counted(*.count, "packet", "packets"))]
    NoPacket {
        /// The packet that was asked for.
        number: u64,
        /// The number of packets.
        count: u64,
        /// The capture.
        path: PathBuf,
    },
    /// The mask does not support its link type.
    #[error("packet {0} would be skipped: its link type is unknown")]
    OtherLink(u64),
    /// The output would be written over the input.
    #[error("{0} is the capture itself: give another file for the masked one")]
    Same(PathBuf),
    /// The report would be written over a capture.
    #[error("{0} is one of the captures: give another file for the report")]
    Page(PathBuf),
    /// The system gives no random numbers.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Nothing can be printed.
    #[error(transparent)]
    Print(#[from] PrintError),
}

/// The names of the policies that come with nigh.
pub fn policies() -> impl Iterator<Item = &'static str> {
    SHIPPED.into_iter().map(|(name, _)| name)
}

fn because(error: &MaskError) -> String {
    std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default()
}

impl CliError {
    /// Whether the reader of the output has closed it.
    fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Mask { source: MaskError::Write(error), .. }
            if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Runs the command.
///
/// # Errors
/// See [`CliError`]; a reader that has seen enough is none.
pub fn run(command: &Command, json: bool) -> Result<Exit, CliError> {
    match execute(command, json) {
        Err(error) if error.is_broken_pipe() => Ok(Exit::Done),
        result => result,
    }
}

fn execute(command: &Command, json: bool) -> Result<Exit, CliError> {
    match command {
        Command::File(args) => file(args, json),
        Command::Live(args) => live(args, json),
        Command::Check { masked, against, html } => check(masked, against, html.as_deref(), json),
        Command::Policy(command) => policy(command, json),
        Command::Key { id, file } => {
            if !id {
                let create = |source| CliError::Create { path: file.clone(), source };
                key::create(file).map_err(create)?;
            }
            let hex = key::id(&read_key(file)?);
            Ok(match (json, id) {
                (true, _) => print_json(&json!({ "file": file, "id": hex }))?,
                (false, true) => print(&format!("{hex}\n"))?,
                (false, false) => Exit::Done,
            })
        }
    }
}

fn failed(path: &Path) -> impl Fn(io::Error) -> CliError {
    let path = path.to_owned();
    move |source| CliError::File { path: path.clone(), source }
}

fn open(path: &Path) -> Result<File, CliError> {
    File::open(path).map_err(|source| CliError::Open { path: path.to_owned(), source })
}

fn file(args: &FileArgs, json: bool) -> Result<Exit, CliError> {
    let (policy, _) = read_policy(&args.policy)?;
    let key = key_for(&args.key, &args.policy, &policy)?;
    let job = Job::new(&policy, key, args.mapping)?.rotated(args.rotate);
    let is_stream = |path: &Path| path == Path::new("-");
    let (input, bytes): (Box<dyn Read + Send>, Option<u64>) = if is_stream(&args.input) {
        (Box::new(io::stdin()), None)
    } else {
        let file = open(&args.input)?;
        let there = file.metadata().map_err(failed(&args.input))?;
        let same = fs::metadata(&args.output)
            .is_ok_and(|it| (it.dev(), it.ino()) == (there.dev(), there.ino()) && it.is_file());
        if same {
            return Err(CliError::Same(args.output.clone()));
        }
        (Box::new(file), Some(there.len()).filter(|_| there.is_file()))
    };
    let bar = progress::bytes(bytes);
    let input = unpack(bar.wrap_read(input)).map_err(failed(&args.input))?;
    let all = || thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(all, usize::from);
    let masked = |source| CliError::Mask { path: args.input.clone(), source };
    let begin = |path| {
        Log::begin(path, &job.record(), &args.input, &args.output, None).map_err(failed(path))
    };
    let mut log = args.log.as_deref().map(begin).transpose()?;
    let result = if is_stream(&args.output) {
        job.run(input, &mut io::stdout(), threads).map_err(masked)
    } else {
        File::create(&args.output)
            .map_err(failed(&args.output))
            .and_then(|mut out| job.run(input, &mut out, threads).map_err(masked))
    };
    bar.finish_and_clear();
    if let (Some(log), Some(path)) = (&mut log, &args.log) {
        log.end(result.as_ref().ok(), result.as_ref().err()).map_err(failed(path))?;
    }
    Ok(print_counters(json, is_stream(&args.output), &result?)?)
}

fn check(masked: &Path, against: &Path, html: Option<&Path>, json: bool) -> Result<Exit, CliError> {
    let real = |path: &Path| fs::canonicalize(path).ok();
    if let Some(page) = html.filter(|page| {
        real(page).is_some_and(|page| [masked, against].map(real).contains(&Some(page)))
    }) {
        return Err(CliError::Page(page.to_owned()));
    }
    let start = |path: &Path| -> Result<(Box<dyn Read + Send>, ProgressBar), CliError> {
        let file = open(path)?;
        let bar = progress::bytes(file.metadata().ok().map(|there| there.len()));
        Ok((unpack(bar.wrap_read(file)).map_err(failed(path))?, bar))
    };
    let (original, read) = start(against)?;
    let (result, looked) = start(masked)?;
    let report = check::check(original, result)?;
    [read, looked].iter().for_each(ProgressBar::finish_and_clear);
    if let Some(page) = html {
        let [masked, against] = [masked, against].map(|path| path.display().to_string());
        fs::write(page, report.html(&masked, &against)).map_err(failed(page))?;
    }
    // A leak is reported also when the reader has gone.
    print_result(json, &report)?;
    Ok(if report.leaks { Exit::Leak } else { Exit::Done })
}

/// The key that the arguments name, if the policy needs one.
fn key_for(source: &key::Source, name: &str, policy: &Policy) -> Result<Key, CliError> {
    let program = policy.compile().map_err(JobError::from)?;
    match source.read()? {
        Some(key) => Ok(key),
        None if source.is_forgotten() || !program.needs_key() => Ok(key::fresh()?),
        None => Err(CliError::NoKey(name.to_owned())),
    }
}

fn live(args: &LiveArgs, json: bool) -> Result<Exit, CliError> {
    // Before there is a key.
    datapath::capabilities::conceal().map_err(CliError::Conceal)?;
    let (policy, _) = read_policy(&args.policy)?;
    let key = key_for(&args.key, &args.policy, &policy)?;
    let job = Job::new(&policy, key, args.mapping)?.rotated(args.rotate);
    let output = args.output_path();
    let chosen = args.engine.decide()?;
    let begin = |path| {
        let input = Path::new(&args.interface);
        Log::begin(path, &job.record(), input, output, Some(&chosen)).map_err(failed(path))
    };
    let mut log = args.log.as_deref().map(begin).transpose()?;
    if let Some(warning) = chosen.warning() {
        eprintln!("warning: {warning}");
    }
    let (summary, result) = match Live::begin(args, &job, chosen) {
        Ok(live) => until_its_end(live, args, &job.record()),
        Err(error) => (None, Err(error)),
    };
    if let (Some(log), Some(path)) = (&mut log, &args.log) {
        log.end(summary.as_ref(), result.as_ref().err()).map_err(failed(path))?;
    }
    if let Some(summary) = &summary {
        print_counters(json, output == Path::new("-"), summary)?;
    }
    result?;
    Ok(Exit::Done)
}

/// Runs it; what happened to packets, and why it ended early if it did.
fn until_its_end(
    mut live: Live<'_>,
    args: &LiveArgs,
    record: &str,
) -> (Option<Summary>, Result<(), LiveError>) {
    // Scripts wait for this line: from here on no packet goes by unseen.
    eprintln!("{}: {record}; SIGINT ends it", args.interface);
    let bar = ProgressBar::new_spinner();
    let ran = live.run(args.duration, |seen| {
        let packets = counted(seen.taken, "packet", "packets");
        bar.set_message(format!("{packets} masked, {} lost", seen.lost()));
        bar.tick();
    });
    bar.finish_and_clear();
    let (summary, ended) = live.end();
    (Some(summary), ran.and(ended))
}

/// A policy by its name, or from a file, with its text.
fn read_policy(name: &str) -> Result<(Policy, String), CliError> {
    let text = match SHIPPED.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => (*text).to_owned(),
        None => fs::read_to_string(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CliError::NoPolicy(name.to_owned()),
            _ => CliError::Open { path: name.into(), source: error },
        })?,
    };
    let wrong = |source| CliError::Policy { name: name.to_owned(), source };
    let policy = Policy::read(&text).map_err(wrong)?;
    policy.compile().map_err(wrong)?;
    Ok((policy, text))
}

fn policy(command: &PolicyCommand, json: bool) -> Result<Exit, CliError> {
    let (value, text) = match command {
        PolicyCommand::List => {
            let (mut rows, mut text) = (Vec::new(), String::new());
            for name in policies() {
                let (policy, _) = read_policy(name)?;
                text += &format!("{name:9} {}\n", policy.about);
                rows.push(json!({ "name": name, "about": policy.about }));
            }
            (json!(rows), text)
        }
        PolicyCommand::Show { policy } => {
            let (_, text) = read_policy(policy)?;
            (json!(text.parse::<toml::Table>().unwrap_or_default()), text)
        }
        PolicyCommand::Check { policy } => {
            let (read, _) = read_policy(policy)?;
            let Policy { about, payload, time, .. } = &read;
            let actions = read.actions();
            let value = json!({
                "policy": policy, "about": about, "payload": payload, "time": time, "actions": actions,
            });
            (value, read.summary())
        }
        PolicyCommand::Explain { policy, capture, packet } => {
            let explanation = explained(&read_policy(policy)?.0, capture, *packet)?;
            (json!(explanation), explanation.to_string())
        }
        PolicyCommand::Compile { policy } => {
            let (read, _) = read_policy(policy)?;
            let program = read.compile().map_err(JobError::from)?;
            let (text, digest) = (program.to_string(), program.digest().to_string());
            let lines: Vec<_> = text.lines().collect();
            (json!({ "program": lines, "sha256": digest }), format!("{text}SHA-256 {digest}\n"))
        }
    };
    Ok(if json { print_json(&value)? } else { print(&text)? })
}

/// Explains the packet of this number.
fn explained(policy: &Policy, capture: &Path, number: u64) -> Result<Explanation, CliError> {
    let mut secrets =
        Secrets::new(&*key::fresh()?, MappingName::CryptoPan).map_err(JobError::from)?;
    let input = unpack(open(capture)?).map_err(failed(capture))?;
    let (mut count, mut found) = (0, None);
    let read = capture::read::<Found>(input, |frame, _| {
        count += 1;
        if count < number {
            return Ok(());
        }
        found =
            link_and_bytes(&frame).map(|(link, bytes)| explain(policy, &mut secrets, link, bytes));
        Err(Found(None))
    });
    match (found, read) {
        (Some(explanation), _) => Ok(explanation.map_err(JobError::from)?),
        (None, Err(Found(Some(source)))) => {
            let source = MaskError::Read(source);
            Err(CliError::Mask { path: capture.to_owned(), source })
        }
        (None, Err(Found(None))) => Err(CliError::OtherLink(number)),
        (None, Ok(_)) => Err(CliError::NoPacket { number, count, path: capture.to_owned() }),
    }
}

/// Why reading ended: the packet is there, or what was wrong.
struct Found(Option<ReadError>);

impl From<ReadError> for Found {
    fn from(error: ReadError) -> Self {
        Self(Some(error))
    }
}
