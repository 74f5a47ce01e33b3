//! The command line. Every sub-command shows an example in its help.

use crate::config::{self, DEFAULT_CONTROL, DEFAULT_FILE};
use clap::{Arg, ArgAction, Args, Parser, Subcommand, ValueEnum, value_parser};
use std::{
    env,
    path::{Path, PathBuf},
};

/// The codes, for `nigh --help`.
const EXIT_CODES: &str = "\
Exit codes:
  0  success; for status commands: healthy
  1  failed or refused; stderr has the reason. Also: blast, ping, load or rank got no reply; a
     measurement failed; `nigh lab path` shows that packets do not arrive
  2  invalid command line
  3  no daemon answers on the control socket; no lab runs
  4  a masked capture contains data of its original
  5  status shown, but not healthy
  78  the configuration of `nigh run` is wrong
`nigh lab run` and `nigh lab exec` return the exit code of the command that they run, or 128 \
plus the number of the signal that ended it; 127 if it is not found, 126 if it cannot be run; \
`nigh lab exec` returns 125 if the host cannot be entered.

Example:
  nigh check && nigh run";

/// One program for the edge of a network: anycast echo, distance ranking, emulation, measurement, traffic control and anonymization
#[derive(Debug, Parser)]
#[command(name = "nigh", version, after_help = EXIT_CODES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the daemon with the jobs whose sections are in the configuration file
    ///
    /// SIGHUP or `nigh reload` rereads the file; an invalid file changes nothing. SIGTERM drains and
    /// then stops; a second SIGTERM stops at once.
    #[command(after_help = "Example:\n  nigh run -c /etc/nigh/nigh.toml --log info")]
    Run(RunArgs),
    /// Check a configuration file and report mistakes with line, column and key
    ///
    /// With --kernel: show what this kernel and its interfaces can do for each job. The exit code is then
    /// 1 if a job cannot work. With RUST_LOG=libbpf=debug stderr has the whole log of a program that the
    /// kernel's verifier refuses.
    #[command(
        after_help = "Examples:\n  nigh check -c /etc/nigh/nigh.toml\n  sudo nigh check --host\n  nigh check --kernel eth0 eth1\n  nigh check --schema > nigh.schema.json\n  nigh check --template > nigh.toml"
    )]
    Check(CheckArgs),
    /// Show the state of the node: each job's state, counters and health
    ///
    /// The exit code is 5 if the node is not healthy.
    #[command(after_help = "Example:\n  nigh status\n  nigh status --json | jq .node.name")]
    Status(DaemonArgs),
    /// Take this node out of service: withdraw its routes, and answer until no more requests arrive
    ///
    /// A drained node stays drained over a restart, until `nigh undrain`.
    #[command(after_help = "Example:\n  nigh drain && systemctl stop nigh")]
    Drain(DaemonArgs),
    /// Take this node back into service: announce its prefixes as soon as it is healthy
    #[command(after_help = "Example:\n  nigh undrain")]
    Undrain(DaemonArgs),
    /// Make the daemon reread its configuration file; an invalid file changes nothing
    #[command(after_help = "Example:\n  nigh check -c /etc/nigh/nigh.toml && nigh reload")]
    Reload(DaemonArgs),
    /// Query and control the responder
    #[command(after_help = "Example:\n  nigh echo top --count 5")]
    Echo(EchoArgs),
    /// Query and control the oracle
    #[command(
        after_help = "Examples:\n  nigh oracle print path 130.149.1.7 8.8.8.8\n  nigh oracle set link 10.0.0.1 10.0.0.2 bandwidth 100Mbit\n  nigh oracle rank --server 192.0.2.53 198.51.100.1 203.0.113.1\n  nigh oracle console"
    )]
    Oracle(OracleArgs),
    /// Measure delay, loss, throughput and paths, and query the measuring station
    #[command(
        after_help = "Examples:\n  nigh probe run owd brno\n  nigh probe run trace 192.0.2.9\n  nigh probe status"
    )]
    Probe(ProbeArgs),
    /// Classify, limit, filter and log the traffic that a router forwards
    #[command(
        after_help = "Examples:\n  nigh gate status\n  nigh gate top --by host\n  nigh gate deny bittorrent --host 10.0.0.0/24\n  nigh gate bypass on"
    )]
    Gate(GateArgs),
    /// Anonymize packets, live or in captures
    #[command(
        visible_alias = "anonymize",
        after_help = "Examples:\n  nigh mask key campus.key\n  nigh mask file --policy research --key campus.key in.pcap out.pcapng\n  nigh mask live eth0 --policy research --key campus.key --write out.pcapng\n  nigh mask policy check strict"
    )]
    Mask(MaskArgs),
    /// Run a simulated internet that carries real packets between real hosts
    #[command(
        after_help = "Examples:\n  nigh lab run scene.toml\n  nigh lab exec pc ping -c 3 server\n  nigh lab clean"
    )]
    Lab(LabArgs),
    /// Carry one byte stream over several TCP connections, which may take different paths
    #[command(
        after_help = "Examples:\n  nigh psock key both-ends.key\n  nigh psock recv big.iso --key both-ends.key --listen 0.0.0.0:7000\n  nigh psock send big.iso --key both-ends.key --path 192.0.2.1:7000 --path 198.51.100.1:7000"
    )]
    Psock(PsockArgs),
    /// Send echo requests at a fixed rate and report how many were answered and where the others were lost
    Blast(echo::blast::Args),
    /// Print the completion script for a shell, which completes commands, options and names
    ///
    /// The script calls nigh to complete names: policies, applications, rules, stations, routers, and
    /// hosts, nodes and links of a running lab.
    #[command(
        after_help = "Examples:\n  nigh completions bash > /etc/bash_completion.d/nigh\n  source <(nigh completions zsh)"
    )]
    Completions(CompletionsArgs),
    /// Write the man pages into a directory, or the first one to stdout
    ///
    /// nigh.toml(5) goes into the same directory, or into `man5` beside it if it is called `man1`.
    #[command(after_help = "Example:\n  nigh man /usr/local/share/man/man1")]
    Man(ManArgs),
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    /// Plain text on stderr.
    Text,
    /// One JSON object a line on stderr.
    Json,
    /// To systemd's journal, each value as a field of its own.
    Journald,
}

