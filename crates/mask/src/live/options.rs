//! The arguments of `nigh mask live`.

use super::{
    Choice,
    output::{Device, Files, Head, Output, OutputError, Pipe, Rotation},
};
use crate::{key, machine::MappingName};
use clap::{Args, ValueEnum, value_parser};
use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Arguments of `nigh mask live`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  nigh mask live eth0 --policy research --key campus.key \\\n    --write campus.pcapng --rotate-interval 1h --files 48\n  nigh mask live eth0 --policy strict --filter 'udp port 53' --write - | tshark -r -\n  nigh mask live eth0 --policy flows --forget --sample 100 --duration 1h --write flows.pcapng\n  nigh mask live eth0 --policy research --key campus.key --tap masked0 & suricata -i masked0"
)]
pub struct LiveArgs {
    /// The interface whose packets are masked
    pub interface: String,
    /// The policy: strict, research, flows, debug, or a file
    #[arg(long, value_name = "POLICY")]
    pub policy: String,
    /// Where the key is.
    #[command(flatten)]
    pub key: key::Source,
    /// Derive another key for each period of UTC
    #[arg(long, value_enum, value_name = "PERIOD")]
    pub rotate: Option<key::Rotation>,
    /// How addresses are mapped where the policy says `prefix`
    #[arg(long, value_enum, default_value_t = MappingName::CryptoPan)]
    pub mapping: MappingName,
    /// Only packets that this expression of pcap-filter(7) takes, as they are before they are masked
    #[arg(long, value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Take one of so many packets, chosen at random before the filter
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub sample: u32,
    /// Only packets of this direction
    #[arg(long, value_enum, default_value_t = Direction::Both)]
    pub direction: Direction,
    /// Bytes of a packet to inspect; longer packets are cut
    #[arg(long, value_name = "BYTES", default_value_t = 65_535, value_parser = config::bytes::<u32>(64..=65_535))]
    pub snap: u32,
    /// Who masks
    #[arg(long, value_enum, default_value_t = Choice::Auto)]
    pub engine: Choice,
    /// Where masked packets go.
    #[command(flatten)]
    pub target: Target,
    /// When a file ends and the next begins.
    #[command(flatten)]
    pub turns: Turns,
    /// Delete older files of this run when there are more than so many
    #[arg(long, value_name = "NUMBER", requires = "turns", value_parser = value_parser!(u32).range(1..))]
    pub files: Option<u32>,
    /// Stop after this time
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub duration: Option<Duration>,
    /// The old name of `--duration`.
    #[arg(long = "for", hide = true, value_parser = config::renamed_flag("--duration TIME"))]
    pub for_time: Option<String>,
    /// Stop after so many masked packets
    #[arg(short = 'n', long, value_name = "PACKETS", value_parser = value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// The old name of `--count`, refused
    #[arg(long, hide = true, value_parser = config::renamed_flag("--count PACKETS"))]
    pub packets: Option<String>,
    /// Append a log of the run to this file, without keys: lines of JSON
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// Where masked packets go: exactly one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Target {
    /// Write a pcapng file, which replaces an old one; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// Write pcapng to this named pipe, which is created if missing; without a reader packets are lost
    #[arg(long, value_name = "PATH")]
    pub fifo: Option<PathBuf>,
    /// Send frames to this TAP device, for tcpdump, Suricata or Zeek; it is created if missing
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
}

/// When a file ends and the next begins: NAME-20261123T160000Z.pcapng.
#[derive(Debug, Args)]
#[group(id = "turns", multiple = true)]
pub struct Turns {
    /// Begin a new file before one has more than so many bytes, such as 100MB or 64MiB
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["fifo", "tap"], value_parser = bytes)]
    pub rotate_size: Option<u64>,
    /// Begin a new file when a full period of UTC is over, such as 1h on the hour; whole seconds
    #[arg(long, value_name = "TIME", conflicts_with_all = ["fifo", "tap"], value_parser = seconds)]
    pub rotate_interval: Option<u64>,
    /// The old name of `--rotate-interval`.
    #[arg(long, hide = true, value_parser = config::renamed_flag("--rotate-interval TIME"))]
    pub rotate_seconds: Option<String>,
}

/// The direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// They come in by the interface.
    In,
    /// They go out by it.
    Out,
    /// All.
    Both,
}

impl LiveArgs {
    /// Whether files or pipes are made when packets are masked already.
    pub fn makes_files(&self) -> bool {
        let Turns { rotate_size, rotate_interval, .. } = &self.turns;
        self.target.fifo.is_some() || rotate_size.is_some() || rotate_interval.is_some()
    }

    /// Where packets go, as a name.
    pub fn output_path(&self) -> &Path {
        let Target { write, fifo, tap } = &self.target;
        let file = write.as_deref().or(fifo.as_deref());
        file.or(tap.as_deref().map(Path::new)).unwrap_or(Path::new("-"))
    }

