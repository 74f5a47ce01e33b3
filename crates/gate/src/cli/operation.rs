//! Requests to the daemon: each sub-command is one request over the control socket and one answer.

use crate::{
    config::{self, Deny, Direction, Each, Rate},
    control::{By, FlowName, FlowsOrder, Order, Request, TopOrder},
    policy::{RuntimeAction, RuntimeLimit, RuntimeRule},
    status::{self, FlowRow, TopStatus, Why},
};
use clap::{
    Args, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use classify::label::Category;
use ipnet::IpNet;
use job::command::{AnswerError, ControlCommand, read};
use serde_json::Value;

/// The request to the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Operation {
    /// Show flows, the busiest first
    #[command(
        after_help = "Examples:\n  nigh gate flows --application bittorrent\n  nigh gate flows --host 10.0.0.5 --verdict reset -n 100"
    )]
    Flows(FlowsArgs),
    /// Show the busiest applications or internal hosts
    #[command(after_help = "Examples:\n  nigh gate top\n  nigh gate top --by host -n 20")]
    Top(TopArgs),
    /// Explain a flow: its label, the evidence, the rule that decides
    #[command(
        after_help = "Example:\n  nigh gate why tcp 10.0.0.5:51413 192.0.2.7:6881\n\nThe ends may be given in either order; `nigh gate flows` prints flows in this form."
    )]
    Why {
        /// The protocol and both ends
        #[arg(required = true, num_args = 1..=4, value_name = "FLOW")]
        flow: Vec<String>,
    },
    /// Refuse applications by a rule before those of the file
    ///
    /// Takes effect at once, also for running flows; lasts until `nigh gate forget`, a reload or the
    /// end of the daemon.
    #[command(
        after_help = "Examples:\n  nigh gate deny bittorrent edonkey\n  nigh gate deny --category peer-to-peer --host 10.0.0.0/24 --how drop"
    )]
    Deny {
        /// Which flows.
        #[command(flatten)]
        which: WhichArgs,
        /// Whether the ends are notified: reset notifies them, drop does not
        #[arg(long, value_enum, default_value = "reset")]
        how: Deny,
    },
    /// Let applications pass by a rule before those of the file
    ///
    /// Takes effect at once, also for running flows; lasts until `nigh gate forget`, a reload or the
    /// end of the daemon.
    #[command(after_help = "Example:\n  nigh gate allow bittorrent --host 10.0.0.5")]
    Allow {
        /// Which flows.
        #[command(flatten)]
        which: WhichArgs,
    },
    /// Limit the rate of applications by a rule before those of the file
    ///
    /// Takes effect at once, also for running flows; lasts until `nigh gate forget`, a reload or the
    /// end of the daemon.
    #[command(
        after_help = "Examples:\n  nigh gate limit bittorrent --to-internal 20mbit --from-internal 5mbit\n  nigh gate limit --category peer-to-peer --to-internal 2mbit --each host"
    )]
    Limit {
        /// Which flows.
        #[command(flatten)]
        which: WhichArgs,
        /// Rate of packets to internal hosts, such as 20mbit
        #[arg(long, value_name = "RATE", required_unless_present = "from_internal")]
        to_internal: Option<Rate>,
        /// Rate of packets from internal hosts
        #[arg(long, value_name = "RATE")]
        from_internal: Option<Rate>,
        /// Give each of these the rate [default: all share it]
        #[arg(long, value_name = "KIND", value_enum)]
        each: Option<Each>,
    },
    /// Remove rules that deny, allow and limit added
    #[command(after_help = "Examples:\n  nigh gate forget runtime-1\n  nigh gate forget --all")]
    Forget {
        /// The rule, as `nigh gate status` shows it
        #[arg(value_name = "RULE", required_unless_present = "all", conflicts_with = "all")]
        name: Option<String>,
        /// All runtime rules
        #[arg(long)]
        all: bool,
    },
    /// Unblock a torrent that was refused for a file in it
    ///
    /// Its files are scanned again; after a false positive of the scanner, add a [[gate.file]] with
    /// its info-hash and action = "allow".
    #[command(
        after_help = "Example:\n  nigh gate unblock 0123456789abcdef0123456789abcdef01234567"
    )]
    Unblock {
        /// Its info-hash, as `nigh gate status` shows it
        #[arg(value_name = "INFO-HASH")]
        torrent: String,
    },
    /// Refuse the old name of `unblock`
    #[command(hide = true)]
    Pardon {
        /// What followed it
        torrent: Vec<String>,
    },
    /// Switch the gate off (everything passes) or on again
    #[command(after_help = "Examples:\n  nigh gate bypass on\n  nigh gate bypass off")]
    Bypass {
        /// `on` lets everything pass, `off` switches the gate on again
        #[arg(value_parser = ["on", "off"])]
        state: String,
    },
}

/// Which flows to show.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct FlowsArgs {
    /// Of this application only; `unknown` for unclassified flows
    #[arg(long)]
    application: Option<String>,
    /// Only with an end at this address or in this prefix
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    host: Option<IpNet>,
    /// Only with this verdict
    #[arg(long, value_parser = ["pass", "drop", "reset", "limit", "undecided"])]
    verdict: Option<String>,
    /// Rows to show at most
    #[arg(short = 'n', long, default_value_t = 30, value_name = "ROWS")]
    count: usize,
}

/// What is ranked.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct TopArgs {
    /// What is ranked
    #[arg(long, value_name = "KEY", value_enum, default_value = "application")]
    by: By,
    /// Rows to show at most
    #[arg(short = 'n', long, default_value_t = 10, value_name = "ROWS")]
    count: usize,
}

