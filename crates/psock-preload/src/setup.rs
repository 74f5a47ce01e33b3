//! What the environment says.
//!
//! It is read when the program starts. Without any of the variables nothing is done at all; a variable that cannot be
//! used makes every connect(2) and listen(2) of the program fail, for it cannot be known which of them it meant.

use psock::{Config, Options, Path};
use std::{
    io::{self, Write},
    path::PathBuf,
    sync::OnceLock,
    time::Duration,
};

/// What every variable's name begins with; behind it stands an option's name ([`Options`]) or one of those below.
const PREFIX: &str = "PSOCK_";
/// How long the end of a program waits for its sessions, unless PSOCK_LINGER says otherwise.
const LINGER: Duration = Duration::from_secs(30);
/// Longest PSOCK_LINGER.
const LONGEST: Duration = Duration::from_secs(86_400);

/// What the environment says.
#[derive(Debug)]
pub(crate) struct Setup {
    options: Options,
    /// Ports at which the program listens for sessions.
    pub(crate) ports: Vec<u16>,
    /// How long the end of the program waits.
    pub(crate) linger: Duration,
    /// Where the counters of sessions are written.
    pub(crate) counters: Option<PathBuf>,
    verbose: bool,
}

static SETUP: OnceLock<Result<Option<Setup>, String>> = OnceLock::new();
static CONFIG: OnceLock<Result<Config, String>> = OnceLock::new();

/// Reads the environment, once.
pub(crate) fn get() -> io::Result<Option<&'static Setup>> {
    match SETUP.get_or_init(|| read(std::env::vars_os())) {
        Ok(setup) => Ok(setup.as_ref()),
        Err(why) => Err(io::Error::new(io::ErrorKind::InvalidInput, why.as_str())),
    }
}

impl Setup {
    /// The paths over which sessions are opened.
    pub(crate) fn paths(&self) -> &[Path] {
        self.options.paths()
    }

    /// The configuration of sessions; keys are read once, so that a program may give up its rights later.
    pub(crate) fn config(&self) -> io::Result<&'static Config> {
        let config =
            CONFIG.get_or_init(|| self.options.config().map_err(|error| error.to_string()));
        config.as_ref().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why.as_str()))
    }
}

/// Tells whoever watches why a call of the program fails: with PSOCK_VERBOSE, and where the environment is wrong.
pub(crate) fn explain(error: &io::Error) {
    let tell = match SETUP.get() {
        Some(Ok(Some(setup))) => setup.verbose || error.kind() == io::ErrorKind::InvalidInput,
        Some(Err(_)) => true,
        _ => false,
    };
    if tell && error.raw_os_error().is_none() {
        let _ = writeln!(io::stderr(), "psock: {error}");
    }
}

type Variable = (std::ffi::OsString, std::ffi::OsString);

fn read(variables: impl Iterator<Item = Variable>) -> Result<Option<Setup>, String> {
    let mut setup = Setup {
        options: Options::default(),
        ports: Vec::new(),
        linger: LINGER,
        counters: None,
        verbose: false,
    };
    for (variable, text) in variables {
        let Some(variable) = variable.to_str() else { continue };
        let Some(name) = variable.strip_prefix(PREFIX) else { continue };
        let text = text.to_str().ok_or_else(|| format!("{variable} is not text"))?;
        set(&mut setup, name, text).map_err(|why| format!("{variable}: {why}"))?;
    }
    Ok((!setup.options.paths().is_empty() || !setup.ports.is_empty()).then_some(setup))
}

