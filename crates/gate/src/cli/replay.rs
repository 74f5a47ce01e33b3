//! `nigh gate replay`: sends a capture's packets out of an interface.

use ::capture::{Frame, Item, LinkType, ReadError, read_all, unpack};
use clap::Args;
use classify::capture::layers::Link;
use datapath::socket::{OpenError, Receive, Socket};
use nix::net::if_::if_nametoindex;
use serde::Serialize;
use std::{
    fmt,
    fs::File,
    io,
    path::PathBuf,
    str::FromStr,
    thread,
    time::{Duration, Instant},
};
use wire::{EtherType, Mac, ethernet};

/// Longest frame that a packet socket takes: Ethernet's header and the longest IP packet.
const LONGEST: usize = ethernet::HEADER + 65_535;
/// Waits shorter than this are skipped; the next ones make up for them.
const SHORTEST_WAIT: Duration = Duration::from_micros(200);

/// Arguments of `nigh gate replay`.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// The capture: pcap or pcapng, optionally compressed with gzip or zstd
    #[arg(value_name = "FILE")]
    pub capture: PathBuf,
    /// The interface that packets leave through
    #[arg(short, long, value_name = "IF")]
    pub interface: String,
    /// How many times as fast as recorded: a number, or `max` to send without waiting
    #[arg(long, value_name = "N|max", default_value = "1")]
    pub speed: Speed,
    /// Destination MAC address of all frames [default: as recorded; broadcast for links without Ethernet]
    #[arg(long, value_name = "MAC")]
    pub to: Option<Mac>,
}

/// How much faster than recorded packets are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// So many times.
    Times(f64),
    /// Without waiting.
    Max,
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse::<f64>() {
            Ok(times) if (0.001..=1e6).contains(&times) => Ok(Self::Times(times)),
            _ => Err("give a number from 0.001 to 1000000, or `max`".into()),
        }
    }
}

/// A capture could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// There is no such interface.
    #[error("there is no interface {0}: see `ip link`")]
    Interface(String),
    /// No socket.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file.
    #[error("cannot open {}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The capture.
    #[error(transparent)]
    Capture(#[from] ReadError),
    /// The interface accepts no frames.
    #[error("the interface accepts no frames: {0}; is it up?")]
    Send(io::Error),
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sent {
    /// Frames that left.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of these, frames that were not recorded whole; missing bytes are sent as zeros.
    pub filled: u64,
    /// Frames that were not sent: longer than the interface takes.
    pub too_long: u64,
    /// Frames that were not sent: of a link that is not known.
    pub other_links: u64,
    /// How long it took.
    pub seconds: f64,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frames, bytes, filled, too_long, other_links, seconds } = *self;
        let rate = if seconds > 0.0 { frames as f64 / seconds } else { 0.0 };
        writeln!(f, "{frames} frames, {bytes} bytes in {seconds:.3} s ({rate:.0} frames/s)")?;
        for (count, what) in [
            (filled, "of these were truncated in the capture and padded with zeros"),
            (too_long, "frames were too long for the interface and not sent"),
            (other_links, "frames of an unknown link type were not sent"),
        ] {
            if count > 0 {
                writeln!(f, "{count} {what}")?;
            }
        }
        Ok(())
    }
}

/// Sends the frames of a capture, with the waits between them as recorded or shorter.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(args: &ReplayArgs) -> Result<Sent, ReplayError> {
    let index = if_nametoindex(args.interface.as_str())
        .map_err(|_| ReplayError::Interface(args.interface.clone()))?;
    let socket = Socket::packet(index, Receive::Nothing)?;
    let failed = |source| ReplayError::File { path: args.capture.clone(), source };
    let file = unpack(File::open(&args.capture).map_err(failed)?).map_err(failed)?;
    let mut sent = Sent::default();
    let mut buffer = Vec::with_capacity(LONGEST);
    let begin = Instant::now();
    let mut first_ns = None;
    read_all::<ReplayError>(file, |item, _| {
        let frame = match item {
            Item::Frame(frame) => frame,
            Item::Lost => {
                sent.other_links += 1;
                return Ok(());
            }
            Item::Other(_) => return Ok(()),
        };
        if !write(&frame, args.to, &mut buffer) {
            sent.other_links += 1;
            return Ok(());
        }
        if let Speed::Times(times) = args.speed {
            let first_ns = *first_ns.get_or_insert(frame.at_ns);
            let after = frame.at_ns.saturating_sub(first_ns) as f64 / times;
            let wait = Duration::from_nanos(after as u64).saturating_sub(begin.elapsed());
            if wait >= SHORTEST_WAIT {
                thread::sleep(wait);
            }
        }
        match send(&socket, &buffer) {
            Ok(()) => {
                sent.frames += 1;
                sent.bytes += buffer.len() as u64;
                sent.filled += u64::from(frame.bytes.len() < frame.length as usize);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(nix::libc::EMSGSIZE) => {
                sent.too_long += 1;
                Ok(())
            }
            Err(error) => Err(ReplayError::Send(error)),
        }
    })?;
    sent.seconds = begin.elapsed().as_secs_f64();
    Ok(sent)
}

/// Sends a frame; waits while the interface's queue is full.
fn send(socket: &Socket, frame: &[u8]) -> io::Result<()> {
    loop {
        match socket.send(frame, frame.len()) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
}

/// Puts a frame as it was on the wire into the buffer; false where that is not available.
fn write(frame: &Frame<'_>, to: Option<Mac>, out: &mut Vec<u8>) -> bool {
    out.clear();
    let mut length = frame.length as usize;
    if frame.link == LinkType::ETHERNET {
        if frame.bytes.len() < ethernet::HEADER {
            return false;
        }
        out.extend_from_slice(frame.bytes);
    } else {
        let Some(packet) = Link::new(frame.link).ip(frame.bytes) else { return false };
        let kind = match packet.first().map(|first| first >> 4) {
            Some(4) => EtherType::IPV4,
            Some(6) => EtherType::IPV6,
            _ => return false,
        };
        out.extend_from_slice(&Mac::BROADCAST.0);
        out.extend_from_slice(&Mac::default().0);
        out.extend_from_slice(&kind.0.to_be_bytes());
        out.extend_from_slice(packet);
        length = (length + out.len()).saturating_sub(frame.bytes.len());
    }
    if let (Some(to), Some(place)) = (to, out.get_mut(..6)) {
        place.copy_from_slice(&to.0);
    }
    out.resize(length.clamp(out.len(), LONGEST.max(out.len())), 0);
    true
}
