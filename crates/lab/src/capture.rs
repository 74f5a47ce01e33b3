//! `nigh lab capture`: writes what passes a link or a node into a file or a pipe.

use crate::control::{Request, cli::Which};
use ::capture::pcapng::{self, Block};
use clap::Args;
use job::command::Failure;
use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;
use std::{
    fmt,
    fs::File,
    io::{self, BufReader, ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

/// The longest block that is taken: a super-packet with its description.
const LONGEST: u32 = 1 << 20;

/// Arguments of `nigh lab capture`.
#[derive(Clone, Debug, Args)]
pub struct CaptureArgs {
    /// A node; or a link: `A-B` for both directions, `'A>B'` for one
    #[arg(value_name = "NODE|LINK")]
    pub what: String,
    /// The pcapng file; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    pub write: PathBuf,
    /// End after so many packets
    #[arg(short = 'n', long, value_name = "PACKETS")]
    pub count: Option<u64>,
    /// End after so long
    #[arg(short, long, value_name = "TIME", value_parser = config::duration)]
    pub duration: Option<Duration>,
    /// The old name of `--duration`.
    #[arg(long, hide = true, value_parser = config::renamed_flag("--duration TIME"))]
    pub seconds: Option<String>,
    /// Bytes that are kept of each packet
    #[arg(short, long, default_value_t = 262_144, value_name = "BYTES",
          value_parser = config::bytes::<u32>(0..=u32::MAX.into()))]
    pub snap: u32,
    /// The lab, by process id or scene name [default: the only one]
    #[arg(long, value_name = "LAB")]
    pub lab: Option<String>,
    /// Print at the end as JSON how many packets were captured and lost: to stdout, or to stderr where
    /// stdout has the capture
    #[arg(long)]
    pub json: bool,
}

/// What a capture has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that found no room in the lab's queue.
    pub lost: u64,
}

impl fmt::Display for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets", self.packets)?;
        match self.lost {
            0 => Ok(()),
            lost => write!(f, ", {lost} more were dropped from the capture"),
        }
    }
}

/// A capture failed.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The capture broke off.
    #[error("the capture was interrupted after {packets} packets; more may have passed: {}", .path.display())]
    Cut {
        /// Packets that are in the file.
        packets: u64,
        /// The file.
        path: PathBuf,
    },
    /// What came is no pcapng file.
    #[error("the lab sent what is not a capture: {0}")]
    Read(io::Error),
    /// Signals cannot be waited for.
    #[error("signals: {0}")]
    Signals(nix::Error),
}

/// Captures until a limit is reached, SIGINT or SIGTERM comes, the lab ends, or nobody reads any more;
/// returns what the file has.
///
/// # Errors
/// No lab answers, or it refuses; or see [`CaptureError`].
pub fn capture(args: &CaptureArgs) -> Result<Captured, Failure> {
    let request = Request::Capture {
        what: args.what.clone(),
        snap: args.snap,
        count: args.count,
        seconds: args.duration.map(|duration| duration.as_secs_f64()),
    };
    let which = Which { lab: args.lab.clone(), json: false };
    let mut connection = which.connect()?;
    let serde_json::Value::Object(_) = connection.ask(&request)? else {
        return Ok(Captured::default());
    };
    let stream = connection.stream()?;
    end_on_signal(stream.get_ref())?;
    Ok(match args.write == Path::new("-") {
        true => copy(stream, &mut io::stdout().lock(), &args.write)?,
        false => {
            let write = |source| CaptureError::Write { path: args.write.clone(), source };
            copy(stream, &mut File::create(&args.write).map_err(write)?, &args.write)?
        }
    })
}

/// Has a signal end the capture in order: the lab is asked to stop, and sends the rest.
fn end_on_signal(stream: &UnixStream) -> Result<(), CaptureError> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.thread_block().map_err(CaptureError::Signals)?;
    let stream = stream.try_clone().map_err(CaptureError::Read)?;
    std::thread::spawn(move || {
        let _ = signals.wait();
        let _ = stream.shutdown(Shutdown::Write);
    });
    Ok(())
}

/// Copies block by block; counts packets and those that found no room. The lab's last block are
/// statistics: without them it broke off.
fn copy(
    mut from: BufReader<UnixStream>,
    to: &mut impl Write,
    path: &Path,
) -> Result<Captured, CaptureError> {
    let (mut packets, mut lost, mut whole) = (0, 0, false);
    let mut block = Vec::new();
    loop {
        let mut start = [0; 8];
        match from.read_exact(&mut start) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => match whole {
                true => return Ok(Captured { packets, lost }),
                false => return Err(CaptureError::Cut { packets, path: path.to_owned() }),
            },
            Err(error) => return Err(CaptureError::Read(error)),
        }
        let length = pcapng::length(start);
        if !(start.len() as u32..=LONGEST).contains(&length) {
            return Err(CaptureError::Read(ErrorKind::InvalidData.into()));
        }
        block.clear();
        block.extend(start);
        block.resize(length as usize, 0);
        let rest = block.get_mut(start.len()..).unwrap_or_default();
        from.read_exact(rest).map_err(CaptureError::Read)?;
        match pcapng::kind(&block) {
            Block::Packet => packets += 1,
            Block::Statistics(dropped) => {
                lost += dropped;
                whole = true;
            }
            Block::Other => {}
        }
        let written = to.write_all(&block).and_then(|()| match from.buffer().is_empty() {
            true => to.flush(),
            false => Ok(()),
        });
        match written {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                return Ok(Captured { packets, lost });
            }
            Err(source) => return Err(CaptureError::Write { path: path.to_owned(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_that_breaks_off_between_two_blocks_is_an_error() {
        let mut head = Vec::new();
        pcapng::section(&mut head, "nigh", None);
        pcapng::interface(&mut head, Some("a>b"), pcapng::Medium::Ip, 100);
        let mut whole = head.clone();
        pcapng::statistics(&mut whole, 0, 7, 3);
        let copied = |bytes: &[u8]| {
            let (mut to, from) = UnixStream::pair().expect("a pair");
            to.write_all(bytes).expect("room");
            drop(to);
            let mut file = Vec::new();
            let result = copy(BufReader::new(from), &mut file, Path::new("x.pcapng"));
            assert_eq!(file, bytes);
            result
        };
        let expected = Captured { packets: 0, lost: 3 };
        assert_eq!(copied(&whole).expect("a capture"), expected);
        assert_eq!(expected.to_string(), "0 packets, 3 more were dropped from the capture");
        for bytes in [&head[..], &[]] {
            let cut = copied(bytes).expect_err("it broke off");
            assert!(matches!(cut, CaptureError::Cut { packets: 0, .. }), "{cut}");
        }
    }
}
