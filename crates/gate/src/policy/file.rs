//! The verdict on a file.

use super::{Application, Moment, Policy, any, glob::Glob, hosts::Hosts, moment::Times};
use crate::{
    config::{FileAction, FileConfig},
    file_type,
};
use std::net::IpAddr;

/// A rule about files with its names resolved.
#[derive(Clone, Debug)]
pub(super) struct FileRule {
    pub(super) name: String,
    names: Vec<Glob>,
    types: Vec<Glob>,
    hashes: Vec<String>,
    applications: Vec<Application>,
    groups: Vec<usize>,
    times: Vec<usize>,
    action: FileAction,
}

/// What is asked about a file.
#[derive(Clone, Copy, Debug)]
pub struct FileQuestion<'a> {
    /// The application that carries it.
    pub application: &'a str,
    /// Its name, if it has one.
    pub name: Option<&'a str>,
    /// The short name of its type by content, as far as that is known.
    pub kind: Option<&'a str>,
    /// The media type of that.
    pub media: Option<&'a str>,
    /// The protocol's hash of it in hexadecimal digits, such as an info-hash.
    pub hash: Option<&'a str>,
    /// The internal host.
    pub host: IpAddr,
    /// The time at the gate.
    pub now: Moment,
}

/// The policy's decision on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileDecision {
    /// The action on it.
    pub action: FileAction,
    /// The rule that decided it; `None` when no rule fits.
    pub rule: Option<usize>,
}

/// Names that are meant by [`family`] alone.
pub(crate) const FAMILIES: [&str; 2] = ["ftp", "irc"];

/// The application that announces flows of this one, which people mean by its name.
fn family(application: &str) -> &str {
    match application {
        "ftp-data" | "ftp_data" | "ftp_control" => "ftp",
        "dcc" => "irc",
        other => other,
    }
}

/// Whether files are ever of a type that a rule asks for.
pub(crate) fn is_type(pattern: &str) -> bool {
    let glob = Glob::new(pattern);
    file_type::all().any(|kind| glob.fits(kind.name) || glob.fits(kind.media))
}

impl FileRule {
    pub(super) fn new(file: &FileConfig, hosts: &Hosts, times: &Times) -> Self {
        let globs = |list: &[String]| list.iter().map(|pattern| Glob::new(pattern)).collect();
        Self {
            name: file.name.clone(),
            names: globs(&file.names),
            types: globs(&file.types),
            hashes: file.hashes.iter().map(|hash| hash.to_ascii_lowercase()).collect(),
            applications: file.application.iter().map(|name| Application::new(name)).collect(),
            groups: hosts.numbers(&file.group),
            times: times.numbers(&file.time),
            action: file.action,
        }
    }

    fn fits(&self, question: &FileQuestion<'_>, policy: &Policy, groups: &[usize]) -> bool {
        any(&self.names, |glob| question.name.is_some_and(|name| glob.fits(name)))
            && any(&self.types, |glob| {
                [question.kind, question.media].into_iter().flatten().any(|kind| glob.fits(kind))
            })
            && any(&self.hashes, |hash| {
                question.hash.is_some_and(|other| hash.eq_ignore_ascii_case(other))
            })
            && self.is_for(question.application, question.now, policy, groups)
    }

    /// Whether it is for files of an application, now, of a host in these groups.
    fn is_for(&self, application: &str, now: Moment, policy: &Policy, groups: &[usize]) -> bool {
        any(&self.applications, |wanted| {
            [application, family(application)].contains(&wanted.name.as_str())
        }) && any(&self.groups, |group| groups.contains(group))
            && any(&self.times, |time| policy.times.holds(*time, now))
    }

    /// Whether it is for any file, whatever is in it.
    fn is_for_all(&self) -> bool {
        self.names.is_empty() && self.types.is_empty() && self.hashes.is_empty()
    }
}

impl Policy {
    /// Decides about a file.
    pub fn decide_file(&self, question: &FileQuestion<'_>) -> FileDecision {
        let groups = self.hosts.groups_of(question.host);
        let fits = |rule: &FileRule| rule.fits(question, self, &groups);
        let rule = self.files.iter().position(fits);
        let action = rule.and_then(|number| self.files.get(number)).map(|rule| rule.action);
        FileDecision { action: action.unwrap_or(FileAction::Allow), rule }
    }

    /// Whether a file of an application that nobody could read may have been one to scan or deny.
    pub fn asks_of_files(&self, application: &str, host: IpAddr, now: Moment) -> bool {
        let groups = self.hosts.groups_of(host);
        let mut rules =
            self.files.iter().filter(|rule| rule.is_for(application, now, self, &groups));
        // Behind one that allows all, none is asked.
        let first = rules.find(|rule| rule.action != FileAction::Allow || rule.is_for_all());
        first.is_some_and(|rule| rule.action != FileAction::Allow)
    }

    /// Whether any rule asks what files of an application are called.
    pub fn asks_names(&self, application: &str) -> bool {
        let asks = |rule: &FileRule| {
            !rule.names.is_empty() && any(&rule.applications, |wanted| wanted.name == application)
        };
        self.files.iter().any(asks)
    }

    /// The name of a rule about files.
    pub fn file_rule(&self, number: usize) -> Option<&str> {
        self.files.get(number).map(|rule| rule.name.as_str())
    }
}
