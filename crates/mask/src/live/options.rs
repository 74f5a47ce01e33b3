//! The arguments of `nigh mask live`.

use super::output::{Device, Files, Head, Output, OutputError, Pipe, Rotation};
use crate::{key, machine::MappingName};
use clap::{Args, ValueEnum, value_parser};
use std::{
    num::ParseIntError,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Arguments of `nigh mask live`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  nigh mask live eth0 --policy research --key campus.key --write campus.pcapng --rotate-seconds 3600 --files 48\n  nigh mask live eth0 --policy strict --filter 'udp port 53' --write - | tshark -r -\n  nigh mask live eth0 --policy flows --forget --sample 100 --for 1h --write flows.pcapng\n  nigh mask live eth0 --policy research --key campus.key --tap masked0 & suricata -i masked0"
)]
pub struct LiveArgs {
    /// The interface whose packets are masked
    pub interface: String,
    /// What becomes of the packets: strict, research, flows, debug, or a file
    #[arg(long, value_name = "NAME|FILE")]
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
    /// Only one of so many packets, chosen at random before the filter looks at them
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub sample: u32,
    /// Only packets that go this way
    #[arg(long, value_enum, default_value_t = Direction::Both)]
    pub direction: Direction,
    /// Bytes of a packet that are looked at: what lies behind them is cut
    #[arg(long, value_name = "BYTES", default_value_t = 65_535, value_parser = value_parser!(u32).range(64..=65_535))]
    pub snap: u32,
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
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    pub duration: Option<Duration>,
    /// Stop after so many masked packets
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u64).range(1..))]
    pub packets: Option<u64>,
    /// Append to this file who masks what, and how it ended: lines of JSON, without keys
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// Where masked packets go: exactly one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Target {
    /// To a file of pcapng, which replaces what is there; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// As pcapng to whoever reads this pipe, which is made if it is not there; without a reader they are lost
    #[arg(long, value_name = "PATH")]
    pub fifo: Option<PathBuf>,
    /// As frames that this TAP device receives, for tcpdump, Suricata or Zeek; it is made if it is not there
    #[arg(long, value_name = "NAME")]
    pub tap: Option<String>,
}

/// When a file ends and the next begins: NAME-20261123T160000Z.pcapng.
#[derive(Debug, Args)]
#[group(id = "turns", multiple = true)]
pub struct Turns {
    /// Begin a new file before one has more than so many bytes, such as 100M (K, M, G: powers of 1000)
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["fifo", "tap"], value_parser = bytes)]
    pub rotate_size: Option<u64>,
    /// Begin a new file when a full period of so many seconds of UTC is over, such as 3600 on the hour
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["fifo", "tap"], value_parser = value_parser!(u64).range(1..))]
    pub rotate_seconds: Option<u64>,
}

/// Which way packets go.
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
        let Turns { rotate_size, rotate_seconds } = self.turns;
        self.target.fifo.is_some() || rotate_size.is_some() || rotate_seconds.is_some()
    }

    /// Where packets go, as a name.
    pub fn place(&self) -> &Path {
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
            seconds: self.turns.rotate_seconds,
            keep: self.files.map(|most| most as usize),
        };
        // One of the three is there.
        let path = write.as_deref().unwrap_or("-".as_ref());
        Files::create(head, path, rotation, SystemTime::now()).map(Output::Files)
    }
}

/// A number of bytes, at least one.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) if text.ends_with('K') => (digits, 1000),
        Some(digits) if text.ends_with('M') => (digits, 1_000_000),
        Some(digits) => (digits, 1_000_000_000),
        None => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|error: ParseIntError| error.to_string())?;
    number
        .checked_mul(unit)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "give 1 to 18446744073G".to_owned())
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
        assert!(live.filter.is_none() && live.duration.is_none() && live.packets.is_none());
    }

    #[test]
    fn packets_go_to_one_place_and_only_files_are_rotated() {
        for (words, said) in [
            ("--snap 100", "<--write <FILE>|--fifo <PATH>|--tap <NAME>>"),
            ("--write a --tap b", "cannot be used with"),
            ("--fifo a --rotate-seconds 60", "cannot be used with"),
            ("--tap a --rotate-size 1M", "cannot be used with"),
            ("--write a --files 3", "--rotate-size"),
            ("--write a --files 0 --rotate-size 1M", "invalid value '0'"),
            ("--write a --rotate-size 0", "give 1 to"),
            ("--write a --rotate-size 10X", "invalid digit"),
            ("--write a --rotate-size 99999999999999G", "give 1 to"),
            ("--write a --sample 0", "invalid value '0'"),
            ("--write a --snap 70000", "64..=65535"),
            ("--write a --key b --forget", "cannot be used with"),
        ] {
            let error = parse(words).expect_err(words);
            assert!(error.contains(said), "{words}: {error}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            ["1", "20K", "100M", "3G"].map(bytes),
            [1, 20_000, 100_000_000, 3_000_000_000].map(Ok)
        );
    }

    #[test]
    fn the_output_is_what_was_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("it.pcapng");
        let head = || Head::new(String::new(), Link::Ip, 100);
        let open = |words: &str| {
            let words = words.replace("IT", place.to_str().expect("a name"));
            parse(&words).expect("arguments").open(head()).expect("an output")
        };
        assert!(matches!(open("--fifo IT"), Output::Pipe(_)));
        let mut files = open("--write IT --rotate-size 100 --rotate-seconds 1000000000 --files 2");
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
        assert!(place.is_file());
    }

    #[test]
    fn the_help_has_examples_that_are_right() {
        let help = Cli::command().render_long_help().to_string();
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
