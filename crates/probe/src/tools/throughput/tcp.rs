//! Data over TCP connections, and what TCP_INFO says of them through time.

use super::{
    Ends, Error, MOST_MOMENTS, Transport,
    connection::Control,
    control::{Message, Received},
    figures, flow,
    pacer::Pacer,
};
use crate::record::{Moment, Throughput};
use datapath::tcp_info::tcp_info;
use futures_util::future::{join_all, select_all};
use socket2::SockRef;
use std::{
    io,
    net::IpAddr,
    os::fd::AsFd,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// Bytes to a system call.
const CHUNK: usize = 128 << 10;
/// What is sent at once takes at most so long at the rate that is asked for.
const LONGEST_CHUNK: Duration = Duration::from_millis(5);
/// A segment; less at once is a waste.
const SHORTEST_CHUNK: usize = 1448;

/// Moves data over connections until the receiver's time is over.
pub(super) async fn exchange(
    ends: &Ends<'_>,
    control: &mut Control,
    streams: Vec<TcpStream>,
) -> Result<Throughput, Error> {
    let peer = control.peer()?.ip();
    if ends.sends {
        send(ends, control, streams, peer).await
    } else {
        receive(ends, control, streams, peer).await
    }
}

/// Sets a connection's congestion control by name.
pub(super) fn set_congestion(stream: &TcpStream, name: Option<&str>) -> Result<(), Error> {
    let Some(name) = name else { return Ok(()) };
    SockRef::from(stream)
        .set_tcp_congestion(name.as_bytes())
        .map_err(|source| Error::Congestion { name: name.to_owned(), source })
}

async fn send(
    ends: &Ends<'_>,
    control: &mut Control,
    streams: Vec<TcpStream>,
    peer: IpAddr,
) -> Result<Throughput, Error> {
    for stream in &streams {
        set_congestion(stream, ends.settings.congestion.as_deref())?;
    }
    let begin = Instant::now();
    let share = ends.settings.bytes_per_second().map(|rate| rate / streams.len() as f64);
    let sending = select_all(streams.iter().map(|stream| Box::pin(fill(stream, share))));
    let mut moments = Vec::new();
    let received = tokio::select! {
        // The receiver's word counts more than a connection that it closes after it.
        biased;
        received = flow::received(ends, control) => received?,
        (source, ..) = sending => return Err(Error::Data { peer, source }),
        () = watch(&streams, begin, ends.settings.step(), &mut moments) => return Err(Error::Ended),
    };
    push(&mut moments, now(&streams, begin));
    control.send(&Message::Samples { moments: moments.clone() }).await?;
    for stream in &streams {
        // What is still in the queue is of no use to anybody.
        let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
    }
    Ok(figures(Transport::Tcp, received, None, moments))
}

/// Sends until the connection fails.
async fn fill(stream: &TcpStream, bytes_per_second: Option<f64>) -> io::Error {
    let begin = Instant::now();
    let mut pacer = bytes_per_second.map(Pacer::new);
    let size = pacer.map_or(CHUNK, |pacer| {
        (pacer.bytes_in(LONGEST_CHUNK) as usize).clamp(SHORTEST_CHUNK, CHUNK)
    });
    // Not zeros: links that compress are not to look better than they are.
    let mut chunk = vec![0; size];
    rand::fill(chunk.as_mut_slice());
    loop {
        if let Some(pacer) = &mut pacer {
            let wait = pacer.wait(begin.elapsed());
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
        let sent = match stream.writable().await {
            Ok(()) => stream.try_write(&chunk),
            Err(error) => return error,
        };
        match sent {
            Ok(sent) => {
                if let Some(pacer) = &mut pacer {
                    pacer.passed(sent);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return error,
        }
        // Others of this task have their turn.
        tokio::task::coop::consume_budget().await;
    }
}

/// Keeps what the kernel reported, until dropped.
async fn watch(streams: &[TcpStream], begin: Instant, step: Duration, moments: &mut Vec<Moment>) {
    let mut ticks = tokio::time::interval(step);
    loop {
        ticks.tick().await;
        push(moments, now(streams, begin));
    }
}

/// The list has a place for its last moment whatever comes.
pub(super) fn push(moments: &mut Vec<Moment>, moment: Moment) {
    if moments.len() == MOST_MOMENTS {
        moments.pop();
    }
    moments.push(moment);
}

/// The connections together; the round-trip time is their mean.
fn now(streams: &[TcpStream], begin: Instant) -> Moment {
    let at_ns = begin.elapsed().as_nanos() as u64;
    let infos = streams.iter().filter_map(|stream| tcp_info(stream.as_fd()).ok());
    let mut moment = Moment { at_ns, ..Moment::default() };
    let mut count = 0;
    for info in infos {
        moment.bytes += info.acknowledged_bytes;
        moment.window_bytes += info.window_bytes;
        moment.srtt_ns += info.srtt_ns;
        moment.retransmits += info.retransmits;
        count += 1;
    }
    moment.srtt_ns = moment.srtt_ns.checked_div(count).unwrap_or(0);
    moment
}

/// What the connections of a receiver have in common.
struct Taken {
    bytes: AtomicU64,
    /// When the first bytes came.
    first: OnceLock<Instant>,
    came: tokio::sync::Notify,
}

async fn receive(
    ends: &Ends<'_>,
    control: &mut Control,
    streams: Vec<TcpStream>,
    peer: IpAddr,
) -> Result<Throughput, Error> {
    let taken = Taken {
        bytes: AtomicU64::new(0),
        first: OnceLock::new(),
        came: tokio::sync::Notify::new(),
    };
    let mut samples = Vec::new();
    tokio::select! {
        biased;
        () = time_is_over(&taken, ends.settings.duration) => {}
        error = interrupted(ends, control) => return Err(error),
        error = drain_all(&streams, &taken, peer) => return Err(error),
        () = count(&taken, ends.settings.step(), &mut samples) => return Err(Error::Ended),
    }
    let lasted_ns = taken.first.get().map_or(0, |first| first.elapsed().as_nanos() as u64);
    let bytes = taken.bytes.load(Ordering::Relaxed);
    push(&mut samples, Moment { at_ns: lasted_ns, bytes, ..Moment::default() });
    let received = Received { bytes, lasted_ns, datagrams: None, samples };
    let moments = flow::part(ends, control, &received).await?;
    Ok(figures(Transport::Tcp, received, None, moments))
}

async fn time_is_over(taken: &Taken, length: Duration) {
    taken.came.notified().await;
    tokio::time::sleep(length).await;
}

/// The sender has nothing to say while it sends.
pub(super) async fn interrupted(ends: &Ends<'_>, control: &mut Control) -> Error {
    match control.hear(ends.context).await {
        Ok(message) => Error::unexpected(&message, ends.context),
        Err(error) => error,
    }
}

/// Takes what comes until all connections have ended or one fails.
async fn drain_all(streams: &[TcpStream], taken: &Taken, peer: IpAddr) -> Error {
    let ends = join_all(streams.iter().map(|stream| drain(stream, taken))).await;
    match ends.into_iter().find_map(Result::err) {
        Some(source) => Error::Data { peer, source },
        None => Error::Ended,
    }
}

async fn drain(stream: &TcpStream, taken: &Taken) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        stream.readable().await?;
        match stream.try_read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                if taken.first.set(Instant::now()).is_ok() {
                    taken.came.notify_one();
                }
                taken.bytes.fetch_add(length as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        tokio::task::coop::consume_budget().await;
    }
}

/// Keeps what has come, until dropped.
async fn count(taken: &Taken, step: Duration, samples: &mut Vec<Moment>) {
    let mut ticks = tokio::time::interval(step);
    loop {
        ticks.tick().await;
        if let Some(first) = taken.first.get() {
            let at_ns = first.elapsed().as_nanos() as u64;
            let bytes = taken.bytes.load(Ordering::Relaxed);
            push(samples, Moment { at_ns, bytes, ..Moment::default() });
        }
    }
}
