//! One request and its reply over a socket of its own.

use super::{ClientError, Server, connect};
use crate::proxidor::{Reply, header::Header};
use std::{
    io::{self, ErrorKind},
    net::UdpSocket,
    time::{Duration, Instant},
};

/// Bytes of the largest UDP datagram.
const LARGEST: usize = 65_535;

/// A socket that talks to one oracle.
#[derive(Debug)]
pub struct Exchange {
    socket: UdpSocket,
    server: Server,
    buffer: Vec<u8>,
}

/// A reply and how long it took.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The reply.
    pub reply: Reply,
    /// Its length in bytes.
    pub bytes: usize,
    /// Time from the request to it.
    pub round_trip: Duration,
}

impl Exchange {
    /// Opens a socket that only the oracle can send to.
    ///
    /// # Errors
    /// The system has no socket, or no route.
    pub fn open(server: &Server) -> Result<Self, ClientError> {
        Ok(Self { socket: connect(server)?, server: server.clone(), buffer: vec![0; LARGEST] })
    }

    /// Sends a request and waits for the reply to it; none when it does not come in time.
    ///
    /// What comes meanwhile and is no reply to this request (a late one to an earlier request, bytes
    /// that do not keep to the format, a reply without the tag that the key demands) is skipped.
    ///
    /// # Errors
    /// The socket does not work. A closed port counts as no reply.
    pub fn ask(
        &mut self,
        request: &[u8],
        timeout: Duration,
    ) -> Result<Option<Answer>, ClientError> {
        let begin = Instant::now();
        self.send(request)?;
        loop {
            let left = timeout.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let Some(bytes) = self.receive(left)? else { continue };
            let round_trip = begin.elapsed();
            let datagram = self.buffer.get(..bytes).unwrap_or_default();
            let asked = Header::parse(request).map(|(header, _)| header.identification);
            if let Ok(reply) = Reply::parse(datagram, self.server.key.as_ref())
                && Some(reply.header.identification) == asked
            {
                return Ok(Some(Answer { reply, bytes, round_trip }));
            }
        }
    }

    fn send(&self, request: &[u8]) -> Result<(), ClientError> {
        match self.socket.send(request) {
            Ok(_) => Ok(()),
            // The error is that of an earlier request; this one has not been sent yet.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                self.socket.send(request).map(drop).or_else(|error| self.lost(error))
            }
            Err(error) => self.lost(error).map(drop),
        }
    }

    fn receive(&mut self, left: Duration) -> Result<Option<usize>, ClientError> {
        let received = self
            .socket
            .set_read_timeout(Some(left))
            .and_then(|()| self.socket.recv(&mut self.buffer));
        match received {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => self.lost(error).map(|()| None),
        }
    }

    /// Errors that only mean that this request gets no answer.
    fn lost(&self, error: io::Error) -> Result<(), ClientError> {
        match error.kind() {
            ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable => Ok(()),
            _ => Err(ClientError::Socket { server: self.server.address, source: error }),
        }
    }
}
