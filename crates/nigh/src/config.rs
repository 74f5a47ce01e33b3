//! The configuration file: read, checked as a whole, and handed to the jobs.
//!
//! The file is TOML 1.0. `[node]` is defined here, every other section by the job that it
//! configures. A file is checked in three steps, and each step reports all that it finds:
//!
//! 1. syntax ([`Document::parse`]),
//! 2. shape: unknown sections and keys, wrong types, missing keys ([`Reader`]),
//! 3. values: each section checks its own (`problems`).

pub mod scene;
pub mod tables;
pub mod template;

use crate::{host, jobs};
use config::Problem;
use datapath::user::{User, become_user};
use job::{
    Configured, Section,
    file::{self, Document, LoadError, Reader, Report},
};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use std::{
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Longest path of a Unix socket, in bytes without the final zero (unix(7), `sun_path`).
const SOCKET_PATH_LIMIT: usize = 107;

/// The node itself: its name, its control socket, its HTTP server and its state directory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NodeConfig {
    /// Name of this node in status and metrics; the host's name when not given.
    #[schemars(transform = without_default)]
    pub name: String,
    /// Path of the control socket (mode 0600), on which the daemon takes commands.
    pub control: PathBuf,
    /// Address and port of the HTTP server (status page, metrics, health, API); port 0 is any free port.
    /// Whose traffic it is and what it is made of is shown to `http_token` and to local users that the daemon trusts,
    /// health and metrics to everyone: keep it on loopback or a management network.
    #[schemars(with = "config::schema::Endpoint")]
    pub http: SocketAddr,
    /// Names in URLs of the HTTP server, besides its addresses, `localhost` and the host's name. Requests for other
    /// names are refused, so that no page elsewhere can have its reader's browser ask (DNS rebinding).
    pub http_names: Vec<String>,
    /// A file with the token that lets programs elsewhere, and other users of this machine, read the API and the
    /// status page: 16 or more printable characters, such as from `openssl rand -hex 32`. It must be readable by the
    /// daemon and not by others (root:nigh, mode 0640).
    pub http_token: Option<PathBuf>,
    /// Directory for state that must survive a restart.
    pub state: PathBuf,
}

/// The configuration file when none is named.
pub const DEFAULT_FILE: &str = "/etc/nigh/nigh.toml";
/// Path of the control socket when none is configured.
pub const DEFAULT_CONTROL: &str = "/run/nigh/control.sock";

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            name: host_name(),
            control: DEFAULT_CONTROL.into(),
            http: SocketAddr::from(([127, 0, 0, 1], 9160)),
            http_names: Vec::new(),
            http_token: None,
            state: "/var/lib/nigh".into(),
        }
    }
}

impl NodeConfig {
    /// Everything that is wrong with the values; empty if they are valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut report = |key: &str, message: String| {
            problems.push(Problem { key: format!("node.{key}"), message });
        };
        if self.name.is_empty() || self.name.len() > 253 || self.name.chars().any(char::is_control)
        {
            report(
                "name",
                "a name has 1 to 253 characters, none of them a control character".into(),
            );
        }
        for (index, name) in self.http_names.iter().enumerate() {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if name.is_empty() || !name.bytes().all(allowed) {
                let text = "a host's name has letters, digits, `-` and `.`; no port and no path";
                report(&format!("http_names[{index}]"), text.into());
            }
        }
        if !self.control.is_absolute() {
            report("control", "the path of the control socket must begin with `/`".into());
        }
        if self.control.as_os_str().len() > SOCKET_PATH_LIMIT {
            let text = format!(
                "a socket's path has at most {SOCKET_PATH_LIMIT} bytes (unix(7)): choose a shorter one"
            );
            report("control", text);
        }
        if !self.state.is_absolute() {
            report("state", "the path of the state directory must begin with `/`".into());
        }
        problems
    }
}

/// The default is this host's name, which differs from host to host.
fn without_default(schema: &mut Schema) {
    schema.remove("default");
}

