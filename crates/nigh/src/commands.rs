//! What each sub-command does, and how it prints and fails.

use crate::{
    cli::{
        CheckArgs, Cli, Command, CompletionsArgs, ControlArgs, EchoArgs, EchoCommand, GateArgs,
        LabArgs, ManArgs, OracleArgs, OracleCommand, ProbeArgs, Target,
    },
    client::{self, AskError},
    complete,
    config::{
        self,
        scene::{self, SceneError},
    },
    control::Request,
    daemon,
    exit::Exit,
    man, man5,
};
use clap::{CommandFactory, Parser, error::ErrorKind as Wrong};
use job::file::{LoadError, Report};
use serde_json::{Value, json};
use std::{
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// How a command ended that did not succeed: its exit code, and one sentence unless all was printed.
struct Failure {
    exit: Exit,
    error: Option<job::Error>,
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: job::Error = error.into();
        let exit = exit_of(&error);
        Self { exit, error: Some(error) }
    }
}

/// The exit code of an error.
fn exit_of(error: &job::Error) -> Exit {
    use lab::{capture::CaptureError, control::cli::UseError, run::ExecError, view::ViewError};
    let lab = error.downcast_ref::<UseError>().or(match error.downcast_ref() {
        Some(CaptureError::Use(error)) => Some(error),
        _ => None,
    });
    let lab = lab.or(match error.downcast_ref() {
        Some(ViewError::Use(error)) => Some(error),
        _ => None,
    });
    if lab.is_some_and(UseError::is_no_lab) {
        return Exit::NoDaemon;
    }
    if let Some(error) = error.downcast_ref::<ExecError>() {
        return Exit::Command(error.exit_code());
    }
    if let Some(lab::run::RunError::Exec(error @ ExecError::Start { .. })) = error.downcast_ref() {
        return Exit::Command(error.exit_code());
    }
    match error.downcast_ref() {
        Some(AskError::NoDaemon(_)) => Exit::NoDaemon,
        _ if matches!(error.downcast_ref(), Some(mask::cli::CliError::Leak)) => Exit::Leak,
        _ => Exit::Failed,
    }
}

impl From<Exit> for Failure {
    fn from(exit: Exit) -> Self {
        Self { exit, error: None }
    }
}

/// Everything was printed already.
const PRINTED: Failure = Failure { exit: Exit::Failed, error: None };

/// What a command does.
type Done = Result<(), Failure>;

/// A file or the output cannot be written, or a folder not be found: what, and why.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
struct IoError {
    what: String,
    source: io::Error,
}

/// An error of the system in what the command was about to do.
fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> IoError {
    let what = what.into();
    move |source| IoError { what, source }
}

/// Reads the command line, does what it says and reports how it went.
pub fn main() -> ExitCode {
    complete::answer();
    let result = match Cli::parse().command {
        Command::Run(args) => run(&args),
        Command::Check(args) => check(&args),
        Command::Status(args) => status(&args.target, args.json, None),
        Command::Drain(args) => tell(&args, &Request::Drain {}, |answer| {
            let seconds = answer["seconds"].as_f64().unwrap_or_default();
            format!(
                "drained in {seconds:.1} s: the node can be stopped, and stays drained until `nigh undrain`\n"
            )
        }),
        Command::Undrain(args) => tell(&args, &Request::Undrain {}, |_| {
            "in service again: prefixes are announced as soon as health allows it\n".into()
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
        Ok(()) => Exit::Done.into(),
        Err(Failure { exit, error }) => {
            let sentence = error.map(|error| error.to_string()).unwrap_or_default();
            if !sentence.is_empty() {
                let _ = writeln!(io::stderr(), "nigh: {sentence}");
            }
            exit.into()
        }
    }
}

/// Sends echo requests; when nothing came back, the report has said so.
fn blast(args: &echo::blast::Args) -> Done {
    if echo::blast::run(args)? { Ok(()) } else { Err(PRINTED) }
}

/// Prints `text`; a reader that has seen enough (`nigh status | head -1`) is no error.
fn print(text: &str) -> Done {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(io_error("cannot print")(error).into())
        }
        _ => Ok(()),
    }
}

/// Prints a value as JSON for programs.
fn print_json(value: &Value) -> Done {
    print(&format!("{value:#}\n"))
}

/// Shows on stderr everything that is wrong with a file.
fn explain(error: LoadError) -> Failure {
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
            PRINTED
        }
        error => error.into(),
    }
}

fn run(args: &crate::cli::RunArgs) -> Done {
    daemon::run(args).map_err(|error| match error {
        daemon::RunError::Load(error) => explain(error),
        error => error.into(),
    })
}

fn check(args: &CheckArgs) -> Done {
    if args.schema {
        return print_json(config::schema().as_value());
    }
    let result = config::load(&args.config);
    if args.json {
        let (report, good) = match &result {
            Ok(loaded) => (&loaded.report, true),
            Err(LoadError::Wrong(report)) => (report, false),
            Err(_) => return result.map(drop).map_err(Into::into),
        };
        print_json(&json!({ "file": report.file, "good": good, "findings": report.findings }))?;
        return if good { Ok(()) } else { Err(PRINTED) };
    }
    let loaded = result.map_err(explain)?;
    let _ = io::stderr().write_all(loaded.report.render().as_bytes());
    print(&format!("{} is good\n", args.config.display()))
}

