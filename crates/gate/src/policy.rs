//! The verdict on a flow, and on a file that it carries: the rules, compiled, as a pure function.
//!
//! The first rule that fits decides; rules that only count are noted before that. What no rule fits
//! passes. A policy never changes: another one is built beside it and swapped in.
//!
//! Rules that the operator adds at run time ([`RuntimeRule`]) come before those of the file, the
//! latest first.

mod file;
mod glob;
mod hosts;
mod moment;
mod runtime;
#[cfg(test)]
mod tests;

pub(crate) use file::{FAMILIES, is_type};
pub use file::{FileDecision, FileQuestion};
pub(crate) use glob::is_foreign;
pub use moment::Moment;
pub use runtime::{RuntimeAction, RuntimeLimit, RuntimeRule};

use crate::config::{Deny, Direction, Each, GateConfig, LimitConfig, RuleAction, RuleConfig};
use classify::label::{Category, Certainty, Label, UNKNOWN};
use file::FileRule;
use hosts::Hosts;
use ipnet::IpNet;
use moment::Times;
use std::{net::IpAddr, sync::Arc};

/// Who share a rate that each group has for itself, and are in none.
const NO_GROUP: &str = "hosts in no group";

/// The rules, compiled.
#[derive(Clone, Debug)]
pub struct Policy {
    hosts: Hosts,
    times: Times,
    limits: Vec<LimitConfig>,
    rules: Vec<Rule>,
    files: Vec<FileRule>,
}

/// A rule with its names resolved.
#[derive(Clone, Debug)]
struct Rule {
    name: Arc<str>,
    applications: Vec<Application>,
    categories: Vec<Category>,
    certainty: Option<Certainty>,
    groups: Vec<usize>,
    host: Option<IpNet>,
    direction: Option<Direction>,
    times: Vec<usize>,
    /// None where the rule only counts.
    verdict: Option<Verdict>,
}

/// An application as rules name it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Application {
    name: String,
    part: Option<String>,
}

/// The verdict on a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It passes.
    Pass,
    /// It is refused.
    Refuse(Deny),
    /// It passes under the limit of this number.
    Limit(usize),
}

/// The properties of a flow that rules check.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What the flow is; `None` when nobody could name it.
    pub label: Option<&'a Label>,
    /// The internal host.
    pub host: IpAddr,
    /// Who began the flow.
    pub direction: Direction,
    /// The time at the gate.
    pub now: Moment,
}

/// A verdict, and the rules that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The name of the rule that decided; `None` when no rule fits.
    pub rule: Option<Arc<str>>,
    /// The names of the rules that count it.
    pub counted: Vec<Arc<str>>,
}

impl Policy {
    /// Compiles a configuration without problems and the rules added at run time, the latest last.
    pub fn new(config: &GateConfig, runtime: &[RuntimeRule]) -> Self {
        let hosts = Hosts::new(&config.groups);
        let times = Times::new(&config.times);
        let mut limits = config.limits.clone();
        let mut rules = Vec::new();
        for rule in runtime.iter().rev() {
            rules.push(rule.compile(&mut limits));
        }
        for rule in &config.rules {
            rules.push(Rule::new(rule, &hosts, &times, &limits));
        }
        let files = config.files.iter().map(|file| FileRule::new(file, &hosts, &times)).collect();
        Self { hosts, times, limits, rules, files }
    }

    /// Decides about a flow.
    pub fn decide(&self, question: &Question<'_>) -> Decision {
        self.look(question.host, question.direction, question.now, |rule| {
            Some(rule.fits_label(question.label))
        })
        .unwrap_or_default()
    }

    /// Decides about a flow of which only the ends are known, where the label does not matter and
    /// the flow is refused; else it is worth to look at it.
    pub fn decide_early(
        &self,
        host: IpAddr,
        direction: Direction,
        now: Moment,
    ) -> Option<Decision> {
        self.look(host, direction, now, |rule| (!rule.asks_label()).then_some(true))
            .filter(|decision| matches!(decision.verdict, Verdict::Refuse(_)))
    }

