//! Data as datagrams in even distances: a thread that sends batches when they are due, and one that
//! takes them.
//!
//! The client knocks: it sends its mark from the port that it will use, until the server has heard it.
//! So the server knows where to send to, and that the client can be reached there; both sockets are
//! connected after that. A datagram is the mark, a number, and filling.

use super::{
    Ends, Error, MOST_MOMENTS, Token, Transport,
    connection::Control,
    control::{Message, Received},
    figures, flow,
    pacer::Pacer,
    tally::Tally,
    tcp::interrupted,
    within,
};
use crate::{
    record::{Moment, Throughput},
    tools::{
        apart::{Stop, apart},
        context::Refusal,
    },
};
use datapath::socket::{BATCH, Buffer, Socket};
use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    time::{Duration, Instant},
};
use tokio::{sync::watch, time::sleep};

/// Mark and number.
const HEADER: usize = Token::MARK + 8;
/// Time from one knock to the next.
const KNOCK: Duration = Duration::from_millis(50);
/// Time between two looks at what is due; a timer is late by less than a tenth of it.
const TICK: Duration = Duration::from_micros(500);
/// Longest wait for a datagram before the receiver looks whether it is to stop.
const TIMEOUT: Duration = Duration::from_millis(20);
/// What is still in flight when everything was sent is there after so long, or does not come.
const LATE: Duration = Duration::from_secs(2);

