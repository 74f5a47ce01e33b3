//! `nigh oracle console`: the commands over the control socket, with history and completion.
//!
//! A line is read by the parser of the command line ([`Operation`]), so there is one grammar and one
//! help. An empty line shows the basic commands, an incomplete command shows its help, and a change is
//! answered with what is now in force, or with what is wrong.

mod complete;
mod words;

use crate::{cli::Operation, control::Request, status::RouterStatus};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use complete::Helper;
use job::command::ControlCommand;
use rustyline::{Config, Editor, error::ReadlineError, history::FileHistory};
use serde_json::Value;
use std::{
    env, fs,
    io::{self, IsTerminal, Write},
    path::PathBuf,
};

/// What is shown before a line is read.
const PROMPT: &str = "oracle> ";
/// Lines that are remembered.
const HISTORY: usize = 1000;

/// A line of the console.
#[derive(Debug, Parser)]
#[command(name = "", no_binary_name = true, disable_version_flag = true)]
#[command(override_usage = "COMMAND", about = None, disable_help_subcommand = false)]
struct Line {
    /// What is asked.
    #[command(subcommand)]
    command: Command,
}

/// The commands of the console.
#[derive(Clone, Debug, PartialEq, Subcommand)]
enum Command {
    /// Show the state of the oracle
    #[command(after_help = "Example:\n  nigh oracle status --json")]
    Status(LineArgs),
    /// Those that are requests to the oracle.
    #[command(flatten)]
    Operation(Operation<LineArgs>),
}

/// How a line is answered.
#[derive(Clone, Debug, PartialEq, Args)]
struct LineArgs {
    /// Print the answer as JSON
    #[arg(long, global = true)]
    json: bool,
}

/// The console ended with an error.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The terminal cannot be read.
    #[error("cannot read the terminal: {0}")]
    Terminal(#[from] ReadlineError),
    /// Stdout cannot be written.
    #[error("cannot print: {0}")]
    Print(#[from] io::Error),
}

/// What a line comes to.
#[derive(Debug, PartialEq)]
enum Meaning {
    /// Text to show: help, or what is wrong with the line.
    Show(String),
    /// A request to the daemon.
    Ask(Box<Command>),
    /// The end.
    Leave,
}

/// The help of the basic commands.
fn basic() -> String {
    let mut text = String::from("basic commands\n");
    for command in Line::command().get_subcommands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        text += &format!("  {:<8}{about}\n", command.get_name());
    }
    text + "  exit    Leave the console\n\ntype one of the commands to get more specific help\n"
}

/// The help of the command that a line begins with.
fn help(words: &[String]) -> String {
    let mut command = Line::command();
    command.build();
    let mut found = &mut command;
    for word in words {
        match found.find_subcommand(word).is_some() {
            true => found = found.find_subcommand_mut(word).unwrap_or_else(|| unreachable!()),
            false => break,
        }
    }
    // Examples are those of the command line; here the words before a command are not typed.
    found.render_help().to_string().replace("nigh oracle ", "").replace("Usage:  ", "Usage: ")
}

/// The text for a word that is no command.
fn unknown(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.split("\n\nUsage").next().unwrap_or_default();
    format!("{text}\n\nan empty line lists the commands, an incomplete command shows its help\n")
}

/// Reads a line.
fn read(line: &str) -> Meaning {
    let words = match words::split(line) {
        Ok(words) => words,
        Err(error) => return Meaning::Show(format!("{error}\n")),
    };
    match words.first().map(String::as_str) {
        None => return Meaning::Show(basic()),
        Some("exit" | "quit") => return Meaning::Leave,
        Some("help" | "?") if words.len() == 1 => return Meaning::Show(basic()),
        Some(_) => {}
    }
    let parsed = Line::command()
        .try_get_matches_from(&words)
        .and_then(|matches| Line::from_arg_matches(&matches));
    match parsed {
        Ok(Line { command }) => Meaning::Ask(Box::new(command)),
        Err(error) => Meaning::Show(match error.kind() {
            // Incomplete.
            ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => help(&words),
            ErrorKind::InvalidSubcommand => unknown(&error),
            _ => error.render().to_string(),
        }),
    }
}

