//! Who made a namespace: a process, known by its number and the moment it started.

use std::{fmt, fs, path::Path, str::FromStr};

/// What the mark of a namespace begins with.
const MARK: &str = "nigh lab";

/// A process. A number is used again some time, the moment of its start distinguishes the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pid: u32,
    /// Clock ticks from the system's start to the process's (proc(5), `starttime`).
    start: u64,
}

impl Owner {
    /// The calling process.
    pub fn this() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).unwrap_or_default() }
    }

    /// The process's number.
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// Whether it still runs.
    pub fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.start)
    }

    /// What a namespace of it is marked with.
    pub(crate) fn mark(self) -> String {
        format!("{MARK} {self}")
    }

    /// Whose a mark is; `None` for what is no mark.
    pub(crate) fn of_mark(mark: &str) -> Option<Self> {
        mark.strip_prefix(MARK)?.strip_prefix(' ')?.parse().ok()
    }
}

/// As in file names: number and start with a hyphen between.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.start)
    }
}

/// This is no owner.
#[derive(Debug, thiserror::Error)]
#[error("not PID-START")]
pub struct OwnerError;

impl FromStr for Owner {
    type Err = OwnerError;

    fn from_str(text: &str) -> Result<Self, OwnerError> {
        let (pid, start) = text.split_once('-').ok_or(OwnerError)?;
        let pid = pid.parse().map_err(|_| OwnerError)?;
        Ok(Self { pid, start: start.parse().map_err(|_| OwnerError)? })
    }
}

/// When a process started; `None` when it does not run, be it that nobody has asked how it ended.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    parse_stat(&stat)
}

/// Field 22 of /proc/PID/stat; the name, in parentheses, may have blanks and parentheses in it.
fn parse_stat(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18))??.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_owner() {
        let owner = Owner { pid: 17, start: 4711 };
        assert_eq!(owner.mark(), "nigh lab 17-4711");
        assert_eq!(Owner::of_mark(&owner.mark()), Some(owner));
        for other in ["", "nigh lab", "nigh lab 17", "nigh laboratory 17-4711", "nigh lab x-1"] {
            assert_eq!(Owner::of_mark(other), None, "{other}");
        }
    }

    #[test]
    fn a_process_lives_until_it_ends() {
        assert!(Owner::this().is_alive());
        assert!(!Owner { start: 1, ..Owner::this() }.is_alive());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let start = start_of(child.id());
        child.wait().unwrap();
        assert!(!Owner { pid: child.id(), start: start.unwrap_or(1) }.is_alive());
    }

    #[test]
    fn names_with_parentheses_do_not_mislead() {
        let rest = "S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        assert_eq!(parse_stat(&format!("7 (a) b) c) {rest}")), Some(98_765));
        assert_eq!(parse_stat(&format!("7 (x) {}", rest.replacen('S', "Z", 1))), None);
        assert_eq!(parse_stat("7 (x"), None);
    }
}
