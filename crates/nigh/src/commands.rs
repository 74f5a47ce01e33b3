//! What each sub-command does, and how it prints and fails.

use crate::{
    cli::{
        CheckArgs, Cli, Command, CompletionsArgs, DaemonArgs, EchoArgs, EchoCommand, GateArgs,
        GateCommand, LabArgs, LogFormat, ManArgs, OracleArgs, OracleCommand, ProbeArgs,
        ProbeCommand, Target,
    },
    client::{self, AskError},
    complete,
    config::{
        self,
        scene::{self, SceneError},
    },
    control::Request,
    daemon,
    kernel::Kernel,
    logging, man, man5, privileges,
};
use clap::{CommandFactory, Parser, error::ErrorKind as Wrong};
use job::{
    Interface,
    command::{ControlCommand, Exit, Failure, Outcome, print, print_json, print_result},
    file::{LoadError, Report},
};
use lab::{scene::Scene, stage::Stage};
use serde_json::{Value, json};
use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

/// A file cannot be written, or there is no such shell: what, and why.
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
    match run(&Cli::parse().command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let _ = writeln!(io::stderr(), "nigh: {failure}");
            failure.exit.into()
        }
    }
}

fn run(command: &Command) -> Outcome {
    match command {
        Command::Run(args) => daemon::run(args).map(|()| Exit::Done).map_err(|error| match error {
            daemon::RunError::Load(error) => {
                let mut failure = explain(error);
                failure.exit = Exit::Configuration;
                failure
            }
            error => error.into(),
        }),
        Command::Check(args) => check(args),
        Command::Status(daemon) => status(daemon, None),
        Command::Drain(daemon) => tell(daemon, &Request::Drain {}, |answer| {
            let seconds = answer["seconds"].as_f64().unwrap_or_default();
            format!(
                "drained in {seconds:.1} s: the node can be stopped, and stays drained until `nigh undrain`\n"
            )
        }),
        Command::Undrain(daemon) => tell(daemon, &Request::Undrain {}, |_| {
            "in service again: prefixes are announced as soon as the node is healthy\n".into()
        }),
        Command::Reload(daemon) => tell(daemon, &Request::Reload {}, reloaded),
        Command::Echo(EchoArgs { command, daemon }) => match command {
            EchoCommand::Status => status(daemon, Some("echo")),
            EchoCommand::Operation(operation) => ask_job(daemon, "echo", operation),
        },
        Command::Oracle(args) => oracle(args),
        Command::Probe(args) => probe(args),
        Command::Gate(args) => gate(args),
        Command::Mask(args) => Ok(mask::cli::run(&args.command, args.json)?),
        Command::Lab(args) => lab(args),
        Command::Psock(args) => Ok(psock::cli::run(&args.command).map(|()| Exit::Done)?),
        Command::Blast(args) => Ok(echo::blast::run(args)?),
        Command::Completions(args) => completions(args),
        Command::Man(args) => man(args),
    }
}

/// Shows on stderr everything that is wrong with a file.
fn explain(error: LoadError) -> Failure {
    let LoadError::Wrong(report) = error else { return error.into() };
    let _ = io::stderr().write_all(report.render().as_bytes());
    let problems = match report.errors() {
        1 => "one problem".to_owned(),
        count => format!("{count} problems"),
    };
    let file = report.file.display();
    let sentence = format!("{file} has {problems}; nothing was started or changed");
    Failure::new(Exit::Failed, sentence)
}

fn check(args: &CheckArgs) -> Outcome {
    if args.schema {
        return Ok(print_json(config::schema().as_value())?);
    }
    if args.template {
        return Ok(print(&config::template::file())?);
    }
    if args.kernel {
        return kernel(args);
    }
    let result = match args.host {
        true => config::load_for(&args.config, privileges::user_of_daemon(&args.user)?),
        false => config::load(&args.config),
    };
    if args.json {
        let (report, valid) = match &result {
            Ok(loaded) => (&loaded.report, true),
            Err(LoadError::Wrong(report)) => (report, false),
            Err(_) => return Ok(result.map(|_| Exit::Done)?),
        };
        print_json(&json!({ "file": report.file, "valid": valid, "findings": report.findings }))?;
        return Ok(Exit::of(valid));
    }
    let loaded = result.map_err(explain)?;
    let _ = io::stderr().write_all(loaded.report.render().as_bytes());
    Ok(print(&format!("{} is valid\n", args.config.display()))?)
}