/// The client's socket, once the server has heard of it.
pub(super) async fn knock(
    control: &mut Control,
    port: u16,
    token: &Token,
    ends: &Ends<'_>,
) -> Result<UdpSocket, Error> {
    let mut to = control.peer()?;
    to.set_port(port);
    let failed = |source| Error::Data { peer: to.ip(), source };
    let open = || {
        let socket = UdpSocket::bind(SocketAddr::new(any(to.ip()), 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        tokio::net::UdpSocket::from_std(socket)
    };
    let socket = open().map_err(failed)?;
    let knocks = async {
        loop {
            // One that was lost or refused is followed by the next.
            let _ = socket.send(&token.mark()).await;
            sleep(KNOCK).await;
        }
    };
    tokio::select! {
        heard = within(control.hear(ends.context)) => match heard? {
            Message::Heard {} => {}
            other => return Err(Error::unexpected(&other, ends.context)),
        },
        () = knocks => {}
    }
    socket.into_std().map_err(failed)
}

/// A socket that waits for a knock.
pub(super) fn door(address: IpAddr) -> io::Result<tokio::net::UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    socket.set_nonblocking(true)?;
    tokio::net::UdpSocket::from_std(socket)
}

/// The server's socket, once it has heard from where the client sends.
pub(super) async fn heard(
    door: tokio::net::UdpSocket,
    from: IpAddr,
    token: &Token,
    ends: &Ends<'_>,
) -> Result<UdpSocket, Error> {
    let failed = |source| Error::Data { peer: from, source };
    let mut buffer = [0; Token::MARK + 1];
    loop {
        let (length, sender) =
            within(async { door.recv_from(&mut buffer).await.map_err(failed) }).await?;
        let ours = token.has_mark(buffer.get(..length).unwrap_or_default());
        if ours && sender.ip().to_canonical() == from.to_canonical() {
            door.connect(sender).await.map_err(failed)?;
            return door.into_std().map_err(failed);
        }
        ends.context.counters.refuse(Refusal::UnknownPeer);
    }
}

/// Moves data until everything was sent, and has come or is lost.
pub(super) async fn exchange(
    ends: &Ends<'_>,
    control: &mut Control,
    socket: UdpSocket,
    token: &Token,
) -> Result<Throughput, Error> {
    let peer = control.peer()?.ip();
    let failed = |source| Error::Data { peer, source };
    let socket = Socket::datagram(socket).map_err(failed)?;
    if ends.sends {
        send(ends, control, socket, peer, token).await
    } else {
        receive(ends, control, socket, peer, token).await
    }
}

async fn send(
    ends: &Ends<'_>,
    control: &mut Control,
    socket: Socket,
    peer: IpAddr,
    token: &Token,
) -> Result<Throughput, Error> {
    let rate = ends.settings.bytes_per_second().unwrap_or_default();
    let (length, size) = (ends.settings.duration, usize::from(ends.settings.datagram));
    let mark = token.mark();
    let sending = apart(move |stop| fill(&socket, &mark, rate, size, length, stop));
    let sent = tokio::select! {
        sent = sending => sent.map_err(|source| Error::Data { peer, source })?,
        error = interrupted(ends, control) => return Err(error),
    };
    control.send(&Message::Sent { datagrams: sent }).await?;
    let received = within(flow::received(ends, control)).await?;
    // UDP has no window and nobody who acknowledges.
    control.send(&Message::Samples { moments: Vec::new() }).await?;
    Ok(figures(Transport::Udp, received, Some(sent), Vec::new()))
}

/// Sends datagrams for so long and returns how many.
fn fill(
    socket: &Socket,
    mark: &[u8; Token::MARK],
    bytes_per_second: f64,
    size: usize,
    length: Duration,
    stop: &Stop,
) -> io::Result<u64> {
    let mut packets = vec![0; size * BATCH];
    // Not zeros: links that compress are not to look better than they are.
    rand::fill(packets.as_mut_slice());
    let (mut pacer, begin, mut sent) = (Pacer::new(bytes_per_second), Instant::now(), 0u64);
    loop {
        let now = begin.elapsed();
        if now >= length || stop.is_set() {
            return Ok(sent);
        }
        let due = ((pacer.owed(now) / size as f64) as usize + 1).min(BATCH);
        if pacer.wait(now).is_zero() {
            for (number, packet) in (sent..).zip(packets.chunks_exact_mut(size).take(due)) {
                let (target, rest) = packet.split_at_mut(Token::MARK);
                target.copy_from_slice(mark);
                if let Some(target) = rest.first_chunk_mut() {
                    *target = number.to_be_bytes();
                }
            }
            let batch = packets.get(..due * size).unwrap_or_default();
            let done = match socket.send(batch, size) {
                Ok(done) => done,
                // The interface's queue is full: the datagram is lost there as on any link.
                Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => 1,
                // The other end's error about an earlier one; it is reported once.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(error),
            };
            sent += done as u64;
            pacer.passed(done * size);
        }
        let wait = pacer.wait(begin.elapsed());
        if !wait.is_zero() {
            std::thread::sleep(wait.max(TICK));
        }
    }
}

/// The reports of a receiving thread.
#[derive(Clone, Debug, Default)]
struct Progress {
    received: u64,
}

async fn receive(
    ends: &Ends<'_>,
    control: &mut Control,
    socket: Socket,
    peer: IpAddr,
    token: &Token,
) -> Result<Throughput, Error> {
    let failed = |source| Error::Data { peer, source };
    socket.set_timeout(TIMEOUT).map_err(failed)?;
    let (token, step, counters) = (*token, ends.settings.step(), ends.context.counters.clone());
    let size = usize::from(ends.settings.datagram);
    let (progress, mut reported) = watch::channel(Progress::default());
    let enough = Stop::default();
    let until = enough.clone();
    let taking = apart(move |stop| {
        let mut taker = Taker::new(token, step);
        let mut buffer = Buffer::new(size);
        while !stop.is_set() && !until.is_set() {
            for packet in socket.receive(&mut buffer)? {
                if !taker.take(packet.bytes, Instant::now()) {
                    counters.refuse(Refusal::UnknownPeer);
                }
            }
            let received = taker.tally.counts().received;
            progress.send_if_modified(|reported| {
                std::mem::replace(&mut reported.received, received) != received
            });
        }
        io::Result::Ok(taker.received())
    });
    tokio::pin!(taking);
    let sent = tokio::select! {
        taken = &mut taking => return Err(taken.err().map_or(Error::Ended, failed)),
        message = control.hear(ends.context) => match message? {
            Message::Sent { datagrams } => datagrams,
            other => return Err(Error::unexpected(&other, ends.context)),
        },
    };
    tokio::select! {
        taken = &mut taking => return Err(taken.err().map_or(Error::Ended, failed)),
        all = reported.wait_for(|reported| reported.received >= sent) => drop(all),
        () = sleep(LATE) => {}
    }
    enough.set();
    let received = taking.await.map_err(failed)?;
    flow::part(ends, control, &received).await?;
    Ok(figures(Transport::Udp, received, Some(sent), Vec::new()))
}

/// Takes datagrams of one test.
struct Taker {
    token: Token,
    step: Duration,
    tally: Tally,
    bytes: u64,
    /// When the first one came, and the latest.
    time: Option<(Instant, Instant)>,
    /// Bytes of the first one: its time is not within that of the test.
    first_bytes: u64,
    samples: Vec<Moment>,
}

impl Taker {
    fn new(token: Token, step: Duration) -> Self {
        let (tally, samples) = (Tally::new(), Vec::new());
        Self { token, step, tally, bytes: 0, time: None, first_bytes: 0, samples }
    }

    /// Takes a datagram; returns whether it is one of this test.
    fn take(&mut self, bytes: &[u8], now: Instant) -> bool {
        let Some((header, _)) = bytes.split_first_chunk::<HEADER>() else {
            // A knock that was in flight when the server had heard another one.
            return self.token.has_mark(bytes);
        };
        let (mark, number) = header.split_at(Token::MARK);
        let Some(number) = number.first_chunk().filter(|_| self.token.has_mark(mark)) else {
            return false;
        };
        if !self.tally.arrived(u64::from_be_bytes(*number)) {
            return true;
        }
        let length = bytes.len() as u64;
        self.bytes += length;
        let (first, _) = self.time.unwrap_or_else(|| {
            self.first_bytes = length;
            (now, now)
        });
        self.time = Some((first, now));
        let at = now.duration_since(first);
        if at >= self.step * self.samples.len() as u32 && self.samples.len() < MOST_MOMENTS {
            let at_ns = at.as_nanos() as u64;
            self.samples.push(Moment { at_ns, bytes: self.bytes, ..Moment::default() });
        }
        true
    }

    /// The time is that from the first datagram to the last, so the first one's bytes are not in the
    /// rate: they came before it began.
    fn received(self) -> Received {
        let lasted = self.time.map_or(Duration::ZERO, |(first, last)| last.duration_since(first));
        let (bytes, all) = (self.bytes.saturating_sub(self.first_bytes), self.bytes);
        // As if all bytes had come at the rate of the others.
        let lasted_ns = match bytes {
            0 => 0,
            bytes => (lasted.as_nanos() * u128::from(all) / u128::from(bytes)) as u64,
        };
        let datagrams = Some(self.tally.counts());
        Received { bytes: all, lasted_ns, datagrams, samples: self.samples }
    }
}

/// No address in particular, of the same family.
fn any(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(token: &Token, number: u64, size: usize) -> Vec<u8> {
        let mut bytes = [token.mark().as_slice(), &number.to_be_bytes()].concat();
        bytes.resize(size, 0);
        bytes
    }

    #[test]
    fn the_rate_is_that_between_the_first_and_the_last() {
        let token = Token::random();
        let mut taker = Taker::new(token, Duration::from_millis(20));
        let begin = Instant::now();
        for number in 0..101 {
            let at = begin + Duration::from_millis(10) * number as u32;
            assert!(taker.take(&datagram(&token, number, 1000), at));
        }
        // A copy, a knock; an unknown peer, and one of another test.
        assert!(taker.take(&datagram(&token, 7, 1000), begin));
        assert!(taker.take(&token.mark(), begin));
        assert!(!taker.take(b"hello", begin));
        assert!(!taker.take(&datagram(&Token::random(), 102, 1000), begin));
        let received = taker.received();
        assert_eq!(received.bytes, 101_000);
        let samples = received.samples.clone();
        let figures = figures(Transport::Udp, received, Some(110), Vec::new());
        assert!((figures.bytes_per_second - 100_000.0).abs() < 1.0, "{figures:?}");
        assert_eq!((figures.lost, figures.duplicated), (Some((9, 110)), Some(1)));
        assert_eq!((samples.len(), samples[1].at_ns), (51, 20_000_000));
    }

    #[test]
    fn one_datagram_has_no_rate() {
        let token = Token::random();
        let mut taker = Taker::new(token, Duration::from_millis(20));
        taker.take(&datagram(&token, 0, 100), Instant::now());
        let figures = figures(Transport::Udp, taker.received(), Some(1), Vec::new());
        assert_eq!((figures.bytes, figures.bytes_per_second), (100, 0.0));
    }
}