/// Asks the daemon that `target` names.
fn ask(target: &Target, request: &Request) -> Result<Value, Failure> {
    let path = target.path().map_err(explain)?;
    Ok(client::ask(&path, request)?)
}

/// Asks a job of the daemon that `target` names.
fn ask_job(target: &Target, name: &str, request: &impl serde::Serialize) -> Result<Value, Failure> {
    let path = target.path().map_err(explain)?;
    Ok(client::ask_job(&path, name, request)?)
}

/// Shows the state of the node, or of one job; fails where that is not healthy.
fn status(target: &Target, json: bool, job: Option<&str>) -> Done {
    let state = ask(target, &Request::Status { text: false, job: job.map(str::to_owned) })?;
    if json {
        print_json(&state)?;
    } else {
        let text = ask(target, &Request::Status { text: true, job: job.map(str::to_owned) })?;
        print(text.as_str().unwrap_or_default())?;
    }
    judge(if job.is_some() { &state } else { &state["node"] })
}

/// How a command ends that has printed a state.
fn judge(state: &Value) -> Done {
    if state["healthy"] == false { Err(Exit::Unhealthy.into()) } else { Ok(()) }
}

/// Sends a request without arguments and prints the answer.
fn tell(args: &ControlArgs, request: &Request, render: impl Fn(&Value) -> String) -> Done {
    let answer = ask(&args.target, request)?;
    if args.json { print_json(&answer) } else { print(&render(&answer)) }
}

fn echo(args: &EchoArgs) -> Done {
    let command = match &args.command {
        EchoCommand::Status => return status(&args.target, args.json, Some("echo")),
        EchoCommand::Operation(command) => command,
    };
    let answer = ask_job(&args.target, "echo", &command.request())?;
    if args.json { print_json(&answer) } else { print(&command.render(&answer)?) }
}

fn probe(args: &ProbeArgs) -> Done {
    use probe::cli::Command;
    match &args.command {
        Command::Show(show) => {
            refuse(args.target.socket.is_some(), "--socket", "probe show");
            let archive = archive_of(&args.target, show.archive.as_deref())?;
            let mut show = show.clone();
            show.json |= args.json;
            Ok(probe::show::cli::run(&show, &archive)?)
        }
        Command::Export(export) => {
            refuse(args.target.socket.is_some(), "--socket", "probe export");
            let archive = archive_of(&args.target, export.archive.as_deref())?;
            let files = probe::archive::export_days(export, &archive)?;
            if args.json {
                print_json(&json!(files))
            } else {
                print(&probe::archive::render_exported(&files))
            }
        }
        Command::Operation(operation) => {
            let progress = operation.progress();
            let answer = ask_job(&args.target, "probe", &operation.request());
            drop(progress);
            let answer = answer?;
            if args.json {
                print_json(&answer)?
            } else {
                print(&operation.render(&answer)?)?
            }
            // The record says why.
            if probe::cli::failed(&answer) { Err(PRINTED) } else { judge(&answer) }
        }
    }
}

/// Ends nigh as for a wrong command line where an option was given that the command has no use for.
fn refuse(given: bool, option: &str, command: &str) {
    if given {
        let text = format!("`nigh {command}` has no use for {option}\n");
        Cli::command().error(Wrong::ArgumentConflict, text).exit();
    }
}

fn gate(args: &GateArgs) -> Done {
    use gate::cli::Command;
    let Target { socket, config } = &args.target;
    let is_given = (socket.is_some(), config.is_some(), args.json);
    match &args.command {
        Command::Operation(operation) => {
            let answer = ask_job(&args.target, "gate", &operation.request()?)?;
            if args.json {
                print_json(&answer)?
            } else {
                print(&operation.render(&answer)?)?
            }
            judge(&answer)
        }
        Command::Watch => {
            refuse(is_given.2, "--json", "gate watch");
            let path = args.target.path().map_err(explain)?;
            Ok(gate::cli::watch(|request| client::ask_job(&path, "gate", &request))?)
        }
        Command::Classify(classify) => {
            refuse(is_given.0, "--socket", "gate classify");
            let gate = match &args.target.config {
                Some(file) => Some(config::load(file).map_err(explain)?.jobs),
                None => None,
            };
            let gate = gate.as_ref().and_then(|jobs| jobs.get::<gate::config::Config>());
            let settings = gate.map(|gate| (&gate.gate).into()).unwrap_or_default();
            gate::cli::classify(classify, settings, args.json, &mut io::stdout().lock())
                .or_else(|error| if error.is_broken_pipe() { Ok(()) } else { Err(error.into()) })
        }
        Command::Replay(replay) => {
            refuse(is_given.0, "--socket", "gate replay");
            refuse(is_given.1, "--config", "gate replay");
            let sent = gate::cli::replay(replay)?;
            if args.json { print_json(&json!(sent)) } else { print(&sent.to_string()) }
        }
    }
}

