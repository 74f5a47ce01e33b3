//! Completion in a shell: commands and options, and names that only the system knows.
//!
//! The script that `nigh completions` prints calls nigh itself with the variable `VARIABLE` set and
//! the words that were typed ([`clap_complete::env`]). Only then names are looked up, for at most
//! `TIMEOUT`: in the configuration, at the daemon, at a lab. What cannot be had is not offered.

use crate::{
    cli::{Cli, Target},
    client, config,
};
use clap::{Command, CommandFactory};
use clap_complete::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, Shell,
    engine::ValueCompleter,
    env::{CompleteEnv, Shells},
};
use serde::Serialize;
use serde_json::Value;
use std::{ffi::OsStr, io, path::PathBuf, sync::mpsc, thread, time::Duration};

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "NIGH_COMPLETE";
/// How long names may be looked up.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Names of one kind, by the words that were typed.
type Names = fn(&Words) -> Vec<String>;

/// Which names fit which values: commands that begin so, the value's name in their help, the names.
const NAMES: &[(&str, &str, Names)] = &[
    ("gate", "APPLICATION", |_| gate::cli::names::applications()),
    ("gate forget", "RULE", |words| gate::cli::names::rules(words.status("gate"))),
    ("gate unblock", "INFO-HASH", |words| gate::cli::names::torrents(words.status("gate"))),
    ("lab", "LAB", |_| lab::control::names::labs()),
    ("lab run", "HOST", hosts_of_scene),
    ("lab exec", "HOST", |words| lab::control::names::hosts(words.lab())),
    ("lab path", "FROM", hosts_and_nodes),
    ("lab path", "TO", hosts_and_nodes),
    ("lab node", "NODE", |words| lab::control::names::nodes(words.lab())),
    ("lab link", "LINK", |words| lab::control::names::links(words.lab())),
    ("lab capture", "NODE|LINK", nodes_and_links),
    ("mask", "POLICY", |_| mask::cli::policies().map(str::to_owned).collect()),
    ("oracle print", "ROUTER", routers),
    ("oracle print route", "TO", routers),
    ("oracle set", "ROUTER", routers),
    ("oracle set metric", "NAME", |words| oracle::cli::metrics(|it| words.ask("oracle", it))),
    ("oracle set link", "FROM", routers),
    ("oracle set link", "TO", routers),
    ("oracle create", "ROUTER", routers),
    ("oracle create link", "FROM", routers),
    ("oracle create link", "TO", routers),
    ("oracle delete", "ROUTER", routers),
    ("oracle delete link", "FROM", routers),
    ("oracle delete link", "TO", routers),
    ("probe", "STATION", stations),
    ("probe", "STATION|ADDRESS", stations),
    ("probe show", "TEST", tests),
];

/// The hosts of the scene whose file was typed.
fn hosts_of_scene(words: &Words) -> Vec<String> {
    // `nigh lab run` is in front of it.
    let mut files = words.0.iter().skip(3);
    let scene = files.find_map(|file| config::scene::load(file.as_ref()).ok());
    scene.into_iter().flat_map(|(scene, _)| scene.hosts).map(|host| host.name).collect()
}

fn hosts_and_nodes(words: &Words) -> Vec<String> {
    [lab::control::names::hosts(words.lab()), lab::control::names::nodes(words.lab())].concat()
}

fn nodes_and_links(words: &Words) -> Vec<String> {
    let lab = words.lab();
    [lab::control::names::nodes(lab), lab::control::names::links(lab)].concat()
}

fn routers(words: &Words) -> Vec<String> {
    oracle::cli::routers(|request| words.ask("oracle", request))
}

fn stations(words: &Words) -> Vec<String> {
    let file = words.configuration();
    let configured = file.as_ref().and_then(|it| it.jobs.get::<probe::config::Config>());
    probe::cli::stations(configured, || words.status("probe"))
}

fn tests(words: &Words) -> Vec<String> {
    let file = words.configuration();
    let configured = file.as_ref().and_then(|it| it.jobs.get::<probe::config::Config>());
    probe::cli::test_names(configured, || words.status("probe"))
}

/// The words that were typed so far.
struct Words(Vec<String>);

impl Words {
    /// Those behind `--` in this process's own, as the script calls it.
    fn typed() -> Self {
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        Self(words.skip_while(|word| word != "--").skip(1).collect())
    }

    /// The value of an option.
    fn value(&self, long: &str, short: Option<&str>) -> Option<&str> {
        self.0.iter().enumerate().rev().find_map(|(at, word)| {
            if word == long || Some(&**word) == short {
                return self.0.get(at + 1).map(String::as_str);
            }
            let joined = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
            joined.or_else(|| word.strip_prefix(short?))
        })
    }

    fn lab(&self) -> Option<&str> {
        self.value("--lab", None)
    }

    /// The configuration that is meant, if it is good.
    fn configuration(&self) -> Option<config::Loaded> {
        let file = self.value("--config", Some("-c")).unwrap_or(config::DEFAULT_FILE);
        config::load(file.as_ref()).ok()
    }

