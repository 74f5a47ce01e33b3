//! Rules that the operator gives on the command line; they last until the daemon stops or reloads.

use super::{Act, Application, Rule, Verdict};
use crate::config::{Deny, Direction, Each, LimitConfig, Rate};
use crate::label::Category;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A rule in force beside the file's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// Its name: `given-1`.
    pub name: String,
    /// Applications that it fits; all when empty.
    pub application: Vec<String>,
    /// Kinds of applications that it fits; all when empty.
    pub category: Vec<Category>,
    /// Hosts inside that it fits; all when not given.
    pub host: Option<IpNet>,
    /// Who began the flows that it fits.
    pub direction: Option<Direction>,
    /// What becomes of them.
    pub what: What,
}

/// What becomes of flows that a given rule fits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// They pass.
    Allow,
    /// They are refused.
    Deny(Deny),
    /// They pass at a limited rate.
    Limit(GivenLimit),
}

/// The rate of a given rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GivenLimit {
    /// Bits a second to hosts inside.
    pub to_inside: Option<Rate>,
    /// Bits a second from hosts inside.
    pub from_inside: Option<Rate>,
    /// Who has the rate for itself.
    pub each: Option<Each>,
}

impl Given {
    pub(super) fn compile(&self, limits: &mut Vec<LimitConfig>) -> Rule {
        let verdict = match &self.what {
            What::Allow => Verdict::Pass,
            What::Deny(deny) => Verdict::Refuse(*deny),
            What::Limit(GivenLimit { to_inside, from_inside, each }) => {
                limits.push(LimitConfig {
                    name: self.name.clone(),
                    to_inside: *to_inside,
                    from_inside: *from_inside,
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
            act: Act::Decide(verdict),
        }
    }
}

impl GivenLimit {
    /// Says so where the rates cannot be.
    ///
    /// # Errors
    /// The sentence.
    pub fn check(&self, inside: &[String]) -> Result<(), String> {
        let limit = LimitConfig {
            name: "given".into(),
            to_inside: self.to_inside,
            from_inside: self.from_inside,
            each: self.each,
        };
        match limit.problems().into_iter().next() {
            Some(problem) => Err(problem.message),
            None => limit.is_possible(inside),
        }
    }
}