/// Runs the console until the operator leaves it or the input ends. `ask` asks the oracle, `status` asks
/// for its state, as text or as an object.
///
/// # Errors
///
/// See [`ConsoleError`]; what the daemon refuses is shown and is no error.
pub fn run<E: std::fmt::Display>(
    ask: impl Fn(&Request) -> Result<Value, E>,
    status: impl Fn(bool) -> Result<Value, E>,
) -> Result<(), ConsoleError> {
    let config = Config::builder()
        .max_history_size(HISTORY)?
        .history_ignore_space(true)
        .completion_type(rustyline::CompletionType::List)
        .build();
    let mut editor: Editor<Helper, FileHistory> = Editor::with_config(config)?;
    let interactive = io::stdin().is_terminal();
    let history = history_file().filter(|_| interactive);
    if let Some(file) = &history {
        // There is none at the first time.
        let _ = editor.load_history(file);
    }
    editor.set_helper(Some(Helper::new(Line::command())));
    loop {
        if interactive && let Some(helper) = editor.helper_mut() {
            helper.set_routers(routers(&ask));
        }
        let line = match editor.readline(if interactive { PROMPT } else { "" }) {
            Ok(line) => line,
            Err(ReadlineError::Eof) => break,
            Err(ReadlineError::Interrupted) => continue,
            Err(error) => return Err(error.into()),
        };
        let _ = editor.add_history_entry(line.as_str());
        let text = match read(&line) {
            Meaning::Leave => break,
            Meaning::Show(text) => text,
            Meaning::Ask(command) => match *command {
                Command::Status(LineArgs { json }) => show(status(!json)),
                Command::Operation(operation) => answer(&operation, &ask),
            },
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())?;
    }
    if let Some(file) = &history {
        let saved = file.parent().map(fs::create_dir_all).transpose().map_err(ReadlineError::Io);
        if let Err(error) = saved.and_then(|_| editor.save_history(file)) {
            let _ = writeln!(io::stderr(), "the history is not saved: {error}");
        }
    }
    Ok(())
}

/// The state as text, which it may be already.
fn show<E: std::fmt::Display>(state: Result<Value, E>) -> String {
    match state {
        Err(error) => format!("error: {error}\n"),
        Ok(Value::String(text)) => text,
        Ok(state) => format!("{state:#}\n"),
    }
}

/// Asks the oracle and returns its answer as text.
fn answer<E: std::fmt::Display>(
    operation: &Operation<LineArgs>,
    ask: &impl Fn(&Request) -> Result<Value, E>,
) -> String {
    let request = match operation.request() {
        Ok(request) => request,
        Err(error) => return format!("error: {error}\n"),
    };
    match ask(&request) {
        Err(error) => format!("error: {error}\n"),
        Ok(answer) if operation.daemon().json => format!("{answer:#}\n"),
        Ok(answer) => operation.render(&answer).unwrap_or_else(|error| format!("error: {error}\n")),
    }
}

/// What routers can be called, for completion.
fn routers<E>(ask: &impl Fn(&Request) -> Result<Value, E>) -> Vec<String> {
    let answer = ask(&Request::Routers).unwrap_or_default();
    let routers: Vec<RouterStatus> = serde_json::from_value(answer).unwrap_or_default();
    let words = routers.into_iter().flat_map(|router| {
        [Some(router.router.to_string()), router.name.filter(|name| !name.contains(' '))]
    });
    words.flatten().collect()
}

