//! Throughput between two stations: over TCP, a psock session or paced UDP.
//!
//! One station serves a test that was accepted, for once and for a bounded time: [`Server::bind`], then
//! [`Server::serve`]. The other one, which has the test's [`Token`], does it: [`run`]. What counts is
//! what the receiver has, in its time: from the first byte that comes to it until the length is over;
//! what is then still in queues is thrown away. See [`control`] for their messages, and
//! docs/decisions/159-the-receiver-ends.md for why.

mod connection;
pub mod control;
mod error;
mod flow;
mod pacer;
mod psock;
mod server;
mod settings;
mod tally;
mod tcp;
mod udp;

pub use error::{BindError, Error};
pub use server::{Accepted, Server};
pub use settings::{
    LEAST, LONGEST, MOST_MOMENTS, MOST_RATE, MOST_STREAMS, Settings, Token, TokenError, Transport,
    rate,
};

use super::context::Context;
use crate::record::{Moment, Throughput};
use connection::Control;
use control::{Message, Received, Role};
use settings::TIMEOUT;
use std::net::SocketAddr;

/// Does a test with a station that serves it at this address.
///
/// # Errors
/// When the other station cannot be reached, does not take part, or breaks off.
pub async fn run(
    to: SocketAddr,
    token: &Token,
    settings: &Settings,
    context: &Context,
) -> Result<Throughput, Error> {
    if let Some(problem) = settings.problems().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    context.check(to.ip())?;
    let limit = settings.longest();
    let test = client(to, token, settings, context);
    tokio::time::timeout(limit, test).await.unwrap_or(Err(Error::Timeout { limit }))
}

async fn client(
    to: SocketAddr,
    token: &Token,
    settings: &Settings,
    context: &Context,
) -> Result<Throughput, Error> {
    let stream = connection::connect(to, token, Role::Control).await?;
    let mut control = Control::new(stream);
    control.send(&Message::Hello { settings: settings.clone() }).await?;
    let ready = within(control.hear(context)).await?;
    let port = match ready {
        Message::Ready { port } => port,
        Message::Refused { reason } => return Err(Error::Refused { reason }),
        other => return Err(Error::unexpected(&other, context)),
    };
    let ends = Ends { sends: !settings.reverse, settings, context };
    match settings.transport {
        Transport::Tcp => {
            let mut streams = Vec::new();
            for _ in 0..settings.streams {
                streams.push(connection::connect(to, token, Role::Data).await?);
            }
            tcp::exchange(&ends, &mut control, streams).await
        }
        Transport::Psock => {
            let stream = psock::connect(SocketAddr::new(to.ip(), port), token, &ends).await?;
            psock::exchange(&ends, &mut control, stream).await
        }
        Transport::Udp => {
            let socket = udp::knock(&mut control, port, token, &ends).await?;
            udp::exchange(&ends, &mut control, socket, token).await
        }
    }
}

/// What both sides of a test know.
struct Ends<'a> {
    /// Whether this side sends.
    sends: bool,
    settings: &'a Settings,
    context: &'a Context,
}

/// Limits a part of the test that is done at once by who is there.
async fn within<R>(future: impl Future<Output = Result<R, Error>>) -> Result<R, Error> {
    let limit = TIMEOUT;
    tokio::time::timeout(limit, future).await.unwrap_or(Err(Error::Timeout { limit }))
}

/// The figures, from what the receiver has and what the sender's kernel reported.
fn figures(
    transport: Transport,
    received: Received,
    sent: Option<u64>,
    moments: Vec<Moment>,
) -> Throughput {
    let seconds = received.lasted_ns as f64 / 1e9;
    let datagrams = received.datagrams;
    Throughput {
        transport: transport.word().to_owned(),
        bytes: received.bytes,
        bytes_per_second: if seconds > 0.0 { received.bytes as f64 / seconds } else { 0.0 },
        lost: sent.zip(datagrams).map(|(sent, had)| (sent.saturating_sub(had.received), sent)),
        reordered: datagrams.map(|had| had.reordered),
        duplicated: datagrams.map(|had| had.duplicated),
        samples: if moments.is_empty() { received.samples } else { moments },
    }
}
