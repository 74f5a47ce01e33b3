//! The exit codes of nigh: one table for all commands, shown in `nigh --help`.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success.
    Done,
    /// It failed or was refused.
    Failed,
    /// No daemon answers, or no lab runs.
    NoDaemon,
    /// A masked capture contains data of its original.
    Leak,
    /// The node or job is not healthy.
    Unhealthy,
    /// The exit code of the command that it ran, or the command could not be run.
    Command(u8),
}

/// The codes, for `nigh --help`. Code 2 comes from the command line parser.
pub(crate) const TABLE: &str = "\
Exit codes:
  0  done; of a status: healthy
  1  failed or refused; one sentence on stderr says why. Also: no answer came to blast, ping, load or
     rank; a measurement failed; packets do not arrive by `nigh lab path`
  2  the command line is wrong
  3  no daemon answers at the control socket; no lab runs
  4  a masked capture contains data of its original
  5  status shown; not healthy
`nigh lab run` and `nigh lab exec` end with the code of the command that they run, or 128 and the
number of the signal that ended it; 127 if it is not found, 126 if it cannot be run, and `nigh lab
exec` with 125 if the host cannot be entered.

Example:
  nigh check && nigh run";

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::NoDaemon => 3,
            Self::Leak => 4,
            Self::Unhealthy => 5,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_has_every_code() {
        for exit in [Exit::Done, Exit::Failed, Exit::NoDaemon, Exit::Leak, Exit::Unhealthy] {
            let code = format!("\n  {}  ", exit.code());
            assert!(TABLE.contains(&code), "{exit:?}");
        }
    }
}