/// Shows what this kernel can do.
fn kernel(CheckArgs { config, json, interfaces, .. }: &CheckArgs) -> Outcome {
    if let Some(filter) = env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty()) {
        logging::start(&filter, Some(LogFormat::Text))?;
    }
    let is_read =
        interfaces.is_empty() && (config != Path::new(config::DEFAULT_FILE) || config.exists());
    let configured = is_read.then(|| config::load(config).map_err(explain)).transpose()?;
    let configured = configured.map(|loaded| loaded.jobs);
    let of = |names: &[String]| names.iter().map(|name| Interface::of(name)).collect();
    let interfaces = match &configured {
        Some(jobs) => of(&jobs.all_interfaces()),
        None if interfaces.is_empty() => Interface::all(),
        None => of(interfaces),
    };
    let kernel = Kernel::probe(interfaces, configured.as_ref());
    if *json {
        print_json(&kernel)?;
    } else {
        print(&kernel.render())?;
    }
    Ok(Exit::of(kernel.is_enough()))
}

/// Asks the daemon that `target` names.
fn ask(target: &Target, request: &Request) -> Result<Value, Failure> {
    client::ask(&target.path().map_err(explain)?, request).map_err(unanswered)
}

fn unanswered(error: AskError) -> Failure {
    let none = matches!(error, AskError::NoDaemon(_));
    Failure::new(if none { Exit::NoDaemon } else { Exit::Failed }, error)
}

/// Shows the state of the node, or of one job; fails where that is not healthy.
fn status(daemon: &DaemonArgs, job: Option<&str>) -> Outcome {
    let request = |text| Request::Status { text, job: job.map(str::to_owned) };
    let state = ask(&daemon.target, &request(false))?;
    if daemon.json {
        print_json(&state)?;
    } else {
        print(ask(&daemon.target, &request(true))?.as_str().unwrap_or_default())?;
    }
    Ok(Exit::of_state(if job.is_some() { &state } else { &state["node"] }))
}

/// Sends a request without arguments and prints the answer.
fn tell(daemon: &DaemonArgs, request: &Request, render: impl Fn(&Value) -> String) -> Outcome {
    let answer = ask(&daemon.target, request)?;
    Ok(if daemon.json { print_json(&answer)? } else { print(&render(&answer))? })
}

/// Carries out a command that the daemon's job of this name answers.
fn ask_job(daemon: &DaemonArgs, job: &str, command: &impl ControlCommand) -> Outcome {
    let request = command.request().map_err(|error| Failure::new(Exit::Usage, error))?;
    let path = daemon.target.path().map_err(explain)?;
    let progress = command.progress();
    let answer = client::ask_job(&path, job, &request);
    drop(progress);
    let answer = answer.map_err(unanswered)?;
    if daemon.json {
        print_json(&answer)?
    } else {
        print(&command.render(&answer)?)?
    };
    Ok(command.exit(&answer))
}

fn probe(ProbeArgs { command, daemon }: &ProbeArgs) -> Outcome {
    use probe::cli::Command;
    let command = match command {
        ProbeCommand::Status => return status(daemon, Some("probe")),
        ProbeCommand::Operation(command) => command,
    };
    match command {
        Command::Show(show) => {
            refuse(daemon.target.socket.is_some(), "--socket", "probe show");
            let archive = archive_of("probe show", &daemon.target, show.archive.as_deref())?;
            let mut show = show.clone();
            show.json |= daemon.json;
            Ok(probe::show::cli::run(&show, &archive).map(|()| Exit::Done)?)
        }
        Command::Export(export) => {
            refuse(daemon.target.socket.is_some(), "--socket", "probe export");
            let archive = archive_of("probe export", &daemon.target, export.archive.as_deref())?;
            let files = probe::archive::export_days(export, &archive)?;
            Ok(if daemon.json {
                print_json(&files)?
            } else {
                print(&probe::archive::render_exported(&files))?
            })
        }
        Command::Operation(operation) => ask_job(daemon, "probe", operation),
    }
}

/// Ends nigh as for a wrong command line if an option was given that the command does not take.
fn refuse(given: bool, option: &str, command: &str) {
    if given {
        conflict(command, &format!("`nigh {command}` does not take {option}"));
    }
}

/// Ends nigh as clap does for arguments of this command that exclude each other.
fn conflict(command: &str, text: &str) -> ! {
    let mut nigh = Cli::command();
    nigh.build();
    let mut found = &mut nigh;
    for name in command.split(' ') {
        found = found.find_subcommand_mut(name).expect("a command of nigh");
    }
    found.error(Wrong::ArgumentConflict, text).exit()
}

