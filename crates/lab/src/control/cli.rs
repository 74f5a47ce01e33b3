//! `nigh lab status`, `path`, `link`, `links`, `node` and `events`: what people ask of a running lab.

use super::{
    AskError, ChooseError, Event, LinkChange, Links, NodeView, Path, Request, Sort, Status,
    choose::choose, show,
};
use crate::settings::SettingsChange;
use ::control::{Connection, Peer};
use clap::{Args, Subcommand, ValueEnum};
use job::command::{AnswerError, Exit, Failure, Outcome, PrintError};
use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, BufRead, ErrorKind, Write};

/// Which lab is meant, and how it is answered.
#[derive(Clone, Debug, Args)]
pub struct Which {
    /// The lab, by process id or scene name [default: the only one]
    #[arg(long, value_name = "LAB", global = true)]
    pub lab: Option<String>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Arguments of `nigh lab status`.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// Which lab.
    #[command(flatten)]
    pub which: Which,
}

/// Arguments of `nigh lab path`.
#[derive(Clone, Debug, Args)]
pub struct PathArgs {
    /// A host, a node or an address
    pub from: String,
    /// A host, a node or an address
    pub to: String,
    /// Which lab.
    #[command(flatten)]
    pub which: Which,
}

/// Arguments of `nigh lab link`.
#[derive(Clone, Debug, Args)]
pub struct LinkArgs {
    /// Two nodes: `A-B` for both directions, `'A>B'` for one; append `#2` for the second of parallel links
    pub link: String,
    /// Which lab.
    #[command(flatten)]
    pub which: Which,
    /// What to do with it.
    #[command(subcommand)]
    pub action: Option<LinkAction>,
}

/// What to do with a link.
#[derive(Clone, Debug, Subcommand)]
pub enum LinkAction {
    /// Change its settings, between two packets
    #[command(
        after_help = "Example:\n  nigh lab link as4-as12 set delay=50ms loss=1% rate=100Mbit"
    )]
    Set {
        /// Settings as in a scene: delay=50ms jitter=2ms loss=1% rate=100Mbit queue=64KB mtu=1400 up=false
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
}

/// Arguments of `nigh lab links`.
#[derive(Clone, Debug, Args)]
pub struct LinksArgs {
    /// The order of the links
    #[arg(long, value_name = "COLUMN", value_enum, default_value = "bytes")]
    pub sort: Sort,
    /// Also list links that have carried no packets
    #[arg(long)]
    pub all: bool,
    /// Most links to show, at most 10000
    #[arg(short = 'n', long, value_name = "ROWS", default_value_t = 100)]
    pub count: usize,
    /// The old name of `--count`, refused
    #[arg(long, hide = true, value_parser = config::renamed_flag("--count"))]
    pub limit: Option<String>,
    /// Which lab.
    #[command(flatten)]
    pub which: Which,
}

/// Arguments of `nigh lab node`.
#[derive(Clone, Debug, Args)]
pub struct NodeArgs {
    /// Its name or one of its addresses
    pub node: String,
    /// Its new state [default: show it]
    #[arg(value_enum)]
    pub state: Option<NodeState>,
    /// Which lab.
    #[command(flatten)]
    pub which: Which,
}

/// Whether a node is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NodeState {
    /// Up, with all its links and hosts
    Up,
    /// Down: packets that reach it are lost
    Down,
}

/// Arguments of `nigh lab events`.
#[derive(Clone, Debug, Args)]
pub struct EventsArgs {
    /// Which lab.
    #[command(flatten)]
    pub which: Which,
}

impl Which {
    /// Connects to the lab that is meant; where none runs, the command ends with its own exit code.
    pub(crate) fn connect(&self) -> Result<Connection, Failure> {
        let lab = choose(self.lab.as_deref()).map_err(|error| match error {
            ChooseError::None | ChooseError::Unknown(..) => Failure::new(Exit::NoDaemon, error),
            error => error.into(),
        })?;
        Connection::open(Peer::lab(&lab)).map_err(|error| match error {
            AskError::NoDaemon(_) => Failure::new(Exit::NoDaemon, error),
            error => error.into(),
        })
    }

    /// Asks and gives the answer as text.
    fn ask<T: DeserializeOwned + Serialize>(
        &self,
        request: &Request,
        show: impl Fn(&T) -> String,
    ) -> Result<String, Failure> {
        let answer: T = self.connect()?.ask(request)?;
        Ok(self.render(&answer, show))
    }

    /// The answer as text.
    fn render<T: Serialize>(&self, answer: &T, show: impl Fn(&T) -> String) -> String {
        match self.json {
            true => format!("{:#}\n", serde_json::json!(answer)),
            false => show(answer),
        }
    }
}

/// How a lab is.
///
/// # Errors
/// No lab answers, or it refuses.
pub fn status(args: &StatusArgs) -> Result<String, Failure> {
    args.which.ask::<Status>(&Request::Status {}, show::status)
}

/// The path of packets, and the exit code by whether they arrive.
///
/// # Errors
/// No lab answers, or it refuses.
pub fn path(args: &PathArgs) -> Result<(String, Exit), Failure> {
    let request = Request::Path { from: args.from.clone(), to: args.to.clone() };
    let path: Path = args.which.connect()?.ask(&request)?;
    Ok((args.which.render(&path, show::path), Exit::of(path.stopped.is_none())))
}

/// Shows or changes a link.
///
/// # Errors
/// No lab answers, or it refuses.
pub fn link(args: &LinkArgs) -> Result<String, Failure> {
    let set = match &args.action {
        None => SettingsChange::default(),
        Some(LinkAction::Set { settings }) => settings.join(" ").parse()?,
    };
    args.which.ask::<LinkChange>(&Request::Link { link: args.link.clone(), set }, show::verdict)
}

/// Shows links by what they had to do.
///
/// # Errors
/// No lab answers, or it refuses.
pub fn links(args: &LinksArgs) -> Result<String, Failure> {
    let request = Request::Links { sort: args.sort, limit: args.count, all: args.all };
    args.which.ask::<Links>(&request, show::links)
}

/// Shows a node, takes it down or brings it up.
///
/// # Errors
/// No lab answers, or it refuses.
pub fn node(args: &NodeArgs) -> Result<String, Failure> {
    let up = args.state.map(|state| state == NodeState::Up);
    args.which.ask::<NodeView>(&Request::Node { node: args.node.clone(), up }, show::node)
}

/// Prints what happens until the lab ends or nobody reads any more.
///
/// # Errors
/// No lab answers, or it refuses.
pub fn events(args: &EventsArgs) -> Outcome {
    let mut connection = args.which.connect()?;
    let serde_json::Value::Object(_) = connection.ask(&Request::Events {})? else {
        return Ok(Exit::Done);
    };
    let mut out = io::stdout().lock();
    for line in connection.stream()?.lines() {
        let Ok(line) = line else { break };
        let result = match args.which.json {
            true => writeln!(out, "{line}"),
            false => {
                let event: Event = serde_json::from_str(&line).map_err(AnswerError::from)?;
                writeln!(out, "{event}")
            }
        };
        match result.and_then(|()| out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(error) => return Err(PrintError::from(error).into()),
            Ok(()) => {}
        }
    }
    Ok(Exit::Done)
}