    /// The first rule that fits; `None` where `fits` cannot say yet whether a rule does.
    fn look(
        &self,
        host: IpAddr,
        direction: Direction,
        now: Moment,
        fits: impl Fn(&Rule) -> Option<bool>,
    ) -> Option<Decision> {
        let mut decision = Decision::default();
        let groups = self.hosts.groups_of(host);
        for rule in &self.rules {
            let ends = rule.direction.is_none_or(|wanted| wanted == direction)
                && rule.host.is_none_or(|wanted| wanted.contains(&host))
                && any(&rule.groups, |group| groups.contains(group))
                && any(&rule.times, |time| self.times.holds(*time, now));
            if !ends || !fits(rule)? {
                continue;
            }
            match rule.verdict {
                None => decision.counted.push(Arc::clone(&rule.name)),
                Some(verdict) => {
                    decision.verdict = verdict;
                    decision.rule = Some(Arc::clone(&rule.name));
                    break;
                }
            }
        }
        Some(decision)
    }

    /// The names of all rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| &*rule.name)
    }

    /// The names of all rules about files, in order.
    pub fn file_rules(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|rule| rule.name.as_str())
    }

    /// A limit.
    pub fn limit(&self, number: usize) -> Option<&LimitConfig> {
        self.limits.get(number)
    }

    /// Who of those under a limit has a rate for itself, in words: empty for all, the host, its first
    /// group or all hosts in none, or the application.
    pub fn share(&self, limit: &LimitConfig, host: IpAddr, application: &str) -> String {
        match limit.each {
            None => String::new(),
            Some(Each::Host) => host.to_string(),
            Some(Each::Application) => application.into(),
            Some(Each::Group) => {
                let first = self.hosts.groups_of(host).iter().min().copied();
                first.and_then(|group| self.hosts.name(group)).unwrap_or(NO_GROUP).into()
            }
        }
    }

    /// Which of the times hold, as a word that changes when one begins or ends.
    pub fn times_at(&self, now: Moment) -> Vec<bool> {
        self.times.at(now)
    }
}

impl Default for Decision {
    fn default() -> Self {
        Self { verdict: Verdict::Pass, rule: None, counted: Vec::new() }
    }
}

/// Whether one of a list fits; an empty list does not ask.
fn any<T>(list: &[T], fits: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(fits)
}

impl Rule {
    fn new(rule: &RuleConfig, hosts: &Hosts, times: &Times, limits: &[LimitConfig]) -> Self {
        let limit = |name: &Option<String>| {
            limits.iter().position(|limit| Some(&limit.name) == name.as_ref())
        };
        let verdict = match rule.action {
            RuleAction::Count => None,
            RuleAction::Allow => Some(Verdict::Pass),
            RuleAction::Deny => Some(Verdict::Refuse(rule.deny.unwrap_or_default())),
            // A good configuration has the limit that it names.
            RuleAction::Limit => Some(limit(&rule.limit).map_or(Verdict::Pass, Verdict::Limit)),
        };
        Self {
            name: rule.name.as_str().into(),
            applications: rule.application.iter().map(|name| Application::new(name)).collect(),
            categories: rule.category.clone(),
            certainty: rule.certainty,
            groups: hosts.numbers(&rule.group),
            host: None,
            direction: rule.direction,
            times: times.numbers(&rule.time),
            verdict,
        }
    }

    /// Whether what the flow is matters.
    fn asks_label(&self) -> bool {
        !self.applications.is_empty() || !self.categories.is_empty() || self.certainty.is_some()
    }

    fn fits_label(&self, label: Option<&Label>) -> bool {
        let Some(label) = label else {
            let unknown = |wanted: &Application| wanted.name == UNKNOWN && wanted.part.is_none();
            return any(&self.applications, unknown)
                && self.categories.is_empty()
                && self.certainty.is_none();
        };
        any(&self.applications, |wanted| wanted.fits(label))
            && any(&self.categories, |wanted| *wanted == label.category)
            && self.certainty.is_none_or(|least| label.certainty >= least)
    }
}

impl Application {
    fn new(name: &str) -> Self {
        let (name, part) = name.split_once('/').map_or((name, None), |(n, p)| (n, Some(p.into())));
        Self { name: name.into(), part }
    }

    fn fits(&self, label: &Label) -> bool {
        self.name == label.application
            && self.part.as_ref().is_none_or(|part| Some(part.as_str()) == label.detail.as_deref())
    }
}