fn gate(GateArgs { command, daemon }: &GateArgs) -> Outcome {
    use gate::cli::Command;
    let DaemonArgs { target, json } = daemon;
    let command = match command {
        GateCommand::Status => return status(daemon, Some("gate")),
        GateCommand::Operation(command) => command,
    };
    match command {
        Command::Operation(operation) => ask_job(daemon, "gate", operation),
        Command::Watch => {
            refuse(*json, "--json", "gate watch");
            let path = target.path().map_err(explain)?;
            let ask = |request: Option<_>| match request {
                None => client::status(&path, "gate", false),
                Some(request) => client::ask_job(&path, "gate", &request),
            };
            Ok(gate::cli::watch(ask).map(|()| Exit::Done)?)
        }
        Command::Classify(classify) => {
            refuse(target.socket.is_some(), "--socket", "gate classify");
            let gate = match &target.config {
                Some(file) => Some(config::load(file).map_err(explain)?.jobs),
                None => None,
            };
            let gate = gate.as_ref().and_then(|jobs| jobs.get::<gate::config::Config>());
            let settings = gate.map(|gate| (&gate.gate).into()).unwrap_or_default();
            match gate::cli::classify(classify, settings, *json, &mut io::stdout().lock()) {
                Err(error) if !error.is_broken_pipe() => Err(error.into()),
                _ => Ok(Exit::Done),
            }
        }
        Command::Detach => {
            refuse(target.socket.is_some(), "--socket", "gate detach");
            refuse(target.config.is_some(), "--config", "gate detach");
            Ok(print_result(*json, &gate::cli::detach()?)?)
        }
        Command::Replay(replay) => {
            refuse(target.socket.is_some(), "--socket", "gate replay");
            refuse(target.config.is_some(), "--config", "gate replay");
            Ok(print_result(*json, &gate::cli::replay(replay)?)?)
        }
    }
}

/// Where the archive of a station is: as given, else by its configuration file.
fn archive_of(command: &str, target: &Target, given: Option<&Path>) -> Result<PathBuf, Failure> {
    let state = match (given, &target.config) {
        (Some(_), Some(_)) => {
            conflict(command, "--archive cannot be used with --config, which names the archive too")
        }
        (Some(folder), None) => return Ok(folder.to_owned()),
        (None, Some(file)) => config::load(file).map_err(explain)?.node.state,
        (None, None) => config::path_of(Path::new(config::DEFAULT_FILE), "state")
            .unwrap_or_else(|| config::NodeConfig::default().state),
    };
    Ok(state.join(probe::service::ARCHIVE))
}

fn oracle(args: &OracleArgs) -> Outcome {
    use oracle::cli::Command;
    match &args.command {
        OracleCommand::Console(target) => {
            refuse(args.json, "--json", "oracle console");
            let path = target.path().map_err(explain)?;
            let ask = |request: &_| client::ask_job(&path, "oracle", request);
            let status = |text| client::status(&path, "oracle", text);
            Ok(oracle::console::run(ask, status).map(|()| Exit::Done)?)
        }
        OracleCommand::Status(daemon) => status(daemon, Some("oracle")),
        OracleCommand::Operation(Command::Client(command)) => Ok(oracle::client::run(command)?),
        OracleCommand::Operation(Command::Operation(operation)) => {
            ask_job(operation.daemon(), "oracle", operation)
        }
    }
}

fn lab(LabArgs { command, json }: &LabArgs) -> Outcome {
    use lab::cli::Command;
    match command {
        Command::Exec(_) => refuse(*json, "--json", "lab exec"),
        Command::View(_) => refuse(*json, "--json", "lab view"),
        _ => {}
    }
    lab::cli::run(command, scene)
}

/// Reads the scene of a lab.
fn scene(path: &Path) -> Result<(Scene, Stage), Failure> {
    scene::load(path).map_err(|error| match error {
        SceneError::Load(error) => explain(error),
        SceneError::Stage(error) => error.into(),
    })
}

fn reloaded(answer: &Value) -> String {
    let file = answer["reloaded"].as_str().unwrap_or_default();
    let mut text = format!("{file} is in force\n");
    for key in answer["restart_to_apply"].as_array().into_iter().flatten() {
        text +=
            &format!("{} changed: restart the daemon to apply\n", key.as_str().unwrap_or_default());
    }
    let findings = serde_json::from_value(answer["warnings"].clone()).unwrap_or_default();
    text + &Report { file: file.into(), findings }.render()
}

fn completions(args: &CompletionsArgs) -> Outcome {
    Ok(print(&complete::script(args.shell).map_err(io_error("no completions"))?)?)
}

fn man(ManArgs { directory }: &ManArgs) -> Outcome {
    if directory == Path::new("-") {
        let page = man::first().map_err(io_error("cannot print"))?;
        return Ok(print(&String::from_utf8_lossy(&page))?);
    }
    let written = man::write(directory).and_then(|()| man5::write(directory));
    written.map_err(io_error(format!("cannot write {}", directory.display())))?;
    Ok(Exit::Done)
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
             node.name changed: restart the daemon to apply\n\
             warning: anycast.upstream: there is none\n \
             --> /etc/nigh/nigh.toml:4:2\n  |\n4 | [anycast]\n  |  ^^^^^^^\n"
        );
    }
}
