//! Running programs: to their end with a time limit, or for as long as a guard lives.
//!
//! Output is read by threads while the program runs, so that a full pipe never blocks it and what
//! it has written so far can be looked at.

use crate::{Error, permit::permit, programs};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    io::Read,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// Time between two looks at whether a program has ended.
const POLL: Duration = Duration::from_millis(1);

/// One test of this program as a process of its own, for a test that kills it or looks at its end.
///
/// `module` is `module_path!()` of the test, which has `#[ignore]`: it is none by itself.
///
/// # Panics
///
/// When the program does not know its own path.
pub fn itself(module: &str, test: &str) -> Command {
    let inside = module.split_once("::").map_or_else(String::new, |(_, path)| format!("{path}::"));
    let mut command = Command::new(std::env::current_exe().expect("this program's path"));
    command.args(["--exact", "--ignored", "--nocapture", &format!("{inside}{test}")]);
    command
}

/// A program that has ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
}

impl Finished {
    /// Whether it ended with exit code 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }
}

/// A running program; killed and reaped when dropped.
#[derive(Debug)]
pub struct Process {
    line: String,
    child: Child,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts a program in the calling thread's network namespace, with nothing on its input.
    ///
    /// # Errors
    ///
    /// When the program cannot be started, or is not one of [`programs`].
    pub fn start(command: Command) -> Result<Self, Error> {
        let _permit = permit(&command_line(&command))?;
        Self::start_always(command)
    }

    /// Starts a program even when the testbed is closed.
    fn start_always(mut command: Command) -> Result<Self, Error> {
        programs::check(&command)?;
        let line = command_line(&command);
        // A group of its own: Ctrl-C in the terminal is for us alone.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Error::new(&line, error))?;
        let (mut readers, stdout, stderr) = (Vec::new(), Arc::default(), Arc::default());
        if let Some(pipe) = child.stdout.take() {
            readers.push(collect(pipe, Arc::clone(&stdout)));
        }
        if let Some(pipe) = child.stderr.take() {
            readers.push(collect(pipe, Arc::clone(&stderr)));
        }
        Ok(Self { line, child, stdout, stderr, readers })
    }

    /// The process's number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to its standard output so far.
    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    /// What it has written to its standard error so far.
    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }

    /// How it ended, if it has; all that it wrote can then be read.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten()?;
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        Some(status)
    }

    /// Sends a signal.
    ///
    /// # Errors
    ///
    /// When the process has ended already.
    pub fn signal(&self, signal: Signal) -> Result<(), Error> {
        let pid = Pid::from_raw(self.pid().cast_signed());
        kill(pid, signal).map_err(|error| Error::new(format!("{signal} to `{}`", self.line), error))
    }

    /// Kills it (SIGKILL) and reaps it; does nothing when it has ended.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end and returns all output.
    ///
    /// # Errors
    ///
    /// When it still runs after `limit`; it is killed then.
    pub fn finish(mut self, limit: Duration) -> Result<Finished, Error> {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.ended() {
                break status;
            }
            if begin.elapsed() >= limit {
                self.kill();
                return Err(Error::new(
                    format!("`{}`", self.line),
                    format!("still ran after {limit:?}\n{}{}", self.stdout(), self.stderr()),
                ));
            }
            std::thread::sleep(POLL);
        };
        Ok(Finished { status, stdout: self.stdout(), stderr: self.stderr() })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a program to its end in the calling thread's network namespace.
///
/// # Errors
///
/// When it cannot be started or still runs after `limit`; another exit code than 0 is no error.
pub fn run(command: Command, limit: Duration) -> Result<Finished, Error> {
    Process::start(command)?.finish(limit)
}

/// Runs a program to its end as [`run`] does, for at most 30 seconds, and returns its output.
///
/// # Errors
///
/// Also when the exit code is not 0; the error then carries all output.
pub fn check(command: Command) -> Result<String, Error> {
    let line = command_line(&command);
    succeed(line, Process::start(command)?)
}

/// Does what [`check`] does even when the testbed is closed.
pub(crate) fn check_always(command: Command) -> Result<String, Error> {
    let line = command_line(&command);
    succeed(line, Process::start_always(command)?)
}

fn succeed(line: String, process: Process) -> Result<String, Error> {
    let finished = process.finish(Duration::from_secs(30))?;
    if finished.success() {
        return Ok(finished.stdout);
    }
    let why = format!("{}\n{}{}", finished.status, finished.stdout, finished.stderr);
    Err(Error::new(format!("`{line}`"), why.trim_end()))
}

/// A command from its words, the first of which is the program.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    command.args(words.get(1..).unwrap_or_default());
    command
}

fn command_line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

fn collect(mut pipe: impl Read + Send + 'static, into: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut chunk = [0; 16 * 1024];
        loop {
            match pipe.read(&mut chunk) {
                Ok(0) => return,
                Ok(length) => {
                    let mut into = into.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    into.extend_from_slice(&chunk[..length]);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    })
}

fn text(bytes: &Mutex<Vec<u8>>) -> String {
    let bytes = bytes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    String::from_utf8_lossy(&bytes).into_owned()
}
