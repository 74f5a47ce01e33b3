//! The configuration file: read, judged as a whole, and handed to the features.
//!
//! The file is TOML 1.0. `[node]` is defined here, every other section by the feature that it
//! configures. A file is judged in three steps, and each step reports all that it finds:
//!
//! 1. syntax ([`toml::de::DeTable::parse_recoverable`]),
//! 2. shape: unknown sections and keys, wrong types, missing keys (`shape`),
//! 3. sense: what the sections say about their own values (`problems`), for which `place` finds
//!    line and column.
//!
//! Every finding names line, column and key and shows the line ([`report`]).

mod place;
pub mod report;
pub mod scene;
mod shape;

use echo::config::{AnycastConfig, EchoConfig};
use gate::config::GateConfig;
use oracle::config::OracleConfig;
use probe::config::ProbeConfig;
use report::{Finding, Report, Severity};
use serde::{Deserialize, Serialize};
use std::{
    fs::Metadata,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use toml::de::{DeTable, DeValue};
use wire::Problem;

/// Longest file that is read, in bytes.
pub const SIZE_LIMIT: u64 = 1 << 20;
/// Deepest nesting of tables and dotted keys that is looked at.
const DEPTH_LIMIT: usize = 32;
/// Longest path of a Unix socket, in bytes without the final zero (unix(7), `sun_path`).
const SOCKET_PATH_LIMIT: usize = 107;
/// The sections of the file.
const SECTIONS: [&str; 6] = ["node", "echo", "anycast", "oracle", "probe", "gate"];

/// The section `[node]`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeConfig {
    /// Name of this node in status and metrics; the host's name when not given.
    pub name: String,
    /// Path of the control socket.
    pub control: PathBuf,
    /// Address of the HTTP server (status page, metrics, health, API); port 0 lets the kernel choose.
    pub http: SocketAddr,
    /// Directory for what must survive a restart.
    pub state: PathBuf,
}

/// Path of the control socket when none is configured.
pub const DEFAULT_CONTROL: &str = "/run/nigh/control.sock";

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            name: host_name(),
            control: DEFAULT_CONTROL.into(),
            http: SocketAddr::from(([127, 0, 0, 1], 9160)),
            state: "/var/lib/nigh".into(),
        }
    }
}

impl NodeConfig {
    /// Everything that is wrong with the values; empty when all is well.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut say = |key: &str, message: String| {
            problems.push(Problem { key: format!("node.{key}"), message });
        };
        if self.name.is_empty() || self.name.len() > 253 || self.name.chars().any(char::is_control)
        {
            say("name", "a name has 1 to 253 characters, none of them a control character".into());
        }
        if !self.control.is_absolute() {
            say("control", "the path of the control socket must begin with `/`".into());
        }
        if self.control.as_os_str().len() > SOCKET_PATH_LIMIT {
            let text = format!(
                "a socket's path has at most {SOCKET_PATH_LIMIT} bytes (unix(7)): choose a shorter one"
            );
            say("control", text);
        }
        if !self.state.is_absolute() {
            say("state", "the path of the state directory must begin with `/`".into());
        }
        problems
    }
}

/// The host's name, or `nigh` where it cannot be read.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "nigh".into(),
        name => name.into(),
    }
}

/// A whole configuration that was found good.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The section `[node]`.
    pub node: NodeConfig,
    /// What the features are told.
    pub sections: Sections,
    /// Warnings: the file is good, but the operator should know.
    pub report: Report,
}

/// The sections of features; at least one is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sections {
    /// `[echo]` and `[anycast]`.
    pub echo: Option<echo::config::Config>,
    /// `[oracle]`.
    pub oracle: Option<oracle::config::Config>,
    /// `[probe]`.
    pub probe: Option<probe::config::Config>,
    /// `[gate]`.
    pub gate: Option<gate::config::Config>,
}

