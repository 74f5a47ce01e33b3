//! Data over a psock session, protected by a key that follows from the test's token.

use super::{
    Ends, Error, Token, Transport,
    connection::Control,
    control::{Message, Received},
    figures, flow,
    pacer::Pacer,
    tcp::{interrupted, push},
    within,
};
use crate::record::{Moment, Throughput};
use psock::{
    AsyncPsockListener, AsyncPsockStream, BindError, Config, Path, PresharedKey, Security,
};
use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes given or taken at once.
const CHUNK: usize = 128 << 10;
/// What is given at once takes at most so long at the rate that is asked for.
const LONGEST_CHUNK: Duration = Duration::from_millis(5);
/// Less at once is a waste.
const SHORTEST_CHUNK: usize = 1448;

fn config(ends: &Ends<'_>, token: &Token) -> Config {
    let mut config = Config::new(Security::Key(PresharedKey::from_bytes(token.key())));
    config.connections_per_path = ends.settings.streams;
    config.congestion.clone_from(&ends.settings.congestion);
    config
}

/// Listens for the session.
pub(super) async fn listen(
    address: IpAddr,
    token: &Token,
    ends: &Ends<'_>,
) -> Result<AsyncPsockListener, BindError> {
    AsyncPsockListener::bind(&[SocketAddr::new(address, 0)], &config(ends, token)).await
}

/// The server's end of the session.
pub(super) async fn accept(listener: &AsyncPsockListener) -> Result<AsyncPsockStream, Error> {
    within(async { Ok(listener.accept().await.map_err(Error::Accept)?.0) }).await
}

/// The client's end of the session.
pub(super) async fn connect(
    to: SocketAddr,
    token: &Token,
    ends: &Ends<'_>,
) -> Result<AsyncPsockStream, Error> {
    let mut config = config(ends, token);
    config.paths = vec![Path { local: None, remote: to }];
    within(async { AsyncPsockStream::connect(&config).await.map_err(Error::Session) }).await
}

/// Moves data until the receiver's time is over.
pub(super) async fn exchange(
    ends: &Ends<'_>,
    control: &mut Control,
    mut stream: AsyncPsockStream,
) -> Result<Throughput, Error> {
    let figures = if ends.sends {
        send(ends, control, &mut stream).await
    } else {
        receive(ends, control, &mut stream).await
    };
    // What is still in the queue is of no use to anybody.
    stream.abort();
    figures
}

async fn send(
    ends: &Ends<'_>,
    control: &mut Control,
    stream: &mut AsyncPsockStream,
) -> Result<Throughput, Error> {
    let peer = control.peer()?.ip();
    let begin = Instant::now();
    let mut moments = Vec::new();
    let received = tokio::select! {
        // The receiver's word counts more than a session that it ends after it.
        biased;
        received = flow::received(ends, control) => received?,
        source = fill(ends, stream, begin, &mut moments) => return Err(Error::Data { peer, source }),
    };
    push(&mut moments, now(stream, begin));
    control.send(&Message::Samples { moments: moments.clone() }).await?;
    Ok(figures(Transport::Psock, received, None, moments))
}

/// Gives data to the session until it fails.
async fn fill(
    ends: &Ends<'_>,
    stream: &mut AsyncPsockStream,
    begin: Instant,
    moments: &mut Vec<Moment>,
) -> std::io::Error {
    let mut pacer = ends.settings.bytes_per_second().map(Pacer::new);
    let size = pacer.map_or(CHUNK, |pacer| {
        (pacer.bytes_in(LONGEST_CHUNK) as usize).clamp(SHORTEST_CHUNK, CHUNK)
    });
    let mut chunk = vec![0; size];
    rand::fill(chunk.as_mut_slice());
    let mut ticks = tokio::time::interval(ends.settings.step());
    loop {
        let write = async {
            if let Some(pacer) = &mut pacer {
                tokio::time::sleep(pacer.wait(begin.elapsed())).await;
            }
            stream.write(&chunk).await
        };
        tokio::select! {
            _ = ticks.tick() => push(moments, now(stream, begin)),
            written = write => match written {
                Ok(written) => if let Some(pacer) = &mut pacer {
                    pacer.passed(written);
                },
                Err(error) => return error,
            },
        }
        tokio::task::coop::consume_budget().await;
    }
}

/// The session as its counters say; the round-trip time is the mean of its connections.
fn now(stream: &AsyncPsockStream, begin: Instant) -> Moment {
    let counters = stream.counters();
    let count = counters.connections.len() as u64;
    let srtt: u64 = counters.connections.iter().map(|connection| connection.srtt_ns).sum();
    Moment {
        at_ns: begin.elapsed().as_nanos() as u64,
        bytes: counters.connections.iter().map(|connection| connection.bytes_acknowledged).sum(),
        window_bytes: 0,
        srtt_ns: srtt.checked_div(count).unwrap_or(0),
        retransmits: counters
            .connections
            .iter()
            .map(|connection| connection.blocks_retransmitted)
            .sum(),
    }
}

async fn receive(
    ends: &Ends<'_>,
    control: &mut Control,
    stream: &mut AsyncPsockStream,
) -> Result<Throughput, Error> {
    let peer = control.peer()?.ip();
    let (mut bytes, mut first, mut samples) = (0, None, Vec::new());
    tokio::select! {
        biased;
        error = interrupted(ends, control) => return Err(error),
        taken = take(ends, stream, &mut bytes, &mut first, &mut samples) => {
            taken.map_err(|source| Error::Data { peer, source })?;
        }
    }
    let lasted_ns = first.map_or(0, |first: Instant| first.elapsed().as_nanos() as u64);
    push(&mut samples, Moment { at_ns: lasted_ns, bytes, ..Moment::default() });
    let received = Received { bytes, lasted_ns, datagrams: None, samples };
    let moments = flow::part(ends, control, &received).await?;
    Ok(figures(Transport::Psock, received, None, moments))
}

/// Takes what comes until the time is over.
async fn take(
    ends: &Ends<'_>,
    stream: &mut AsyncPsockStream,
    bytes: &mut u64,
    first: &mut Option<Instant>,
    samples: &mut Vec<Moment>,
) -> std::io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut next = Duration::ZERO;
    loop {
        let end = first.map(|first| first + ends.settings.duration);
        let read = stream.read(&mut buffer);
        let length = match end {
            None => read.await?,
            Some(end) => match tokio::time::timeout_at(end.into(), read).await {
                Ok(read) => read?,
                Err(_) => return Ok(()),
            },
        };
        if length == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let since = first.get_or_insert_with(Instant::now).elapsed();
        if since >= ends.settings.duration {
            return Ok(());
        }
        *bytes += length as u64;
        if since >= next {
            push(
                samples,
                Moment { at_ns: since.as_nanos() as u64, bytes: *bytes, ..Moment::default() },
            );
            next = since + ends.settings.step();
        }
    }
}
