//! The sub-commands of `nigh echo`: each is one request over the control socket and one answer.

use crate::{
    control::{LimitChange, ListChange, Request},
    status::{self, LedgerStatus, LimitStatus, ListStatus, TopStatus},
};
use clap::{Args, Subcommand};
use ipnet::IpNet;
use job::command::{AnswerError, ControlCommand, read};
use serde_json::Value;

/// `nigh echo ...`
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Show the packets that were received, answered, passed and dropped, for each address
    ///
    /// In every row received = answered + passed + the sum of drops, exactly.
    #[command(after_help = "Example:\n  nigh echo ledger --json")]
    Ledger,
    /// Show the busiest source prefixes
    #[command(after_help = "Example:\n  nigh echo top --count 20")]
    Top {
        /// Most rows to show
        #[arg(short = 'n', long, default_value_t = 10, value_name = "ROWS")]
        count: usize,
    },
    /// Show or change the limits
    ///
    /// A change takes effect at once and lasts until the next reload or restart. Without options the
    /// limits are shown and nothing changes.
    #[command(
        after_help = "Examples:\n  nigh echo limit\n  nigh echo limit --rate 50 --burst 100\n  nigh echo limit --node-rate 100000 --node-burst 2000"
    )]
    Limit(LimitArgs),
    /// Show or change the source prefixes that are answered; an empty list means all
    ///
    /// A change takes effect at once and lasts until the next reload or restart.
    #[command(after_help = "Examples:\n  nigh echo allow\n  nigh echo allow --add 192.0.2.0/24")]
    Allow(ListArgs),
    /// Show or change the source prefixes that are not answered
    ///
    /// A change takes effect at once and lasts until the next reload or restart.
    #[command(
        after_help = "Examples:\n  nigh echo deny\n  nigh echo deny --add 198.51.100.7/32 --remove 203.0.113.0/24"
    )]
    Deny(ListArgs),
}

/// New limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct LimitArgs {
    /// Requests a second for each source prefix; 0 switches the limit off
    #[arg(long, value_name = "REQUESTS")]
    rate: Option<u64>,
    /// Burst of a source prefix, in requests
    #[arg(long, value_name = "REQUESTS")]
    burst: Option<u64>,
    /// Length of an IPv4 source prefix
    #[arg(long, value_name = "BITS")]
    prefix4: Option<u8>,
    /// Length of an IPv6 source prefix
    #[arg(long, value_name = "BITS")]
    prefix6: Option<u8>,
    /// Requests a second for the whole node; 0 switches the limit off
    #[arg(long, value_name = "REQUESTS")]
    node_rate: Option<u64>,
    /// Burst of the whole node, in requests
    #[arg(long, value_name = "REQUESTS")]
    node_burst: Option<u64>,
}

/// Changes of a list of sources.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ListArgs {
    /// Add a prefix; can be given several times
    #[arg(long, value_name = "PREFIX")]
    add: Vec<IpNet>,
    /// Remove a prefix; can be given several times
    #[arg(long, value_name = "PREFIX")]
    remove: Vec<IpNet>,
}

impl ControlCommand for Command {
    type Request = Request;

    fn request(&self) -> Result<Request, job::Error> {
        Ok(match self {
            Self::Ledger => Request::Ledger,
            Self::Top { count } => Request::Top { count: *count },
            Self::Limit(args) => Request::Limit(LimitChange {
                rate: args.rate,
                burst: args.burst,
                prefix4: args.prefix4,
                prefix6: args.prefix6,
                node_rate: args.node_rate,
                node_burst: args.node_burst,
            }),
            Self::Allow(args) => Request::Allow(args.change()),
            Self::Deny(args) => Request::Deny(args.change()),
        })
    }

    fn render(&self, answer: &Value) -> Result<String, AnswerError> {
        Ok(match self {
            Self::Ledger => status::render_ledger(&read::<LedgerStatus>(answer)?),
            Self::Top { .. } => status::render_top(&read::<TopStatus>(answer)?),
            Self::Limit(_) => status::render_limits(&read::<LimitStatus>(answer)?),
            Self::Allow(_) | Self::Deny(_) => status::render_list(&read::<ListStatus>(answer)?),
        })
    }
}

impl ListArgs {
    fn change(&self) -> ListChange {
        ListChange { add: self.add.clone(), remove: self.remove.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: Command,
    }

    fn request(line: &str) -> Request {
        Line::try_parse_from(line.split_whitespace()).unwrap().command.request().unwrap()
    }

    #[test]
    fn a_command_is_one_request() {
        assert_eq!(request("echo ledger"), Request::Ledger);
        assert_eq!(request("echo top -n 3"), Request::Top { count: 3 });
        let change = LimitChange { rate: Some(0), prefix6: Some(48), ..LimitChange::default() };
        assert_eq!(request("echo limit --rate 0 --prefix6 48"), Request::Limit(change));
        let prefix: IpNet = "2001:db8::/32".parse().unwrap();
        let change = ListChange { add: vec![prefix], remove: vec![] };
        assert_eq!(request("echo deny --add 2001:db8::/32"), Request::Deny(change));
        assert!(Line::try_parse_from(["echo", "deny", "--add", "2001:db8::/129"]).is_err());
    }

    #[test]
    fn an_answer_is_shown_or_refused() {
        let row = serde_json::json!({
            "address": "192.0.2.1", "received": 10, "answered": 7, "passed": 1,
            "dropped": {"denied": 2, "bad_code": 0},
        });
        let other = serde_json::json!({"received": 3, "answered": 0, "passed": 3, "dropped": {}});
        let answer = serde_json::json!({"counted": true, "rows": [row], "other": other});
        let text = Command::Ledger.render(&answer).unwrap();
        let lines: Vec<Vec<_>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["192.0.2.1", "10", "7", "1", "2", "denied", "2"]);
        assert_eq!(lines[2], ["other", "3", "0", "3", "0"]);
        assert!(Command::Ledger.render(&Value::Null).is_err());
        let answer = serde_json::json!({"list": "allow", "prefixes": []});
        let args = ListArgs { add: vec![], remove: vec![] };
        assert!(Command::Allow(args).render(&answer).unwrap().contains("all sources"));
    }
}