/// The host's name, or `nigh` if it cannot be read.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "nigh".into(),
        name => name.into(),
    }
}

/// A whole, valid configuration.
#[derive(Debug)]
pub struct Loaded {
    /// The section `[node]`.
    pub node: NodeConfig,
    /// The sections of jobs, at least one.
    pub jobs: Configured,
    /// Warnings: the file is valid, but the operator should know.
    pub report: Report,
}

/// The JSON Schema of the file.
pub fn schema() -> Schema {
    jobs::registry().schema(&[Section::new::<NodeConfig>("node")])
}

/// Reads and checks the file at `path`.
///
/// # Errors
///
/// See [`LoadError`]; [`LoadError::Wrong`] carries everything that was found.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    let (bytes, metadata) = file::read(path)?;
    let mut loaded = parse(&bytes, path).map_err(LoadError::Wrong)?;
    if metadata.is_file() && metadata.permissions().mode() & 0o004 != 0 {
        file::warn_of_secrets(&bytes, path, &mut loaded.report);
    }
    Ok(loaded)
}

/// The same, and whether this host has what the file names, for this user; the process becomes that user.
///
/// # Errors
///
/// See [`LoadError`].
pub fn load_for(path: &Path, user: Option<User>) -> Result<Loaded, LoadError> {
    let mut loaded = load(path)?;
    let (bytes, _) = file::read(path)?;
    let became = user.map_or(Ok(()), |user| become_user(&user, false));
    became.map_err(|source| LoadError::Read { path: path.into(), source })?;
    let readable = file::read(path);
    let mut report = loaded.report;
    if let Some(document) = Document::parse(&bytes, &mut report) {
        let [mut errors, warnings] = host::problems(&document.texts());
        errors.extend(readable.err().map(|error| Problem::new("", error.to_string())));
        document.add_problems(errors, &mut report);
        document.add_warnings(warnings, &mut report);
        report.finish();
    }
    if report.has_errors() {
        return Err(LoadError::Wrong(report));
    }
    loaded.report = report;
    Ok(loaded)
}

/// Checks a configuration that is already in memory; `path` only names it in the report.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Loaded, Report> {
    let registry = jobs::registry();
    let mut report = Report::new(path);
    let Some(document) = Document::parse(bytes, &mut report) else { return Err(report) };
    let mut reader = Reader::new(&document, registry.renamed());
    if let Some(section) = scene::section(&reader) {
        let command = format!("nigh lab run {}", path.display());
        reader.error_at(section, section, format!("this is a scene of the lab: `{command}`"));
        report.findings = reader.into_findings();
        return Err(report);
    }
    let jobs_sections = registry.sections().map(|section| section.name);
    reader.sections(&std::iter::once("node").chain(jobs_sections).collect::<Vec<_>>());
    let node = reader.section::<NodeConfig>("node").unwrap_or(Some(NodeConfig::default()));
    let NodeConfig { name, state, .. } = node.clone().unwrap_or_default();
    let jobs = registry.read(&mut reader, &job::Node { name, state });
    let mut problems = node.as_ref().map(NodeConfig::problems).unwrap_or_default();
    if reader.indices_are_kept() {
        problems.extend(jobs.problems());
    }
    report.findings = reader.into_findings();
    document.add_problems(problems, &mut report);
    // Warnings beside an error are only worth showing once the error is gone.
    if !report.has_errors() {
        document.add_warnings(jobs.warnings(), &mut report);
    }
    report.finish();
    match node {
        Some(node) if !report.has_errors() => Ok(Loaded { node, jobs, report }),
        _ => Err(report),
    }
}

/// A path that `[node]` of a file names, whatever else is in the file; none if it names none or cannot
/// be read. A half-edited file must not hide the running daemon.
pub fn path_of(path: &Path, key: &str) -> Option<PathBuf> {
    let text = std::fs::read_to_string(path).ok()?;
    let file: toml::Table = text.parse().ok()?;
    Some(file.get("node")?.get(key)?.as_str()?.into())
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
