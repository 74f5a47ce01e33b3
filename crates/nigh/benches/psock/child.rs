//! The two ends of a transfer, each a process of its own in its system: this benchmark calls itself.

use crate::{
    Failure,
    content::{Checker, fill},
    scenes::CONGESTION,
};
use nix::time::{ClockId, clock_gettime};
use psock::{Config, Options, PsockListener, PsockStream};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr},
    time::Duration,
};

/// The first word of this program's arguments when it is an end.
pub(crate) const CHILD: &str = "an-end-of-a-transfer";

/// What an end does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) send: bool,
    pub(crate) transport: Transport,
    /// Numbers of the paths, from 1; TCP and MPTCP connect over the first.
    pub(crate) paths: Vec<usize>,
    pub(crate) port: u16,
    /// When sending ends: after these bytes,
    pub(crate) bytes: Option<u64>,
    /// or after these seconds.
    pub(crate) seconds: Option<f64>,
    /// Whether both ends hash the stream with SHA-256.
    pub(crate) hash: bool,
}

/// What carries the bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Transport {
    /// One connection of the kernel.
    Tcp,
    /// The kernel's connection over several paths (RFC 8684).
    Mptcp,
    /// A session with these options ([`psock::Options`]).
    Psock(Vec<(String, String)>),
}

/// The final report of an end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) bytes: u64,
    /// Offset of the first byte that differs from what was sent.
    pub(crate) wrong: Option<u64>,
    /// SHA-256 of the stream.
    pub(crate) hash: Option<String>,
    /// Seconds from any point in time on, the same for all processes, at the first byte.
    pub(crate) begin: f64,
    /// Bytes that had been read at the end of each [`BIN`] since then.
    pub(crate) through: Vec<u64>,
    /// Seconds in which nothing was read, [`PAUSE`] and longer: when each began and how long it was.
    pub(crate) pauses: Vec<(f64, f64)>,
    /// What the transport counted.
    pub(crate) counters: serde_json::Value,
}

/// Seconds between two readings of what came through.
pub(crate) const BIN: f64 = 0.02;
/// Seconds without bytes that are worth noting.
const PAUSE: f64 = 0.01;
/// Bytes after which the receiving end reports how many it has.
const STEP: u64 = 100_000_000;
/// Bytes of a read and a write.
const CHUNK: usize = 256 << 10;

/// Runs a task and prints its report.
pub(crate) fn run(task: &str) -> Result<(), Failure> {
    let task: Task = serde_json::from_str(task)?;
    let report = if task.send { send(&task)? } else { receive(&task)? };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Seconds of the clock that all processes share.
pub(crate) fn now() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    time.unwrap_or_default().as_secs_f64()
}

/// The address of a path's end at `right`.
fn address(task: &Task, path: usize) -> Result<SocketAddr, Failure> {
    Ok(format!("10.1.{path}.2:{}", task.port).parse()?)
}

/// A socket of the kernel and the address for it.
fn socket(task: &Task, protocol: Protocol) -> Result<(Socket, SocketAddr), Failure> {
    let path = *task.paths.first().ok_or("no path")?;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    socket.set_tcp_congestion(CONGESTION.as_bytes())?;
    Ok((socket, address(task, path)?))
}

/// The configuration of a session.
fn config(options: &[(String, String)], paths: &[usize], port: u16) -> Result<Config, Failure> {
    let mut all = Options::default();
    for (name, text) in options {
        all.set(name, text)?;
    }
    for n in paths {
        all.set("path", &format!("10.1.{n}.1>10.1.{n}.2:{port}"))?;
    }
    Ok(all.config()?)
}

fn send(task: &Task) -> Result<Report, Failure> {
    let protocol = match &task.transport {
        Transport::Tcp => Protocol::TCP,
        Transport::Mptcp => Protocol::MPTCP,
        Transport::Psock(options) => {
            let stream = PsockStream::connect(&config(options, &task.paths, task.port)?)?;
            let mut report = pour(task, &stream)?;
            stream.shutdown(Shutdown::Write)?;
            // The other end closes when it has everything.
            while (&stream).read(&mut [0; 1024])? > 0 {}
            report.counters = serde_json::to_value(stream.counters())?;
            stream.close()?;
            return Ok(report);
        }
    };
    let (socket, address) = socket(task, protocol)?;
    socket.connect(&address.into())?;
    let report = pour(task, &socket)?;
    socket.shutdown(Shutdown::Write)?;
    while (&socket).read(&mut [0; 1024])? > 0 {}
    Ok(report)
}

/// Writes as much as the task asks for.
fn pour(task: &Task, mut into: impl Write) -> Result<Report, Failure> {
    let mut report = Report { begin: now(), ..Report::default() };
    let mut hash = task.hash.then(|| Context::new(&SHA256));
    let mut chunk = vec![0; CHUNK];
    loop {
        let left = task.bytes.map_or(u64::MAX, |bytes| bytes - report.bytes);
        if left == 0 || task.seconds.is_some_and(|seconds| now() - report.begin >= seconds) {
            break;
        }
        let length = left.min(CHUNK as u64) as usize;
        let chunk = &mut chunk[..length.next_multiple_of(8)];
        fill(chunk, report.bytes);
        let chunk = &chunk[..length];
        if let Some(hash) = &mut hash {
            hash.update(chunk);
        }
        into.write_all(chunk)?;
        report.bytes += length as u64;
    }
    report.hash = hash.map(hex);
    Ok(report)
}

fn receive(task: &Task) -> Result<Report, Failure> {
    let protocol = match &task.transport {
        Transport::Tcp => Protocol::TCP,
        Transport::Mptcp => Protocol::MPTCP,
        Transport::Psock(options) => {
            let paths = task.paths.iter().map(|path| address(task, *path));
            let addresses = paths.collect::<Result<Vec<_>, _>>()?;
            let listener = PsockListener::bind(&addresses, &config(options, &[], 0)?)?;
            println!("listening");
            let (stream, _) = listener.accept()?;
            let mut report = drain(task, &stream)?;
            report.counters = serde_json::to_value(stream.counters())?;
            stream.close()?;
            return Ok(report);
        }
    };
    let (listener, _) = socket(task, protocol)?;
    // At all addresses, for MPTCP joins over the other paths.
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, task.port));
    listener.set_reuse_address(true)?;
    listener.bind(&address.into())?;
    listener.listen(1)?;
    println!("listening");
    let (socket, _) = listener.accept()?;
    drain(task, socket)
}

/// Reads to the end.
fn drain(task: &Task, mut from: impl Read) -> Result<Report, Failure> {
    let mut report = Report::default();
    let mut hash = task.hash.then(|| Context::new(&SHA256));
    let mut checker = Checker::default();
    let mut chunk = vec![0; CHUNK];
    let mut last = None;
    loop {
        let length = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        let time = now();
        let before = last.replace(time).unwrap_or_else(|| {
            report.begin = time;
            time
        });
        if time - before >= PAUSE {
            report.pauses.push((before, time - before));
        }
        while report.begin + BIN * (report.through.len() + 1) as f64 <= time {
            report.through.push(report.bytes);
        }
        let bytes = &chunk[..length];
        checker.take(bytes);
        if let Some(hash) = &mut hash {
            hash.update(bytes);
        }
        let steps = report.bytes / STEP;
        report.bytes += length as u64;
        if report.bytes / STEP > steps {
            println!("{} bytes", report.bytes);
        }
    }
    report.through.push(report.bytes);
    report.wrong = checker.wrong;
    report.hash = hash.map(hex);
    Ok(report)
}

fn hex(context: Context) -> String {
    ::config::hex::encode(context.finish().as_ref())
}