/// Where the archive of a station is: as given, else by its configuration file.
fn archive_of(target: &Target, given: Option<&Path>) -> Result<PathBuf, Failure> {
    let state = match (given, &target.config) {
        (Some(_), Some(_)) => {
            let text = "--archive cannot be used with --config, which names the archive too\n";
            Cli::command().error(Wrong::ArgumentConflict, text).exit()
        }
        (Some(folder), None) => return Ok(folder.to_owned()),
        (None, Some(file)) => config::load(file).map_err(explain)?.node.state,
        (None, None) => config::path_of(Path::new(config::DEFAULT_FILE), "state")
            .unwrap_or_else(|| config::NodeConfig::default().state),
    };
    Ok(state.join(probe::service::ARCHIVE))
}

fn oracle(args: &OracleArgs) -> Done {
    use oracle::cli::Command;
    let ask = |target: &Target| {
        let path = target.path().map_err(explain)?;
        Ok::<_, Failure>(move |request: &oracle::control::Request| {
            client::ask_job(&path, "oracle", request)
        })
    };
    let command = match &args.command {
        OracleCommand::Status(daemon) => {
            return status(&daemon.target, daemon.json, Some("oracle"));
        }
        OracleCommand::Console(target) => return Ok(oracle::console::run(ask(target)?)?),
        OracleCommand::Operation(command) => command,
    };
    match command {
        // When no answer came, the report has said so.
        Command::Client(command) => {
            if oracle::client::run(command)? {
                Ok(())
            } else {
                Err(PRINTED)
            }
        }
        Command::Operation(operation) => {
            let daemon = operation.daemon();
            let answer = ask(&daemon.target)?(&operation.request()?)?;
            if daemon.json { print_json(&answer) } else { print(&operation.render(&answer)?) }
        }
    }
}

fn lab(args: &LabArgs) -> Done {
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
            let web = args.http.map(lab::http::Listener::bind).transpose()?;
            let code = run(args, &scene, stage, web, |text| drop(print(text)))?;
            if code == 0 { Ok(()) } else { Err(Exit::Command(code).into()) }
        }
        Command::Exec(args) => Err(exec(args).into()),
        Command::Clean(args) => print(&clean(args)?),
        Command::Import(args) => print(&lab::import::command::run(args)?),
        Command::Status(args) => print(&control::status(args)?),
        Command::Path(args) => {
            let (text, arrives) = control::path(args)?;
            print(&text)?;
            if arrives { Ok(()) } else { Err(PRINTED) }
        }
        Command::Link(args) => print(&control::link(args)?),
        Command::Links(args) => print(&control::links(args)?),
        Command::Node(args) => print(&control::node(args)?),
        Command::Events(args) => Ok(control::events(args)?),
        Command::Capture(args) => {
            let captured = lab::capture::capture(args)?;
            let text = match args.json {
                true => format!("{}\n", json!(captured)),
                false => format!("{captured}\n"),
            };
            if args.json && args.write != Path::new("-") {
                return print(&text);
            }
            let _ = io::stderr().write_all(text.as_bytes());
            Ok(())
        }
        Command::View(args) => Ok(lab::view::view(args)?),
        Command::Gen(args) => print(&files::generate(args)?),
        Command::Show(args) => print(&files::describe(args)?),
    }
}

fn reloaded(answer: &Value) -> String {
    let file = answer["reloaded"].as_str().unwrap_or_default();
    let mut text = format!("{file} is in force\n");
    for key in answer["restart_to_apply"].as_array().into_iter().flatten() {
        text += &format!("{} changed: restart to apply\n", key.as_str().unwrap_or_default());
    }
    let findings = serde_json::from_value(answer["warnings"].clone()).unwrap_or_default();
    text + &Report { file: file.into(), findings }.render()
}

fn completions(args: &CompletionsArgs) -> Done {
    print(&complete::script(args.shell).map_err(io_error("no completions"))?)
}

fn man(args: &ManArgs) -> Done {
    let ManArgs { directory } = args;
    if directory == Path::new("-") {
        let page = man::first().map_err(io_error("cannot print"))?;
        return print(&String::from_utf8_lossy(&page));
    }
    let written = man::write(directory).and_then(|()| man5::write(directory));
    Ok(written.map_err(io_error(format!("cannot write {}", directory.display())))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_shows_its_warnings_as_check_does() {
        let answer = json!({
            "reloaded": "/etc/nigh/nigh.toml",
            "restart_to_apply": ["node.name"],
            "warnings": [{
                "severity": "warning", "line": 4, "column": 2, "key": "anycast.upstream",
                "message": "there is none", "text": "[anycast]", "length": 7
            }],
        });
        assert_eq!(
            reloaded(&answer),
            "/etc/nigh/nigh.toml is in force\n\
             node.name changed: restart to apply\n\
             warning: anycast.upstream: there is none\n \
             --> /etc/nigh/nigh.toml:4:2\n  |\n4 | [anycast]\n  |  ^^^^^^^\n"
        );
    }
}