fn set(setup: &mut Setup, name: &str, text: &str) -> Result<(), String> {
    let parts = || text.split(',').map(str::trim).filter(|part| !part.is_empty());
    match name {
        "PATHS" => {
            for part in parts() {
                setup.options.set("path", part).map_err(|error| error.to_string())?;
            }
        }
        "LISTEN" => {
            for part in parts() {
                let port = part.parse().ok().filter(|port| *port > 0);
                setup.ports.push(port.ok_or_else(|| format!("{part:?} is not a port"))?);
            }
        }
        "LINGER" => {
            let time = config::duration(text).map_err(|error| format!("{text:?}: {error}"))?;
            if time > LONGEST {
                return Err(format!("{text:?}: longer than a day"));
            }
            setup.linger = time;
        }
        "COUNTERS" => setup.counters = Some(text.into()),
        "VERBOSE" => setup.verbose = text != "no",
        // One path at a time is not for variables.
        "PATH" => return Err("paths are in PSOCK_PATHS".to_owned()),
        _ => {
            let name = name.to_ascii_lowercase().replace('_', "-");
            setup.options.set(&name, text).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<Setup>, String> {
        read(variables.iter().map(|(name, text)| (name.into(), text.into())))
    }

    #[test]
    fn variables_are_options() {
        let setup = of(&[
            ("HOME", "/root"),
            ("PSOCK_PATHS", "10.0.1.1>10.0.1.2:80, 10.0.2.2:80"),
            ("PSOCK_LISTEN", "80,443"),
            ("PSOCK_PLAIN", "yes"),
            ("PSOCK_CONNECT_TIMEOUT", "2.5s"),
            ("PSOCK_LINGER", "500ms"),
            ("PSOCK_COUNTERS", "/tmp/counters"),
        ]);
        let setup = setup.unwrap().unwrap();
        assert_eq!(setup.paths().len(), 2);
        assert_eq!(setup.ports, [80, 443]);
        assert_eq!(setup.linger, Duration::from_millis(500));
        let config = setup.options.config().unwrap();
        assert_eq!(config.connect_timeout, Duration::from_millis(2500));
    }

    #[test]
    fn without_paths_and_ports_there_is_nothing_to_do() {
        assert!(of(&[("HOME", "/root")]).unwrap().is_none());
        assert!(of(&[("PSOCK_KEY", "/a/key")]).unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (name, text) in [
            ("PSOCK_PATHS", "10.0.1.2"),
            ("PSOCK_PATH", "10.0.1.2:80"),
            ("PSOCK_LISTEN", "0"),
            ("PSOCK_LISTEN", "http"),
            ("PSOCK_LINGER", "-1"),
            ("PSOCK_LINGER", "30"),
            ("PSOCK_LINGER", "2days"),
            ("PSOCK_DRIVER", "fastest"),
            ("PSOCK_COLOUR", "blue"),
        ] {
            let why = of(&[("PSOCK_PLAIN", "yes"), (name, text)]).unwrap_err();
            assert!(why.starts_with(&format!("{name}: ")), "{why}");
        }
    }

    #[test]
    fn the_manual_has_every_variable() {
        let manual = include_str!("../../../docs/psock.md");
        // Names in the first cell of a row, the default in the last.
        let row = |line: &'static str| {
            let row = line.strip_prefix("| `PSOCK_")?.strip_suffix(" |")?;
            let spans = row.split(" | ").next()?.split('`').step_by(2);
            let names = spans.filter_map(|span| span.trim_start_matches(PREFIX).split('=').next());
            let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
            Some((names, row.rsplit(" | ").next()?))
        };
        let rows: Vec<_> = manual.lines().filter_map(row).collect();
        let mut listed: Vec<String> =
            rows.iter().flat_map(|(names, _)| names).map(|&name| name.to_owned()).collect();
        let options = Options::NAMES.iter().filter(|name| **name != "path");
        let mut known: Vec<String> =
            options.map(|name| name.to_uppercase().replace('-', "_")).collect();
        for (name, text) in [
            ("PATHS", "10.0.1.2:80"),
            ("LISTEN", "80"),
            ("LINGER", "30s"),
            ("COUNTERS", "file"),
            ("VERBOSE", "yes"),
        ] {
            let variable = format!("{PREFIX}{name}");
            of(&[(variable.as_str(), text)]).unwrap();
            known.push(name.to_owned());
        }
        listed.sort();
        known.sort();
        assert_eq!(listed, known);
        let (_, linger) = rows.iter().find(|(names, _)| names == &["LINGER"]).unwrap();
        assert_eq!(config::duration(linger.trim_matches('`')), Ok(LINGER));
    }
}
