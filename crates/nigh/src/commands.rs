//! What each sub-command does, and how it prints and fails.

use crate::{
    cli::{
        CheckArgs, Cli, Command, CompletionsArgs, ControlArgs, EchoArgs, GateArgs, LabArgs,
        ManArgs, OracleArgs, ProbeArgs, StatusArgs, Target,
    },
    client::{self, AskError},
    config::{
        self, LoadError,
        scene::{self, SceneError},
    },
    control::Request,
    daemon, http,
};
use clap::{CommandFactory, Parser};
use serde_json::{Value, json};
use std::{
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// A sub-command failed.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Run(#[from] Box<daemon::RunError>),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error(transparent)]
    Render(#[from] echo::cli::RenderError),
    #[error(transparent)]
    Blast(#[from] echo::blast::BlastError),
    #[error(transparent)]
    RenderOracle(#[from] oracle::cli::RenderError),
    #[error(transparent)]
    Show(#[from] probe::show::cli::ShowError),
    #[error(transparent)]
    Export(#[from] probe::archive::ExportError),
    #[error(transparent)]
    RenderProbe(#[from] probe::cli::RenderError),
    #[error(transparent)]
    Flow(#[from] gate::control::BadFlow),
    #[error(transparent)]
    RenderGate(#[from] gate::cli::RenderError),
    #[error(transparent)]
    Classify(#[from] gate::cli::ClassifyError),
    #[error(transparent)]
    Replay(#[from] gate::cli::ReplayError),
    #[error(transparent)]
    Mask(#[from] mask::cli::CliError),
    #[error(transparent)]
    Watch(#[from] gate::cli::WatchError<client::AskError>),
    #[error(transparent)]
    Client(#[from] oracle::client::ClientError),
    #[error(transparent)]
    Console(#[from] oracle::console::ConsoleError),
    #[error(transparent)]
    Lab(#[from] lab::run::RunError),
    #[error(transparent)]
    Http(#[from] http::BindError),
    #[error(transparent)]
    Exec(#[from] lab::run::ExecError),
    #[error(transparent)]
    Clean(#[from] lab::clean::CleanError),
    #[error(transparent)]
    Stage(#[from] lab::scene::StageError),
    #[error(transparent)]
    Import(#[from] lab::import::command::CommandError),
    #[error(transparent)]
    Use(#[from] lab::control::cli::UseError),
    #[error(transparent)]
    Capture(#[from] lab::capture::cli::CaptureError),
    #[error(transparent)]
    View(#[from] lab::view::ViewError),
    #[error(transparent)]
    File(#[from] lab::control::files::FileError),
    #[error(transparent)]
    Psock(#[from] psock::cli::CommandError),
    /// A command in a host ended with this code.
    #[error("")]
    Code(u8),
    #[error("the working directory is not known: {0}")]
    Folder(io::Error),
    #[error("cannot write {}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot print: {0}")]
    Print(io::Error),
    /// Everything was said already.
    #[error("")]
    Said,
}

impl CommandError {
    /// See `nigh --help`.
    fn code(&self) -> u8 {
        match self {
            Self::Ask(AskError::NoDaemon(_)) => 3,
            Self::Mask(mask::cli::CliError::Leak) => 4,
            Self::Code(code) => *code,
            _ => 1,
        }
    }
}

/// Reads the command line, does what it says and reports how it went.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run(&args),
        Command::Check(args) => check(&args),
        Command::Status(args) => status(&args),
        Command::Drain(args) => tell(&args, &Request::Drain {}, |answer| {
            let seconds = answer["seconds"].as_f64().unwrap_or_default();
            format!(
                "drained in {seconds:.1} s: the node can be stopped, and stays drained until `nigh undrain`\n"
            )
        }),
        Command::Undrain(args) => tell(&args, &Request::Undrain {}, |_| {
            "in service again: announced as soon as health allows it\n".into()
        }),
        Command::Reload(args) => tell(&args, &Request::Reload {}, reloaded),
        Command::Echo(args) => echo(&args),
        Command::Oracle(args) => oracle(&args),
        Command::Probe(args) => probe(&args),
        Command::Gate(args) => gate(&args),
        Command::Mask(args) => mask::cli::run(&args.command, args.json)
            .or_else(|error| if error.is_broken_pipe() { Ok(()) } else { Err(error.into()) }),
        Command::Lab(args) => lab(&args),
        Command::Psock(args) => psock::cli::run(&args.command).map_err(Into::into),
        Command::Blast(args) => blast(&args),
        Command::Completions(args) => completions(&args),
        Command::Man(args) => man(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let sentence = error.to_string();
            if !sentence.is_empty() {
                let _ = writeln!(io::stderr(), "nigh: {sentence}");
            }
            ExitCode::from(error.code())
        }
    }
}

/// Sends echo requests; when nothing came back, the report has said so.
fn blast(args: &echo::blast::Args) -> Result<(), CommandError> {
    if echo::blast::run(args)? { Ok(()) } else { Err(CommandError::Said) }
}

/// Prints `text`; a reader that has seen enough (`nigh status | head -1`) is no error.
fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CommandError::Print(error)),
        _ => Ok(()),
    }
}

/// Prints a value as JSON for programs.
fn print_json(value: &Value) -> Result<(), CommandError> {
    print(&format!("{value:#}\n"))
}

/// Shows on stderr everything that is wrong with a file.
fn explain(error: LoadError) -> CommandError {
    match error {
        LoadError::Wrong(report) => {
            let _ = io::stderr().write_all(report.render().as_bytes());
            let problems = match report.errors() {
                1 => "one problem".to_owned(),
                count => format!("{count} problems"),
            };
            let _ = writeln!(
                io::stderr(),
                "nigh: {} has {problems}; nothing was started or changed",
                report.file.display()
            );
            CommandError::Said
        }
        error => error.into(),
    }
}

fn run(args: &crate::cli::RunArgs) -> Result<(), CommandError> {
    daemon::run(args).map_err(|error| match error {
        daemon::RunError::Load(error) => explain(error),
        error => Box::new(error).into(),
    })
}

fn check(args: &CheckArgs) -> Result<(), CommandError> {
    let result = config::load(&args.config);
    if args.json {
        let (report, good) = match &result {
            Ok(loaded) => (&loaded.report, true),
            Err(LoadError::Wrong(report)) => (report, false),
            Err(_) => return result.map(drop).map_err(Into::into),
        };
        print_json(&json!({ "file": report.file, "good": good, "findings": report.findings }))?;
        return if good { Ok(()) } else { Err(CommandError::Said) };
    }
    let loaded = result.map_err(explain)?;
    let _ = io::stderr().write_all(loaded.report.render().as_bytes());
    print(&format!("{} is good\n", args.config.display()))
}

/// Asks the daemon that `target` names.
fn ask(target: &Target, request: &Request) -> Result<Value, CommandError> {
    let path = target.path().map_err(explain)?;
    Ok(client::ask(&path, request)?)
}

fn status(args: &StatusArgs) -> Result<(), CommandError> {
    let answer = ask(&args.target, &Request::Status { text: !args.json })?;
    match answer {
        Value::String(text) if !args.json => print(&text),
        value => print_json(&value),
    }
}

/// Sends a request without arguments and prints the answer.
fn tell(
    args: &ControlArgs,
    request: &Request,
    render: impl Fn(&Value) -> String,
) -> Result<(), CommandError> {
    let answer = ask(&args.target, request)?;
    if args.json { print_json(&answer) } else { print(&render(&answer)) }
}

fn echo(args: &EchoArgs) -> Result<(), CommandError> {
    let request = Request::Echo { request: args.command.request() };
    let answer = ask(&args.target, &request)?;
    if args.json { print_json(&answer) } else { print(&args.command.render(&answer)?) }
}

fn probe(args: &ProbeArgs) -> Result<(), CommandError> {
    use probe::cli::Command;
    match &args.command {
        Command::Show(show) => {
            let mut show = show.clone();
            if let Some(folder) = archive_of(&args.target)? {
                show.archive = folder;
            }
            show.json |= args.json;
            Ok(probe::show::cli::run(&show)?)
        }
        Command::Export(export) => {
            let mut export = export.clone();
            if let Some(folder) = archive_of(&args.target)? {
                export.archive = folder;
            }
            let files = probe::archive::export_days(&export)?;
            if args.json {
                print_json(&json!(files))
            } else {
                print(&probe::archive::render_exported(&files))
            }
        }
        Command::Operation(operation) => {
            let request = Request::Probe { request: operation.request() };
            let progress = operation.progress();
            let answer = ask(&args.target, &request);
            drop(progress);
            let answer = answer?;
            if args.json {
                print_json(&answer)?
            } else {
                print(&operation.render(&answer)?)?
            }
            // The record says why.
            if probe::cli::failed(&answer) { Err(CommandError::Said) } else { Ok(()) }
        }
    }
}

fn gate(args: &GateArgs) -> Result<(), CommandError> {
    use gate::cli::Command;
    match &args.command {
        Command::Operation(operation) => {
            let request = Request::Gate { request: operation.request()? };
            let answer = ask(&args.target, &request)?;
            if args.json { print_json(&answer) } else { print(&operation.render(&answer)?) }
        }
        Command::Watch => {
            let path = args.target.path().map_err(explain)?;
            Ok(gate::cli::watch(|request| client::ask(&path, &Request::Gate { request }))?)
        }
        Command::Classify(classify) => {
            let gate = match &args.target.config {
                Some(file) => config::load(file).map_err(explain)?.sections.gate,
                None => None,
            };
            let settings = gate.map(|gate| (&gate.gate).into()).unwrap_or_default();
            gate::cli::classify(classify, settings, args.json, &mut io::stdout().lock())
                .or_else(|error| if error.is_broken_pipe() { Ok(()) } else { Err(error.into()) })
        }
        Command::Replay(replay) => {
            let sent = gate::cli::replay(replay)?;
            if args.json { print_json(&json!(sent)) } else { print(&sent.to_string()) }
        }
    }
}

/// Where the archive of a station is, by its configuration file if that is given.
fn archive_of(target: &Target) -> Result<Option<PathBuf>, CommandError> {
    let Some(file) = &target.config else { return Ok(None) };
    let state = config::load(file).map_err(explain)?.node.state;
    Ok(Some(state.join(probe::service::ARCHIVE)))
}

fn oracle(args: &OracleArgs) -> Result<(), CommandError> {
    use oracle::cli::Command;
    let ask = |target: &Target| {
        let path = target.path().map_err(explain)?;
        Ok::<_, CommandError>(move |request: &oracle::control::Request| {
            client::ask(&path, &Request::Oracle { request: request.clone() })
        })
    };
    match &args.command {
        // When no answer came, the report has said so.
        Command::Client(command) => {
            if oracle::client::run(command)? {
                Ok(())
            } else {
                Err(CommandError::Said)
            }
        }
        Command::Console { daemon } => Ok(oracle::console::run(ask(&daemon.target)?)?),
        Command::Operation(operation) => {
            let daemon = operation.daemon();
            let request = operation.request().map_err(CommandError::Folder)?;
            let answer = ask(&daemon.target)?(&request)?;
            if daemon.json { print_json(&answer) } else { print(&operation.render(&answer)?) }
        }
    }
}

fn lab(args: &LabArgs) -> Result<(), CommandError> {
    use lab::{
        cli::{Command, clean, exec, run},
        control::{cli as control, files},
    };
    match &args.command {
        Command::Run(args) => {
            let (scene, stage) = scene::load(&args.scene).map_err(|error| match error {
                SceneError::Load(error) => explain(error),
                SceneError::Stage(error) => error.into(),
            })?;
            let web = args.http.map(http::lab::Listener::bind).transpose()?;
            let code = run(args, &scene, stage, web, |text| drop(print(text)))?;
            if code == 0 { Ok(()) } else { Err(CommandError::Code(code)) }
        }
        Command::Exec(args) => Err(exec(args).into()),
        Command::Clean(args) => print(&clean(args)?),
        Command::Import(args) => print(&lab::import::command::run(args)?),
        Command::Status(args) => print(&control::status(args)?),
        Command::Path(args) => print(&control::path(args)?),
        Command::Link(args) => print(&control::link(args)?),
        Command::Links(args) => print(&control::links(args)?),
        Command::Node(args) => print(&control::node(args)?),
        Command::Events(args) => Ok(control::events(args)?),
        Command::Capture(args) => {
            let said = lab::capture::cli::capture(args)?;
            let _ = io::stderr().write_all(said.as_bytes());
            Ok(())
        }
        Command::View(args) => Ok(lab::view::view(args)?),
        Command::Gen(args) => print(&files::generate(args)?),
        Command::Show(args) => print(&files::describe(args)?),
    }
}

fn reloaded(answer: &Value) -> String {
    let mut text = format!("{} is in force\n", answer["reloaded"].as_str().unwrap_or_default());
    for key in answer["restart_to_apply"].as_array().into_iter().flatten() {
        text += &format!("{} changed: restart to apply\n", key.as_str().unwrap_or_default());
    }
    for warning in answer["warnings"].as_array().into_iter().flatten() {
        text += &format!("warning: {}\n", warning["message"].as_str().unwrap_or_default());
    }
    text
}

fn completions(args: &CompletionsArgs) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nigh", &mut script);
    print(&String::from_utf8_lossy(&script))
}

fn man(args: &ManArgs) -> Result<(), CommandError> {
    if args.directory == Path::new("-") {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(CommandError::Print)?;
        return print(&String::from_utf8_lossy(&page));
    }
    let write = || {
        std::fs::create_dir_all(&args.directory)?;
        clap_mangen::generate_to(Cli::command(), &args.directory)
    };
    write().map_err(|source| CommandError::Write { path: args.directory.clone(), source })
}