/// Arguments of `nigh run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The configuration file
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    pub config: PathBuf,
    /// The user that the daemon becomes when root starts it; `root` stays root
    #[arg(long, value_name = "NAME", default_value = crate::privileges::USER)]
    pub user: String,
    /// Format of log lines [default: journald if stderr is the journal, as in a unit of systemd; else text]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// What to log: error, warn, info, debug, trace, or directives such as `info,echo=debug`
    #[arg(long, env = "RUST_LOG", default_value = "info", value_name = "LEVEL")]
    pub log: String,
}

/// Arguments of `nigh check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Check this host as well, as root: whether the daemon's user can read and write the files that the
    /// configuration names, and whether its interfaces are there
    #[arg(long, conflicts_with = "schema")]
    pub host: bool,
    /// The user that the daemon runs as, for --host
    #[arg(long, value_name = "NAME", default_value = crate::privileges::USER, requires = "host")]
    pub user: String,
    /// Print the JSON Schema of the configuration file, for editors; no file is read
    #[arg(long, conflicts_with = "kernel")]
    pub schema: bool,
    /// Print a configuration file with every key commented out, to start from; no file is read
    #[arg(long, conflicts_with_all = ["schema", "json", "kernel"])]
    pub template: bool,
    /// Show what this kernel and its interfaces can do for each job: those that are named, else those of
    /// the configuration file, else all; only loads programs to try them, changes nothing
    #[arg(long)]
    pub kernel: bool,
    /// The interfaces for --kernel
    #[arg(value_name = "INTERFACE", requires = "kernel")]
    pub interfaces: Vec<String>,
    /// The configuration file
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    pub config: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// The variable that names the control socket.
pub const SOCKET_VARIABLE: &str = "NIGH_SOCKET";

/// Which daemon to ask.
#[derive(Clone, Debug, Args)]
pub struct Target {
    /// The daemon's control socket [default: node.control of --config, else $NIGH_SOCKET]
    #[arg(long, value_name = "PATH", global = true)]
    pub socket: Option<PathBuf>,
    /// The configuration file whose node.control names the control socket [default:
    /// /etc/nigh/nigh.toml if there is one, else the socket is /run/nigh/control.sock]
    #[arg(short, long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

impl Target {
    /// Path of the control socket to use: from --socket, else from --config, else from NIGH_SOCKET,
    /// else from the default configuration file, else the default.
    ///
    /// # Errors
    ///
    /// The given configuration file is not valid.
    pub fn path(&self) -> Result<PathBuf, job::file::LoadError> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        if let Some(file) = &self.config {
            return Ok(config::load(file)?.node.control);
        }
        if let Some(socket) = env::var_os(SOCKET_VARIABLE).filter(|socket| !socket.is_empty()) {
            return Ok(socket.into());
        }
        let file = config::path_of(Path::new(DEFAULT_FILE), "control");
        Ok(file.unwrap_or_else(|| DEFAULT_CONTROL.into()))
    }
}