impl Sections {
    /// Everything that is wrong with the values; empty when all is well.
    pub fn problems(&self) -> Vec<Problem> {
        let echo = self.echo.iter().flat_map(echo::config::Config::problems);
        let oracle = self.oracle.iter().flat_map(oracle::config::Config::problems);
        let probe = self.probe.iter().flat_map(probe::config::Config::problems);
        let gate = self.gate.iter().flat_map(gate::config::Config::problems);
        let mapping = self.gate.iter().filter_map(crate::mapping::problem);
        echo.chain(oracle).chain(probe).chain(gate).chain(mapping).collect()
    }

    /// What is allowed but seldom meant.
    fn warnings(&self) -> Vec<Problem> {
        let echo = self.echo.iter().flat_map(echo::config::Config::warnings);
        let oracle = self.oracle.iter().flat_map(oracle::config::Config::warnings);
        let probe = self.probe.iter().flat_map(probe::config::Config::warnings);
        let gate = self.gate.iter().flat_map(gate::config::Config::warnings);
        echo.chain(oracle).chain(probe).chain(gate).collect()
    }
}

/// The file could not be read or is not a good configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be opened or read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than [`SIZE_LIMIT`].
    #[error("{path} is larger than {SIZE_LIMIT} bytes: that is no configuration of nigh")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file was read and is wrong.
    #[error("{}", .0.sentence())]
    Wrong(Report),
}

/// Reads and judges the file at `path`.
///
/// # Errors
///
/// See [`LoadError`]; [`LoadError::Wrong`] carries everything that was found.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    let (bytes, metadata) = read(path)?;
    let mut loaded = parse(&bytes, path).map_err(LoadError::Wrong)?;
    if metadata.is_file() && metadata.permissions().mode() & 0o004 != 0 {
        warn_of_secrets(&bytes, path, &mut loaded.report);
    }
    Ok(loaded)
}

/// Reads a file of at most [`SIZE_LIMIT`] bytes.
fn read(path: &Path) -> Result<(Vec<u8>, Metadata), LoadError> {
    use std::io::Read;
    let read_error = |source| LoadError::Read { path: path.into(), source };
    let file = std::fs::File::open(path).map_err(read_error)?;
    let metadata = file.metadata().map_err(read_error)?;
    let mut bytes = Vec::new();
    file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes).map_err(read_error)?;
    if bytes.len() as u64 > SIZE_LIMIT {
        return Err(LoadError::TooLarge { path: path.into() });
    }
    Ok((bytes, metadata))
}

/// Adds a warning for every secret in a file that everybody may read.
fn warn_of_secrets(bytes: &[u8], path: &Path, report: &mut Report) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(root) = DeTable::parse(text) else { return };
    let root = place::document(root);
    for (key, span) in place::secrets(&root) {
        report.findings.push(Finding::at(
            text,
            span,
            Severity::Warning,
            key,
            format!(
                "everybody on this host may read this secret: run `chmod o-r {}`",
                path.display()
            ),
        ));
    }
}