    /// The control socket of the daemon that is meant.
    fn socket(&self) -> Option<PathBuf> {
        let path = |long, short| self.value(long, short).map(Into::into);
        let target =
            Target { socket: path("--socket", None), config: path("--config", Some("-c")) };
        target.path().ok()
    }

    /// Asks a job of that daemon.
    fn ask(&self, job: &str, request: &impl Serialize) -> Option<Value> {
        client::ask_job(&self.socket()?, job, request).ok()
    }

    /// The state of a job of that daemon.
    fn status(&self, job: &str) -> Option<Value> {
        client::status(&self.socket()?, job, false).ok()
    }
}

/// Answers a shell that asks for completions, and ends the process; else does nothing.
pub fn answer() {
    CompleteEnv::with_factory(|| prepare(Cli::command(), "")).var(VARIABLE).complete();
}

/// The script that makes a shell ask.
///
/// # Errors
/// When there is none for this shell.
pub fn script(shell: Shell) -> io::Result<String> {
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells.completer(&shell.to_string()).ok_or(io::ErrorKind::Unsupported)?;
    completer.write_registration(VARIABLE, "nigh", "nigh", "nigh", &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Has the arguments of a command and of all below offer names; `path` are the words that lead to it.
fn prepare(command: Command, path: &str) -> Command {
    let command = command.mut_args(|arg| {
        if arg.is_hide_set() {
            // A hidden option is offered when nothing else begins so. None begins with a space; the
            // process ends soon, so that its name need not be freed.
            let name = format!(" {}", arg.get_id());
            return arg.long(&*name.leak());
        }
        let value = arg.get_value_names().and_then(<[_]>::first);
        let fits = |(command, name, _): &&(&str, &str, Names)| {
            is_below(path, command) && value.is_some_and(|value| value == name)
        };
        match NAMES.iter().find(fits) {
            Some((_, name, names)) => {
                let or_file = *name == "POLICY";
                arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
                    offered(typed, *names, or_file)
                }))
            }
            None => arg,
        }
    });
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        prepare(below, path.trim_start())
    })
}

/// Whether a command is this one or below it.
fn is_below(path: &str, command: &str) -> bool {
    path.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// The names that begin with what was typed, and files of policies.
fn offered(typed: &OsStr, names: Names, or_file: bool) -> Vec<CompletionCandidate> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(names(&Words::typed())));
    let names = receive.recv_timeout(TIMEOUT).unwrap_or_default();
    let begin = typed.to_string_lossy();
    let names = names.into_iter().filter(|name| name.starts_with(&*begin));
    let mut offered: Vec<_> = names.map(CompletionCandidate::new).collect();
    if or_file {
        let is_toml = |path: &std::path::Path| path.extension().is_some_and(|it| it == "toml");
        offered.extend(PathCompleter::any().filter(is_toml).complete(typed));
    }
    offered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_names_fits_an_argument() {
        fn values(command: &Command, path: &str, all: &mut Vec<(String, String)>) {
            for arg in command.get_arguments() {
                let value = arg.get_value_names().and_then(<[_]>::first);
                all.extend(value.map(|value| (path.to_owned(), value.to_string())));
            }
            for below in command.get_subcommands() {
                let path = format!("{path} {}", below.get_name());
                values(below, path.trim_start(), all);
            }
        }
        let mut all = Vec::new();
        values(&Cli::command(), "", &mut all);
        for (command, name, _) in NAMES {
            let fits = all.iter().any(|(path, value)| is_below(path, command) && value == name);
            assert!(fits, "no {name} in `nigh {command}`");
        }
    }

    #[test]
    fn hosts_are_those_of_the_scene_that_was_typed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scene.toml");
        let scene = "[[node]]\nname = \"a\"\n\
                     [[host]]\nname = \"pc\"\nattach = \"a\"\naddress = [\"20.0.0.1/24\"]\n\
                     [[host]]\nname = \"server\"\nattach = \"a\"\naddress = [\"20.0.1.1/24\"]\n";
        std::fs::write(&file, scene).unwrap();
        let line = |scene: &str| {
            let words = ["nigh", "lab", "run", "--prefix", "a", scene, "--in", ""];
            hosts_of_scene(&Words(words.map(str::to_owned).into()))
        };
        assert_eq!(line(&file.to_string_lossy()), ["pc", "server"]);
        assert!(line("/nonexistent.toml").is_empty());
    }

    #[test]
    fn options_are_found_in_what_was_typed() {
        let words = |line: &str| Words(line.split(' ').map(str::to_owned).collect());
        for (line, config) in [
            ("nigh probe run owd -c a.toml", Some("a.toml")),
            ("nigh probe -ca.toml run owd", Some("a.toml")),
            ("nigh probe --config=a.toml run owd", Some("a.toml")),
            ("nigh probe --config b.toml run --config a.toml", Some("a.toml")),
            ("nigh probe run owd", None),
            ("nigh probe run owd -c", None),
        ] {
            assert_eq!(words(line).value("--config", Some("-c")), config, "{line}");
        }
    }
}
