//! `nigh lab ...`: the command line.

use crate::{
    capture::{CaptureArgs, capture},
    clean::{self, CleanError, Cleaned},
    control::{Context, Server, cli as control, files, inspect::totals},
    engine::{Ledger, Made, Reason},
    host::Owner,
    http::Listener,
    run::{self, Lab, Options, RunError},
    scene::Scene,
    stage::Stage,
    view::{ViewArgs, view},
};
use clap::{Args, Subcommand};
use job::command::{Exit, Failure, Outcome, print, print_counters};
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    fmt::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

/// `nigh lab ...`
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Run a scene: a simulated network and the hosts at its edge
    ///
    /// Runs until Ctrl-C or SIGTERM; with a command, until that ends, and returns its exit code. Remains
    /// of killed labs are removed first.
    #[command(
        after_help = "Examples:\n  nigh lab run scene.toml\n  nigh lab run scene.toml -- ping -c 3 server\n  nigh lab run scene.toml --in server -- tcpdump -ni eth0\n  nigh lab run scene.toml --http 127.0.0.1:9161"
    )]
    Run(RunArgs),
    /// Run a command in a host of a running lab, and return its exit code
    ///
    /// As env(1): 127 if the command is not found, 126 if it cannot be run, 125 if the host cannot be
    /// entered or there is none.
    #[command(after_help = "Example:\n  nigh lab exec pc ping -c 3 server")]
    Exec(ExecArgs),
    /// Show the state of a lab: hosts, packets by outcome, changes
    ///
    /// The exit code is 3 if no lab runs.
    #[command(after_help = "Example:\n  nigh lab status --json | jq .packets")]
    Status(control::StatusArgs),
    /// Show the path of packets: hops, delay, lowest rate, MTU, loss
    ///
    /// The exit code is 1 if they do not arrive.
    #[command(after_help = "Examples:\n  nigh lab path pc server\n  nigh lab path as4 20.0.0.10")]
    Path(control::PathArgs),
    /// Show the settings of a link, or change them between two packets
    #[command(
        after_help = "Examples:\n  nigh lab link as4-as12\n  nigh lab link as4-as12 set delay=50ms loss=1%\n  nigh lab link 'as4>as12' set up=false"
    )]
    Link(control::LinkArgs),
    /// List the links that carried packets, and those that were changed
    #[command(after_help = "Example:\n  nigh lab links --sort drops --count 10")]
    Links(control::LinksArgs),
    /// Show a node, take it down or bring it up
    #[command(after_help = "Example:\n  nigh lab node as4 down")]
    Node(control::NodeArgs),
    /// Follow events: changes, routing, lost packets
    #[command(after_help = "Example:\n  nigh lab events --json | jq .event")]
    Events(control::EventsArgs),
    /// Capture the packets of a node or a link into a pcapng file or a pipe
    #[command(
        after_help = "Examples:\n  nigh lab capture as4-as12 -w out.pcapng --duration 10s\n  nigh lab capture as4 -w - | tcpdump -nr -"
    )]
    Capture(CaptureArgs),
    /// Watch a lab in the terminal: links by load and drops, hosts, events
    #[command(after_help = "Example:\n  nigh lab view")]
    View(ViewArgs),
    /// Generate an internet of any size: the same seed and options always give the same network
    #[command(
        after_help = "Examples:\n  nigh lab gen internet.nigh\n  nigh lab gen internet.nigh --nodes 1000000 --seed 7 --rates"
    )]
    Gen(files::GenArgs),
    /// Show the contents of a network file
    #[command(after_help = "Example:\n  nigh lab show internet.nigh")]
    Show(files::ShowArgs),
    /// Remove what killed labs left behind: namespaces, processes in them, files
    #[command(after_help = "Example:\n  nigh lab clean")]
    Clean(CleanArgs),
    /// Build a network from measurements: traces, ITDK, AS relationships, topologies
    ///
    /// Reads traceroute, mtr, scamper and RIPE Atlas; ITDK nodes and links, AS relationships, prefix2as; the
    /// oracle's topology files and GraphML. Several files, also of different kinds, are merged into one
    /// network. Unreadable lines are counted and shown, and assumptions are listed.
    #[command(arg_required_else_help = true)]
    #[command(
        after_help = "Examples:\n  nigh lab import berlin.txt munich.json -o traces.nigh\n  nigh lab import as-rel2.txt.bz2 prefix2as.gz -o ases.nigh\n  nigh lab import midar.nodes.bz2 midar.links.bz2 -o itdk.nigh --link delay=2ms"
    )]
    Import(crate::import::command::ImportArgs),
}

/// Arguments of `nigh lab run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The scene's file
    #[arg(value_name = "SCENE")]
    pub scene: PathBuf,
    /// The host in which the command runs [default: the first]
    #[arg(long = "in", value_name = "HOST", requires = "command")]
    pub inside: Option<String>,
    /// Prefix of the names of namespaces, so that a scene can run several times at once
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// Serve a map and JSON over HTTP at this address; a port alone means 127.0.0.1
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub http: Option<SocketAddr>,
    /// Print the lab's hosts and, at the end, the outcomes of packets as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the same as text, also when a command is run
    #[arg(short, long)]
    pub verbose: bool,
    /// A command to run in a host
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `nigh lab exec`.
#[derive(Clone, Debug, Args)]
pub struct ExecArgs {
    /// The host
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The lab, by process id or scene name [default: the only one with this host]
    #[arg(long, value_name = "LAB")]
    pub lab: Option<String>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    #[arg(value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Arguments of `nigh lab clean`.
#[derive(Clone, Debug, Args)]
pub struct CleanArgs {
    /// Print as JSON what was removed
    #[arg(long)]
    pub json: bool,
}

/// An address with a port, or a port on the loopback interface.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = || text.parse().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    text.parse().or_else(|_| port()).map_err(|_| {
        "expected an address with a port, such as 127.0.0.1:9161 or [::1]:9161, or a port"
            .to_owned()
    })
}

