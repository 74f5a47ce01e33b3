//! What the commands of jobs have in common: how they end, and how they ask the daemon.
//!
//! A command returns an [`Outcome`]. One that is a request to its job in the daemon is a
//! [`ControlCommand`]: nigh sends the request, prints the answer as text or JSON, and exits.

use crate::Error;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    any::Any,
    fmt::{self, Display},
    io::{self, ErrorKind, Write},
    process::ExitCode,
};

/// How a command ended that has printed all that it has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Done,
    /// It failed or was refused.
    Failed,
    /// The command line is invalid.
    Usage,
    /// No daemon answers, or no lab runs.
    NoDaemon,
    /// A masked capture contains data of its original.
    Leak,
    /// The node or job is not healthy.
    Unhealthy,
    /// The daemon's configuration is wrong: EX_CONFIG of sysexits.h, which systemd shows as CONFIG.
    Configuration,
    /// The exit code of the command that it ran, or the command could not be run.
    Command(u8),
}

impl Exit {
    /// Success or failure.
    pub fn of(done: bool) -> Self {
        if done { Self::Done } else { Self::Failed }
    }

    /// How a command ends that has printed a state, by its `healthy`.
    pub fn of_state(state: &Value) -> Self {
        if state["healthy"] == false { Self::Unhealthy } else { Self::Done }
    }

    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoDaemon => 3,
            Self::Leak => 4,
            Self::Unhealthy => 5,
            Self::Configuration => 78,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why a command ended: one sentence for the operator, and the exit code, [`Exit::Failed`] for any error
/// that `?` converts.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    error: Error,
}

/// How a command ended.
pub type Outcome = Result<Exit, Failure>;

impl Failure {
    /// A failure with an exit code of its own.
    pub fn new(exit: Exit, error: impl Into<Error>) -> Self {
        Self { exit, error: error.into() }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(Exit::Failed, error)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// A command that is one request to the daemon's job and one answer.
pub trait ControlCommand {
    /// The job's requests.
    type Request: Serialize;

    /// The request.
    ///
    /// # Errors
    ///
    /// The command line is invalid.
    fn request(&self) -> Result<Self::Request, Error>;

    /// The answer as text for people; ends with a newline.
    ///
    /// # Errors
    ///
    /// The answer does not belong to this command.
    fn render(&self, answer: &Value) -> Result<String, AnswerError>;

    /// How the command ends with this answer.
    fn exit(&self, _: &Value) -> Exit {
        Exit::Done
    }

    /// What a terminal shows until the answer is there: until the value is dropped.
    fn progress(&self) -> Box<dyn Any> {
        Box::new(())
    }
}

/// The daemon's or a lab's answer is not understood.
#[derive(Debug, thiserror::Error)]
#[error("the answer is not understood ({0}): is the daemon or lab another version of nigh?")]
pub struct AnswerError(#[from] serde_json::Error);

/// Reads an answer.
///
/// # Errors
///
/// It is another type.
pub fn read<T: DeserializeOwned>(answer: &Value) -> Result<T, AnswerError> {
    Ok(T::deserialize(answer)?)
}

/// The output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot print: {0}")]
pub struct PrintError(#[from] io::Error);

/// Prints `text`; a reader that has seen enough (`nigh status | head -1`) is no error.
///
/// # Errors
///
/// See [`PrintError`].
pub fn print(text: &str) -> Result<Exit, PrintError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(Exit::Done),
    }
}

/// Prints a value as JSON for programs.
///
/// # Errors
///
/// See [`PrintError`].
pub fn print_json(value: &impl Serialize) -> Result<Exit, PrintError> {
    print(&(serde_json::to_string_pretty(value).map_err(io::Error::from)? + "\n"))
}

/// Prints what a command that writes data has counted: as a line of JSON on stdout, unless the data went
/// there; else on stderr.
///
/// # Errors
///
/// See [`PrintError`].
pub fn print_counters(
    json: bool,
    data_on_stdout: bool,
    counters: &(impl Serialize + Display),
) -> Result<Exit, PrintError> {
    let text = match json {
        true => serde_json::to_string(counters).map_err(io::Error::from)?,
        false => counters.to_string(),
    };
    if json && !data_on_stdout {
        return print(&(text + "\n"));
    }
    let _ = writeln!(io::stderr(), "{text}");
    Ok(Exit::Done)
}

/// Prints a result, as JSON or for people.
///
/// # Errors
///
/// See [`PrintError`].
pub fn print_result(json: bool, result: &(impl Serialize + Display)) -> Result<Exit, PrintError> {
    if json { print_json(result) } else { print(&result.to_string()) }
}
