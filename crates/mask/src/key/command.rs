//! Keys that a program writes to its standard output: of a password store, a vault, a token.

use super::{Key, KeyError, most, parse, read_bounded};
use std::{
    io,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

/// How long a program may take; somebody may have to type a passphrase.
const LIMIT: Duration = Duration::from_secs(30);
/// How often it is looked whether it has ended.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a command gives no key. Its arguments may be secret, so only the program is named.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It cannot be split into words.
    #[error(
        "the key command has no program, or a quote without an end: give it as \
         `--key-command 'PROGRAM ARG...'`"
    )]
    Words,
    /// It cannot be run.
    #[error("cannot run the key command {program}: {source}")]
    Run {
        /// Its program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// It says that it failed.
    #[error("the key command {program} gave no key ({status}): run it by itself to see why")]
    Failed {
        /// Its program.
        program: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// It took too long.
    #[error(
        "the key command {program} did not end within {} s and was ended: run it by itself to see what \
         it waits for", .limit.as_secs_f32()
    )]
    Late {
        /// Its program.
        program: String,
        /// How long it had.
        limit: Duration,
    },
}

/// The key that a command writes, which is split into words as a shell would, but given to none.
pub(super) fn key_of(command: &str) -> Result<Key, KeyError> {
    key_within(command, LIMIT)
}

fn key_within(command: &str, limit: Duration) -> Result<Key, KeyError> {
    let words = shlex::split(command).ok_or(CommandError::Words)?;
    let (program, arguments) = words.split_first().ok_or(CommandError::Words)?;
    let failed = |source| CommandError::Run { program: program.clone(), source };
    let late = || CommandError::Late { program: program.clone(), limit };
    // Standard input may be the capture.
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = Running(command.spawn().map_err(failed)?);
    let end = Instant::now() + limit;
    let (give, take) = sync_channel(1);
    if let Some(output) = child.0.stdout.take() {
        // What the program started may keep its output open, so it is read beside.
        thread::spawn(move || give.send(read_bounded(output, most::<32>())));
    }
    let status = loop {
        match child.0.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if Instant::now() >= end => return Err(late().into()),
            None => thread::sleep(PAUSE),
        }
    };
    let bytes = match take.recv_timeout(end.saturating_duration_since(Instant::now())) {
        Ok(read) => read.map_err(failed)?,
        Err(RecvTimeoutError::Timeout) => return Err(late().into()),
        Err(RecvTimeoutError::Disconnected) => {
            return Err(failed(io::ErrorKind::BrokenPipe.into()).into());
        }
    };
    // A program that writes too much finds that nobody reads on, and may fail by that.
    if !status.success() && bytes.len() < most::<32>() {
        return Err(CommandError::Failed { program: program.clone(), status }.into());
    }
    parse(&bytes, || format!("what the key command {program} writes"))
}

/// A program that is ended when nobody waits for it any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Of one that has ended, both do nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn read(command: &str) -> Result<[u8; 32], String> {
        let limit = Duration::from_millis(if command.contains("sleep") { 300 } else { 20_000 });
        key_within(command, limit).map(|key| *key).map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_program_writes_is_the_key_and_its_words_are_given_to_no_shell() {
        let key = std::array::from_fn(|n| n as u8);
        assert_eq!(read(&format!("echo {DIGITS}")), Ok(key));
        assert_eq!(read(&format!("printf %s '{DIGITS}'")), Ok(key));
        assert_eq!(read("head -c 32 /dev/zero"), Ok([0; 32]));
        // A shell would run both.
        let error = read(&format!("true; echo {DIGITS}")).unwrap_err();
        assert!(error.starts_with("cannot run the key command true;: No such file"), "{error}");
    }

    #[test]
    fn what_is_no_key_and_arguments_are_not_shown() {
        for command in ["true", "echo secret", "yes secret", "head -c 33 /dev/zero"] {
            let error = read(command).unwrap_err();
            let program = command.split(' ').next().expect("a word");
            let says =
                format!("what the key command {program} writes holds no key: it must be 32 b");
            assert!(error.starts_with(&says) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_program_that_fails_is_named_even_if_it_wrote_a_key() {
        for command in ["false".to_owned(), format!("sh -c 'echo {DIGITS}; exit 3'")] {
            let error = read(&command).unwrap_err();
            assert!(error.contains("gave no key (exit status: "), "{error}");
            assert!(!error.contains(DIGITS), "{error}");
        }
        for command in ["", " ", "echo 'open"] {
            assert!(read(command).unwrap_err().contains("--key-command 'PROGRAM ARG...'"));
        }
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_also_if_it_left_another_one_behind() {
        for command in ["sleep 20", "sh -c 'sleep 20 & exit 0'", "sh -c 'exec >&-; sleep 20'"] {
            let begin = Instant::now();
            let error = read(command).unwrap_err();
            assert!(error.contains("did not end within 0.3 s"), "{command}: {error}");
            assert!(begin.elapsed() < Duration::from_secs(10), "{command}");
        }
    }
}