/// Which flows a runtime rule matches.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct WhichArgs {
    /// Applications, such as bittorrent or bittorrent/dht; `unknown` for unclassified flows
    #[arg(value_name = "APPLICATION", required_unless_present_any = ["category", "host"])]
    application: Vec<String>,
    /// A category of applications, such as peer-to-peer; can be given several times
    #[arg(long, value_parser = categories())]
    category: Vec<Category>,
    /// Only of this internal host, or of those in this prefix
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    host: Option<IpNet>,
    /// Only flows that this side began
    #[arg(long, value_enum)]
    direction: Option<Direction>,
}

impl WhichArgs {
    fn order(&self, action: RuntimeAction) -> Request {
        Request::Add(Order {
            application: self.application.clone(),
            category: self.category.clone(),
            host: self.host,
            direction: self.direction,
            action,
        })
    }
}

/// A prefix, or an address alone.
fn prefix(text: &str) -> Result<IpNet, String> {
    config::prefix(text)
        .map(|prefix| prefix.trunc())
        .map_err(|_| "expected an address or a prefix".into())
}

/// A category by its name in the configuration.
fn categories() -> impl TypedValueParser<Value = Category> {
    PossibleValuesParser::new(Category::ALL.map(Category::name)).try_map(|name| {
        let known = Category::ALL.into_iter().find(|category| category.name() == name);
        known.ok_or("unknown category")
    })
}

impl ControlCommand for Operation {
    type Request = Request;

    fn request(&self) -> Result<Request, job::Error> {
        Ok(match self {
            Self::Flows(args) => Request::Flows(FlowsOrder {
                application: args.application.clone(),
                host: args.host,
                verdict: args.verdict.clone(),
                count: args.count,
            }),
            Self::Top(args) => Request::Top(TopOrder { by: args.by, count: args.count }),
            Self::Why { flow } => Request::Why { flow: flow.join(" ").parse::<FlowName>()? },
            Self::Deny { which, how } => which.order(RuntimeAction::Deny(*how)),
            Self::Allow { which } => which.order(RuntimeAction::Allow),
            Self::Limit { which, to_internal, from_internal, each } => {
                which.order(RuntimeAction::Limit(RuntimeLimit {
                    to_internal: *to_internal,
                    from_internal: *from_internal,
                    each: *each,
                }))
            }
            Self::Forget { name, .. } => Request::Forget { name: name.clone() },
            Self::Unblock { torrent } => Request::Unblock { torrent: torrent.clone() },
            Self::Pardon { .. } => {
                return Err("`nigh gate pardon` is now `nigh gate unblock`".into());
            }
            Self::Bypass { state } => Request::Bypass { on: state == "on" },
        })
    }

    fn render(&self, answer: &Value) -> Result<String, AnswerError> {
        Ok(match self {
            Self::Flows(_) => status::render_flows(&read::<Vec<FlowRow>>(answer)?),
            Self::Top(_) => status::render_top(&read::<TopStatus>(answer)?),
            Self::Why { .. } => status::render_why(&read::<Why>(answer)?),
            Self::Deny { .. } | Self::Allow { .. } | Self::Limit { .. } => {
                status::render_rule(&read::<RuntimeRule>(answer)?)
            }
            Self::Forget { .. } => match read::<Vec<RuntimeRule>>(answer)?.as_slice() {
                [] => "no runtime rule is in force\n".into(),
                rest => rest.iter().map(status::render_rule).collect(),
            },
            Self::Unblock { torrent } => format!("torrent {torrent} is no longer refused\n"),
            Self::Pardon { .. } => String::new(),
            Self::Bypass { state } if state == "on" => {
                "the gate is switched off: everything passes until `nigh gate bypass off`\n".into()
            }
            Self::Bypass { .. } => "the gate is on\n".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        operation: Operation,
    }

    fn request(line: &str) -> Request {
        let line = Line::try_parse_from(line.split_whitespace()).unwrap();
        line.operation.request().unwrap()
    }

    #[test]
    fn a_command_is_one_request() {
        assert_eq!(request("gate bypass on"), Request::Bypass { on: true });
        assert_eq!(
            request("gate forget runtime-2"),
            Request::Forget { name: Some("runtime-2".into()) }
        );
        assert_eq!(request("gate forget --all"), Request::Forget { name: None });
        assert_eq!(request("gate unblock 0a"), Request::Unblock { torrent: "0a".into() });
        let flow = "tcp 10.0.0.1:1 10.0.0.2:2".parse().unwrap();
        assert_eq!(request("gate why tcp 10.0.0.1:1 > 10.0.0.2:2"), Request::Why { flow });
        let order = Order {
            application: vec!["bittorrent".into()],
            category: vec![Category::PeerToPeer],
            host: Some("10.0.0.5/32".parse().unwrap()),
            direction: Some(Direction::ToInternal),
            action: RuntimeAction::Deny(Deny::Drop),
        };
        let line = "gate deny bittorrent --category peer-to-peer --host 10.0.0.5 --direction to-internal --how drop";
        assert_eq!(request(line), Request::Add(order));
    }

    #[test]
    fn a_rule_names_what_it_fits() {
        for line in ["gate deny", "gate limit bittorrent", "gate forget", "gate bypass maybe"] {
            assert!(Line::try_parse_from(line.split_whitespace()).is_err(), "{line}");
        }
    }
}