/// The file of the history, in the user's directory of states (XDG Base Directory 0.8).
fn history_file() -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).and_then(absolute);
    let home = || Some(env::var_os("HOME").map(PathBuf::from)?.join(".local/state"));
    Some(state.or_else(home)?.join("nigh/oracle_history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        match read(line) {
            Meaning::Show(text) => text,
            other => panic!("{line:?} is {other:?}"),
        }
    }

    #[test]
    fn an_empty_line_shows_the_basic_commands() {
        let text = shown("  ");
        for command in ["status", "print", "set", "create", "delete", "reload", "dump", "exit"] {
            assert!(text.contains(&format!("\n  {command:<8}")), "{command} in {text}");
        }
        assert!(text.ends_with("type one of the commands to get more specific help\n"));
    }

    #[test]
    fn an_incomplete_command_shows_its_help() {
        assert!(shown("print").contains("networks"), "{}", shown("print"));
        assert!(shown("set link").contains("bandwidth"), "{}", shown("set link"));
        let text = shown("set link 10.0.0.1");
        assert!(text.contains("<PROPERTY>") && text.contains("--both"), "{text}");
        assert!(shown("dump").contains("<DIR>"));
        assert!(shown("print networks").contains("internal"));
        assert!(
            shown("print").ends_with("Example:\n  print networks internal\n"),
            "{}",
            shown("print")
        );
    }

    #[test]
    fn a_wrong_word_is_named() {
        let text = shown("prnt routers");
        assert!(text.contains("prnt") && text.contains("'print'"), "{text}");
        assert!(text.contains("an empty line lists the commands"), "{text}");
        assert!(shown("print status").contains("'status'"), "{}", shown("print status"));
        assert!(shown("set link a b speed 3").contains("speed"));
        assert!(shown("print path here there").contains("here"));
        assert!(shown("set metric a \"b").contains("quote"));
    }

    fn operation(command: Command) -> Operation<LineArgs> {
        match command {
            Command::Operation(operation) => operation,
            Command::Status(_) => panic!("this is no operation"),
        }
    }

    #[test]
    fn the_state_is_shown_as_it_comes_or_as_json() {
        assert_eq!(show::<String>(Ok("oracle: healthy\n".into())), "oracle: healthy\n");
        let state = serde_json::json!({ "healthy": true });
        assert_eq!(show::<String>(Ok(state)), "{\n  \"healthy\": true\n}\n");
        assert_eq!(show(Err("no daemon")), "error: no daemon\n");
    }

    #[test]
    fn basic_commands_are_understood() {
        let request = |line: &str| match read(line) {
            Meaning::Ask(command) => operation(*command).request().unwrap(),
            other => panic!("{line:?} is {other:?}"),
        };
        assert_eq!(request("print routers"), Request::Routers);
        let status = |json| Meaning::Ask(Box::new(Command::Status(LineArgs { json })));
        assert_eq!(read("status"), status(false));
        assert_eq!(read("status --json"), status(true));
        let side = crate::control::Side::Internal;
        let networks = Request::Networks { side, within: None, count: 1000 };
        assert_eq!(request("print networks internal"), networks);
        assert_eq!(request("print networks INTERNAL"), networks);
        let [from, to] = ["130.149.1.7", "8.8.8.8"].map(|address| address.parse().unwrap());
        assert_eq!(request("print path 130.149.1.7 8.8.8.8"), Request::Path { from, to });
        for (state, up) in [("up", true), ("down", false), ("DOWN", false)] {
            let router = crate::control::RouterName("10.0.0.1".into());
            assert_eq!(
                request(&format!("set interface 10.0.0.1 2 {state}")),
                Request::SetInterface { router, interface: 2, up }
            );
        }
        for (property, text, value) in [
            ("bandwidth", "100Mbit", 100.0),
            ("bandwidth", "1.5G", 1500.0),
            ("bandwidth", "100", 100.0),
            ("latency", "5ms", 5.0),
            ("latency", "1s", 1000.0),
            ("loss", "1%", 0.01),
            ("loss", "-1", -1.0),
            ("weight", "20", 20.0),
        ] {
            match request(&format!("set link a b {property} {text}")) {
                Request::SetLink { value: read, .. } => {
                    assert_eq!(read, value, "{property} {text}")
                }
                other => panic!("{other:?}"),
            }
        }
        for wrong in ["bandwidth 5ms", "latency 100Mbit", "loss 1ms", "weight 1%", "loss much"] {
            let Meaning::Ask(command) = read(&format!("set link a b {wrong}")) else {
                panic!("{wrong}")
            };
            let error = operation(*command).request().expect_err(wrong).to_string();
            assert!(error.contains("expected"), "{error}");
        }
        let cost = "8 * as_distance + -1".to_owned();
        for line in
            ["set metric default 8 * as_distance + -1", "set metric default '8 * as_distance + -1'"]
        {
            assert_eq!(
                request(line),
                Request::SetMetric { name: "default".into(), cost: cost.clone() }
            );
        }
        assert_eq!(request("reload"), Request::Reload);
        assert_eq!(read("exit"), Meaning::Leave);
    }
}