/// Which daemon to ask, and in which form to print the answer.
#[derive(Clone, Debug, Args)]
pub struct DaemonArgs {
    /// Which daemon to ask.
    #[command(flatten)]
    pub target: Target,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Arguments of `nigh echo`.
#[derive(Debug, Args)]
pub struct EchoArgs {
    /// The request.
    #[command(subcommand)]
    pub command: EchoCommand,
    /// Which daemon to ask, and how.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// `nigh echo ...`
#[derive(Debug, Subcommand)]
pub enum EchoCommand {
    /// Show the state of the responder and its announcement
    ///
    /// The exit code is 5 if it is not healthy.
    #[command(after_help = "Example:\n  nigh echo status --json")]
    Status,
    /// The responder's own commands.
    #[command(flatten)]
    Operation(echo::cli::Command),
}

/// Hides options of a job's commands in the help of one that does not use them; given all the same,
/// they are refused ([`crate::commands`]).
fn without(command: clap::Command, options: &[&'static str]) -> clap::Command {
    options.iter().fold(command, |command, &name| {
        let option = Arg::new(name).long(name).hide(true);
        command.arg(match name {
            "json" => option.action(ArgAction::SetTrue),
            "config" => option.short('c').value_parser(value_parser!(PathBuf)),
            _ => option.value_parser(value_parser!(PathBuf)),
        })
    })
}

/// Arguments of `nigh probe`.
#[derive(Debug, Args)]
#[command(mut_subcommand("show", |show| without(show, &["socket"])))]
#[command(mut_subcommand("export", |export| without(export, &["socket"])))]
pub struct ProbeArgs {
    /// The request.
    #[command(subcommand)]
    pub command: ProbeCommand,
    /// Which daemon to ask, and how.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// `nigh probe ...`
#[derive(Debug, Subcommand)]
pub enum ProbeCommand {
    /// Show the station: its clock, the other stations, the outcomes of tests
    ///
    /// The exit code is 5 if it is not healthy.
    #[command(after_help = "Example:\n  nigh probe status --json | jq .peers")]
    Status,
    /// The station's own commands.
    #[command(flatten)]
    Operation(probe::cli::Command),
}

/// Arguments of `nigh mask`.
#[derive(Debug, Args)]
pub struct MaskArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: mask::cli::Command,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Arguments of `nigh gate`.
#[derive(Debug, Args)]
#[command(mut_subcommand("watch", |watch| without(watch, &["json"])))]
#[command(mut_subcommand("classify", |classify| without(classify, &["socket"])))]
#[command(mut_subcommand("replay", |replay| without(replay, &["socket", "config"])))]
pub struct GateArgs {
    /// The request.
    #[command(subcommand)]
    pub command: GateCommand,
    /// Which daemon to ask, and how.
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// `nigh gate ...`
#[derive(Debug, Subcommand)]
pub enum GateCommand {
    /// Show the gate: health, flows, packets by outcome, rules, limits
    ///
    /// The exit code is 5 if it is not healthy.
    #[command(after_help = "Examples:\n  nigh gate status\n  nigh gate status --json | jq .flows")]
    Status,
    /// The gate's own commands.
    #[command(flatten)]
    Operation(gate::cli::Command),
}

/// Arguments of `nigh oracle`.
#[derive(Debug, Args)]
#[command(mut_subcommand("console", |console| without(console, &["json"])))]
pub struct OracleArgs {
    /// The request.
    #[command(subcommand)]
    pub command: OracleCommand,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// `nigh oracle ...`
#[derive(Debug, Subcommand)]
pub enum OracleCommand {
    /// Read commands from the terminal: status, print, set, create, delete, reload, dump
    ///
    /// With history and completion; an empty line lists the commands.
    #[command(after_help = "Example:\n  nigh oracle console")]
    Console(Target),
    /// Show the state of the oracle
    ///
    /// The exit code is 5 if it is not healthy.
    #[command(after_help = "Example:\n  nigh oracle status --json")]
    Status(DaemonArgs),
    /// The oracle's own commands.
    #[command(flatten)]
    Operation(oracle::cli::Command<DaemonArgs>),
}

/// Arguments of `nigh lab`.
#[derive(Debug, Args)]
#[command(mut_subcommand("exec", |exec| without(exec, &["json"])))]
#[command(mut_subcommand("view", |view| without(view, &["json"])))]
pub struct LabArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: lab::cli::Command,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Arguments of `nigh psock`.
#[derive(Debug, Args)]
pub struct PsockArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: psock::cli::Command,
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// Arguments of `nigh completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `nigh man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The directory, created if missing; `-` prints the page of `nigh` itself
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use job::command::Exit;

    #[test]
    fn the_help_has_every_code() {
        use Exit::{Configuration, Done, Failed, Leak, NoDaemon, Unhealthy, Usage};
        for exit in [Done, Failed, Usage, NoDaemon, Leak, Unhealthy, Configuration] {
            let code = format!("\n  {}  ", exit.code());
            assert!(EXIT_CODES.contains(&code), "{exit:?}");
        }
    }
}