/// Runs the command; `load` reads a scene.
///
/// # Errors
/// The command failed, with one sentence that says why.
pub fn run(
    command: &Command,
    load: impl FnOnce(&Path) -> Result<(Scene, Stage), Failure>,
) -> Outcome {
    Ok(match command {
        Command::Run(args) => {
            let (scene, stage) = load(&args.scene)?;
            let web = args.http.map(Listener::bind).transpose()?;
            run_scene(args, &scene, stage, web)
                .map_err(|error| Failure::new(error.exit(), error))?
        }
        Command::Exec(args) => {
            // This process becomes the command.
            let error = run::exec(&args.host, &args.command, args.lab.as_deref());
            return Err(Failure::new(error.exit(), error));
        }
        Command::Clean(args) => print(&clean(args)?)?,
        Command::Import(args) => print(&crate::import::command::run(args)?)?,
        Command::Status(args) => print(&control::status(args)?)?,
        Command::Path(args) => {
            let (text, exit) = control::path(args)?;
            print(&text)?;
            exit
        }
        Command::Link(args) => print(&control::link(args)?)?,
        Command::Links(args) => print(&control::links(args)?)?,
        Command::Node(args) => print(&control::node(args)?)?,
        Command::Events(args) => control::events(args)?,
        Command::Capture(args) => {
            print_counters(args.json, args.write == Path::new("-"), &capture(args)?)?
        }
        Command::View(args) => view(args)?,
        Command::Gen(args) => {
            let made = files::generate(args);
            print(&made.map_err(|error| Failure::new(error.exit(), error))?)?
        }
        Command::Show(args) => print(&files::describe(args)?)?,
    })
}

/// Runs a scene until it ends or its command does.
fn run_scene(
    args: &RunArgs,
    scene: &Scene,
    stage: Stage,
    web: Option<Listener>,
) -> Result<Exit, RunError> {
    let options = Options {
        file: std::path::absolute(&args.scene).unwrap_or_else(|_| args.scene.clone()),
        prefix: args.prefix.clone(),
    };
    let (nodes, links) = (stage.network.nodes(), stage.network.links());
    let (network, wires) = (stage.network.clone(), stage.wires.clone());
    let count = wires.len();
    let mut lab = Lab::start(scene, stage, &options)?;
    let context =
        Context::new(lab.handle().clone(), network, lab.namespaces(), wires, options.file.clone());
    let context = Arc::new(context);
    let _server = Server::start(context.clone(), &clean::socket_of(Owner::this()))?;
    let url = web.as_ref().map(|web| format!("http://{}/", web.address()));
    let _web = web.map(|web| web.start(context)).transpose().map_err(RunError::system("HTTP"))?;
    let quiet = !args.command.is_empty() && !args.verbose;
    let say = |value: &Value, text: &dyn Fn() -> String| {
        let text = match args.json {
            true => format!("{value}\n"),
            false if quiet => return,
            false => text(),
        };
        // The lab runs also where nobody reads.
        let _ = print(&text);
    };
    let systems = scene.systems();
    let hosts: Vec<_> = systems.iter().map(|host| &host.name).collect();
    let started = json!({ "running": { "pid": std::process::id(), "nodes": nodes, "links": links, "wires": count, "hosts": hosts, "http": url } });
    say(&started, &|| {
        let end = if args.command.is_empty() { "; Ctrl-C ends it" } else { "" };
        let map = url.iter().map(|url| format!("the map is at {url}\n")).collect::<String>();
        format!(
            "the lab runs: {nodes} nodes, {links} directed links, {count} wires, hosts {}{end}\n{map}",
            join(&hosts)
        )
    });
    let command = match args.command[..] {
        [] => None,
        ref words => Some(lab.spawn(words, args.inside.as_deref())?),
    };
    let status = lab.wait(command)?;
    if let Some(engine) = lab.stop()? {
        let ledger = engine.ledger();
        say(&json!({ "ended": totals(ledger) }), &|| ledger_text(ledger));
    }
    Ok(status.map_or(Exit::Done, |status| Exit::Command(run::exit_code(status))))
}

/// Removes what killed labs left behind; returns what to print.
fn clean(args: &CleanArgs) -> Result<String, CleanError> {
    let cleaned = clean::clean()?;
    if args.json {
        return Ok(format!("{:#}\n", json!(cleaned)));
    }
    let Cleaned { labs, namespaces } = cleaned;
    let mut text = String::new();
    let _ = match (labs, &namespaces[..]) {
        (0, []) => writeln!(text, "nothing was left behind"),
        (_, []) => writeln!(text, "removed what {labs} killed labs had left behind: no namespaces"),
        (_, names) => writeln!(text, "removed namespaces {}", names.join(", ")),
    };
    Ok(text)
}

/// The ledger for people.
fn ledger_text(ledger: &Ledger) -> String {
    let mut text = format!("packets: {} from hosts, {} to hosts", ledger.received, ledger.sent);
    let made: u64 = Made::ALL.iter().map(|made| ledger[*made]).sum();
    let _ =
        write!(text, ", {made} made by nodes and links, {} still in flight", ledger.in_flight());
    for reason in Reason::ALL.iter().filter(|reason| ledger[**reason] > 0) {
        let _ = write!(text, "\n  {:>12} ended: {}", ledger[*reason], reason.word());
    }
    text.push('\n');
    text
}

fn join(words: &[&String]) -> String {
    words.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(", ")
}
