//! Rules that the operator adds at run time; they last until the daemon stops or reloads.

use super::{Application, Rule, Verdict};
use crate::config::{Deny, Direction, Each, LimitConfig, Rate};
use classify::label::Category;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A rule in force beside the file's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeRule {
    /// Its name: `runtime-1`.
    pub name: String,
    /// Applications that it fits; all when empty.
    pub application: Vec<String>,
    /// Kinds of applications that it fits; all when empty.
    pub category: Vec<Category>,
    /// Internal hosts that it fits; all when not given.
    pub host: Option<IpNet>,
    /// Who began the flows that it fits.
    pub direction: Option<Direction>,
    /// The action on them.
    pub action: RuntimeAction,
}

/// The action of a rule that was added at run time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuntimeAction {
    /// They pass.
    Allow,
    /// They are refused.
    Deny(Deny),
    /// They pass at a limited rate.
    Limit(RuntimeLimit),
}

/// The rate of a rule that was added at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RuntimeLimit {
    /// Bits a second to internal hosts.
    pub to_internal: Option<Rate>,
    /// Bits a second from internal hosts.
    pub from_internal: Option<Rate>,
    /// Who has the rate for itself.
    pub each: Option<Each>,
}

impl RuntimeRule {
    pub(super) fn compile(&self, limits: &mut Vec<LimitConfig>) -> Rule {
        let verdict = match &self.action {
            RuntimeAction::Allow => Verdict::Pass,
            RuntimeAction::Deny(deny) => Verdict::Refuse(*deny),
            RuntimeAction::Limit(RuntimeLimit { to_internal, from_internal, each }) => {
                limits.push(LimitConfig {
                    name: self.name.clone(),
                    to_internal: *to_internal,
                    from_internal: *from_internal,
                    each: *each,
                });
                Verdict::Limit(limits.len() - 1)
            }
        };
        Rule {
            name: self.name.as_str().into(),
            applications: self.application.iter().map(|name| Application::new(name)).collect(),
            categories: self.category.clone(),
            certainty: None,
            groups: Vec::new(),
            host: self.host,
            direction: self.direction,
            times: Vec::new(),
            verdict: Some(verdict),
        }
    }
}

impl RuntimeLimit {
    /// Says so where the rates cannot be.
    ///
    /// # Errors
    /// The sentence.
    pub fn check(&self, internal: &[String]) -> Result<(), String> {
        let limit = LimitConfig {
            name: "runtime".into(),
            to_internal: self.to_internal,
            from_internal: self.from_internal,
            each: self.each,
        };
        match limit.problems().into_iter().next() {
            Some(problem) => Err(problem.message),
            None => limit.is_possible(internal),
        }
    }
}