/// Judges a configuration that is already in memory; `path` only names it in the report.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Loaded, Report> {
    let mut report = Report::new(path);
    let Some((text, root)) = document(bytes, &mut report) else { return Err(report) };
    let mut judge = shape::Judge::new(text, &root);
    judge.sections(&SECTIONS);
    let node = judge.section::<NodeConfig>("node").unwrap_or(Some(NodeConfig::default()));
    let echo = judge.section::<EchoConfig>("echo");
    let anycast = judge.section::<AnycastConfig>("anycast");
    let oracle = judge.section::<OracleConfig>("oracle");
    let probe = judge.section::<ProbeConfig>("probe");
    let gate = judge.section::<GateConfig>("gate");
    if !judge.found_unknown_section() && echo.is_none() {
        if anycast.is_some() {
            let span = root_span(&root, "anycast", text);
            let message = "[anycast] announces what [echo] answers: add a section `[echo]`";
            judge.say(span, "echo", message.into());
        } else if oracle.is_none() && probe.is_none() && gate.is_none() {
            let message =
                "nothing to do: add a section `[echo]`, `[oracle]`, `[probe]` or `[gate]`";
            judge.say(text.len()..text.len(), "echo", message.into());
        }
    }
    let sections_are_sound = judge.indices_are_kept();
    report.findings = judge.into_findings();

    let mut problems = node.as_ref().map(NodeConfig::problems).unwrap_or_default();
    let anycast_failed = matches!(anycast, Some(None));
    let NodeConfig { name, state, .. } = node.clone().unwrap_or_default();
    let sections = Sections {
        echo: echo.flatten().filter(|_| !anycast_failed).map(|echo| echo::config::Config {
            node: name.clone(),
            state: state.clone(),
            echo,
            anycast: anycast.flatten(),
        }),
        oracle: oracle.flatten().map(|oracle| oracle::config::Config {
            node: name.clone(),
            state: state.clone(),
            oracle,
        }),
        probe: probe.flatten().map(|probe| probe::config::Config {
            node: name.clone(),
            state: state.clone(),
            probe,
        }),
        gate: gate.flatten().map(|gate| gate::config::Config { node: name, state, gate }),
    };
    if sections_are_sound {
        problems.extend(sections.problems());
    }
    tell_problems(problems, text, &root, &mut report);
    // What to think of beside a mistake is worth saying when the mistake is gone.
    if !report.has_errors() {
        for Problem { key, message } in sections.warnings() {
            let span = place::find(&root, &key, text);
            report.findings.push(Finding::at(text, span, Severity::Warning, key, message));
        }
    }
    report.finish();
    match node {
        Some(node) if !report.has_errors() => Ok(Loaded { node, sections, report }),
        _ => Err(report),
    }
}

/// The text and the tables of a file; what keeps it from being read goes into the report.
fn document<'i>(bytes: &'i [u8], report: &mut Report) -> Option<(&'i str, place::Node<'i>)> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            report.findings.push(Finding::at(
                good,
                good.len()..good.len(),
                Severity::Error,
                String::new(),
                "this is not UTF-8: save the file in that encoding".into(),
            ));
            return None;
        }
    };
    if let Some(offset) = shape::too_deep(text, DEPTH_LIMIT) {
        report.findings.push(Finding::at(
            text,
            offset..offset,
            Severity::Error,
            String::new(),
            format!("more than {DEPTH_LIMIT} levels deep: no key of nigh is nested like this"),
        ));
        return None;
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Some((text, place::document(root)));
    }
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        report.findings.push(Finding::at(
            text,
            span,
            Severity::Error,
            String::new(),
            error.message().into(),
        ));
    }
    report.finish();
    None
}

/// Puts problems into a report, unless something was said of the same key already, or a key in that table
/// could not be read: what is missing there may be that.
fn tell_problems(
    problems: impl IntoIterator<Item = Problem>,
    text: &str,
    root: &place::Node<'_>,
    report: &mut Report,
) {
    let unread: Vec<String> = report.findings.iter().map(|f| f.key.clone()).collect();
    for Problem { key, message } in problems {
        let already = |f: &Finding| key == f.key || key.starts_with(&format!("{}.", f.key));
        let within = |unread: &String| unread.starts_with(&format!("{key}."));
        if report.findings.iter().any(already) || unread.iter().any(within) {
            continue;
        }
        let span = place::find(root, &key, text);
        report.findings.push(Finding::at(text, span, Severity::Error, key, message));
    }
}

/// Where to point when a whole section is missing: at `section` if there is one, else at the end.
fn root_span(
    root: &toml::Spanned<DeValue<'_>>,
    section: &str,
    text: &str,
) -> std::ops::Range<usize> {
    root.get_ref().get(section).map_or(text.len()..text.len(), toml::Spanned::span)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