    /// Opens what the packets go to.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn open(&self, head: Head) -> Result<Output, OutputError> {
        let Target { write, fifo, tap } = &self.target;
        if let Some(path) = fifo {
            return Pipe::open(head, path).map(Output::Pipe);
        }
        if let Some(name) = tap {
            return Device::open(head.link, name).map(Output::Tap);
        }
        let rotation = Rotation {
            bytes: self.turns.rotate_size,
            seconds: self.turns.rotate_interval,
            keep: self.files.map(|most| most as usize),
        };
        // One of the three is there.
        let path = write.as_deref().unwrap_or("-".as_ref());
        Files::create(head, path, rotation, SystemTime::now()).map(Output::Files)
    }
}

/// A duration of whole seconds, at least one.
fn seconds(text: &str) -> Result<u64, String> {
    let time = config::duration(text).map_err(|error| error.to_string())?;
    let is_whole = time.subsec_nanos() == 0 && !time.is_zero();
    is_whole.then_some(time.as_secs()).ok_or_else(|| "give whole seconds, 1s or more".to_owned())
}

/// A size ([`config::Size`]) of at least one byte.
fn bytes(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(config::Size(0)) => Err("a file has at least one byte".to_owned()),
        Ok(config::Size(bytes)) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{live::output::Packet, machine::Link};
    use clap::{CommandFactory, Parser};
    use std::fs;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        live: LiveArgs,
    }

    fn parse(words: &str) -> Result<LiveArgs, String> {
        let words = ["live", "eth0", "--policy", "strict"].into_iter().chain(words.split(' '));
        Cli::try_parse_from(words).map(|cli| cli.live).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_given_is_everything() {
        let live = parse("--write out.pcapng").expect("arguments");
        assert_eq!((live.interface.as_str(), live.policy.as_str()), ("eth0", "strict"));
        assert_eq!((live.sample, live.snap, live.direction), (1, 65_535, Direction::Both));
        assert_eq!(parse("--write - --snap 64KB").expect("arguments").snap, 64_000);
        assert!(live.filter.is_none() && live.duration.is_none() && live.count.is_none());
        assert_eq!(live.engine, Choice::Auto);
        assert_eq!(parse("--write - --engine kernel").expect("arguments").engine, Choice::Kernel);
    }

    #[test]
    fn packets_go_to_one_output_and_only_files_are_rotated() {
        for (words, message) in [
            ("--snap 100", "<--write <FILE>|--fifo <PATH>|--tap <NAME>>"),
            ("--write a --tap b", "cannot be used with"),
            ("--fifo a --rotate-interval 60s", "cannot be used with"),
            ("--write a --rotate-seconds 60", "now `--rotate-interval TIME`"),
            ("--write a --packets 5", "now `--count PACKETS`"),
            ("--write a --rotate-interval 60", "expected a duration"),
            ("--write a --rotate-interval 1.5s", "whole seconds"),
            ("--write a --rotate-interval 0s", "whole seconds"),
            ("--tap a --rotate-size 1M", "cannot be used with"),
            ("--write a --files 3", "--rotate-size"),
            ("--write a --files 0 --rotate-size 1M", "invalid value '0'"),
            ("--write a --rotate-size 0", "at least one byte"),
            ("--write a --rotate-size 10X", "expected bytes such as"),
            ("--write a --rotate-size 99999999999999G", "expected bytes such as"),
            ("--write a --sample 0", "invalid value '0'"),
            ("--write a --snap 70000", "64..=65535"),
            ("--write a --key b --forget", "cannot be used with"),
        ] {
            let error = parse(words).expect_err(words);
            assert!(error.contains(message), "{words}: {error}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            ["1", "20K", "100M", "3G", "64KiB"].map(bytes),
            [1, 20_000, 100_000_000, 3_000_000_000, 65_536].map(Ok)
        );
    }

    #[test]
    fn the_output_is_what_was_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it.pcapng");
        let head = || Head::new(String::new(), Link::Ip, 100);
        let open = |words: &str| {
            let words = words.replace("IT", path.to_str().expect("a name"));
            parse(&words).expect("arguments").open(head()).expect("an output")
        };
        assert!(matches!(open("--fifo IT"), Output::Pipe(_)));
        let mut files =
            open("--write IT --rotate-size 100 --rotate-interval 1000000000s --files 2");
        for at_ns in 0..5 {
            files
                .packet(&Packet {
                    at_ns,
                    length: 40,
                    direction: datapath::mask::Direction::In,
                    comment: None,
                    bytes: &[0x45; 40],
                })
                .expect("written");
        }
        assert_eq!(files.end().0.packets, 5);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
        assert!(matches!(open("--write IT"), Output::Files(_)));
        assert!(path.is_file());
    }

    #[test]
    fn the_help_has_examples_that_are_right() {
        // A long example goes on in the next line.
        let help = Cli::command().render_long_help().to_string().replace("\\\n", " ");
        let examples: Vec<_> =
            help.lines().filter_map(|it| it.trim().strip_prefix("nigh mask ")).collect();
        assert_eq!(examples.len(), 4, "{help}");
        for example in examples {
            let words = example.split(['|', '&']).next().expect("words").trim();
            let words: Vec<_> = shlex::split(words).expect("words of a shell");
            Cli::try_parse_from(words).expect(example);
        }
    }
}
