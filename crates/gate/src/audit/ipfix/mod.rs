//! Flows as IPFIX (RFC 7011): into files (RFC 5655) and over UDP to a collector.
//!
//! A file begins with the templates and never continues another. A collector gets them first and again
//! after a time (section 8.4), in messages that no path has to cut up. What it does not get it sees by
//! the numbers of messages; nothing is sent twice, nothing waits for it.

mod config;
mod message;

pub use config::Config;

use self::message::{Data, Session};
use super::{
    log::{Limits, Log},
    mapping::Mask,
    record::FlowEnd,
    status::{Counters, IpfixCounters},
};
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// Longest message over UDP where the path's MTU is not known (section 10.3.3), without the headers of
/// IPv6 and UDP.
const LONGEST_DATAGRAM: usize = 512 - 48;
/// Longest message in a file; a message can have 65,535 bytes.
const LONGEST_MESSAGE: usize = 60_000;

/// Where flows go.
#[derive(Debug)]
pub(super) struct Exporter {
    counters: Arc<Counters>,
    mask: Mask,
    domain: u32,
    records: Vec<Data>,
    file: Option<(Log, Session)>,
    collector: Option<Collector>,
}

#[derive(Debug)]
struct Collector {
    socket: UdpSocket,
    session: Session,
    refresh: Duration,
    /// When it got the templates last.
    sent: Option<Instant>,
}

impl Exporter {
    pub(super) fn open(
        config: &Config,
        folder: &Path,
        limits: Limits,
        mask: Mask,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let log = config.file.then(|| Log::new(folder, "flows", "ipfix", limits));
        let collector = config.collector.map(|to| Collector::open(to, config)).transpose()?;
        let mut exporter = Self {
            counters,
            mask,
            domain: config.domain,
            records: Vec::new(),
            file: log.map(|log| (log, Session::new(config.domain))),
            collector,
        };
        // Errors of the folder are reported at the start.
        exporter.open_file(SystemTime::now())?;
        Ok(exporter)
    }

    pub(super) fn push(&mut self, flow: &FlowEnd, flow_id: u64) {
        self.records.push(Data::of(flow, flow_id, &self.mask));
    }

    /// Writes and sends what was gathered, to each place what it takes.
    pub(super) fn flush(&mut self, now: SystemTime) -> io::Result<()> {
        let records = std::mem::take(&mut self.records);
        let count = records.len() as u64;
        let counters = &self.counters.ipfix;
        if let Some(collector) = &mut self.collector {
            collector.send(&records, now, counters);
        }
        if self.file.is_none() {
            return Ok(());
        }
        let written = self.write(&records, now);
        let counters = &self.counters.ipfix;
        let counter = if written.is_ok() { &counters.written } else { &counters.not_written };
        Counters::add(counter, count);
        written
    }

    fn open_file(&mut self, now: SystemTime) -> io::Result<()> {
        if let Some((log, session)) = &mut self.file
            && log.open_empty(now)?
        {
            *session = Session::new(self.domain);
            log.write(&session.templates(now))?;
        }
        Ok(())
    }

    fn write(&mut self, records: &[Data], now: SystemTime) -> io::Result<()> {
        self.open_file(now)?;
        let Some((log, session)) = &mut self.file else { return Ok(()) };
        let mut bytes = Vec::new();
        let mut rest = records;
        while !rest.is_empty() {
            let (message, count) = session.data(rest, LONGEST_MESSAGE, now);
            bytes.extend(message);
            rest = rest.get(count..).unwrap_or_default();
        }
        if !bytes.is_empty() {
            log.write(&bytes)?;
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |(log, _)| log.sync())
    }

    /// Sets a full file aside; the next one begins.
    pub(super) fn rotate(&mut self, now: SystemTime) -> io::Result<()> {
        if let Some((log, _)) = &mut self.file
            && log.rotate(now)?
        {
            self.open_file(now)?;
        }
        Ok(())
    }

    /// Its file's log, if there is one.
    pub(super) fn log(&self) -> Option<&Log> {
        self.file.as_ref().map(|(log, _)| log)
    }
}

impl Collector {
    fn open(to: SocketAddr, config: &Config) -> io::Result<Self> {
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(to)?;
        // Nothing waits for a collector.
        socket.set_nonblocking(true)?;
        let session = Session::new(config.domain);
        Ok(Self { socket, session, refresh: config.refresh, sent: None })
    }

    fn send(&mut self, records: &[Data], now: SystemTime, counters: &IpfixCounters) {
        // Also without flows: a collector that was started late learns the fields all the same.
        if self.sent.is_none_or(|at| at.elapsed() >= self.refresh) {
            let sent = self.give(&self.session.templates(now));
            self.sent = sent.then(Instant::now);
        }
        let mut rest = records;
        while !rest.is_empty() {
            let (message, count) = self.session.data(rest, LONGEST_DATAGRAM, now);
            let sent = self.give(&message);
            let counter = if sent { &counters.sent } else { &counters.not_sent };
            Counters::add(counter, count as u64);
            rest = rest.get(count..).unwrap_or_default();
        }
    }

    /// Sends a message; false where the system refused it.
    fn give(&self, message: &[u8]) -> bool {
        // The first call after a message was answered by an ICMP error has that error, not its own.
        let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        match self.socket.send(message) {
            Err(error) if refused(&error) => self.socket.send(message).is_ok(),
            result => result.is_ok(),
        }
    }
}
