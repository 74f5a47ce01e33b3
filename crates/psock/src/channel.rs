//! A connection and its records: what comes and goes on one TCP connection.

use crate::{
    buffer::Buffer,
    error::PathError,
    tls::{Progress, Records},
};
use std::io;
use tokio::net::TcpStream;

/// Bytes read from a socket at once.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// A TCP connection with what its records need.
pub(crate) struct Channel {
    pub(crate) socket: TcpStream,
    records: Records,
    incoming: Buffer,
    out: Buffer,
    /// What the peer has sent, decrypted and not taken yet.
    pub(crate) plain: Buffer,
}

impl Channel {
    /// A connection before its handshake.
    pub(crate) fn new(socket: TcpStream, records: Records) -> Self {
        Self {
            socket,
            records,
            incoming: Buffer::default(),
            out: Buffer::default(),
            plain: Buffer::default(),
        }
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    /// Does the handshake of TLS; nothing for plain connections.
    pub(crate) async fn handshake(&mut self) -> Result<(), PathError> {
        loop {
            let progress = self.process();
            // Also the alert that tells the peer what was wrong.
            let flushed = self.flush().await;
            match progress? {
                Progress::Open => return flushed,
                Progress::Handshake => flushed?,
                Progress::Closed => return Err(closed()),
            }
            if !self.fill().await? {
                return Err(closed());
            }
        }
    }

    /// Waits until more of the peer is in `plain`; false when nothing more comes.
    pub(crate) async fn read(&mut self) -> Result<bool, PathError> {
        let before = self.plain.len();
        loop {
            if !self.fill().await? {
                return Ok(false);
            }
            let progress = self.process()?;
            self.flush().await?;
            if self.plain.len() > before {
                return Ok(true);
            }
            if progress == Progress::Closed {
                return Ok(false);
            }
        }
    }

    /// Sends bytes and waits until the kernel has them.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), PathError> {
        self.records.put(bytes, &mut self.out)?;
        self.flush().await
    }

    /// Takes what was read.
    fn process(&mut self) -> Result<Progress, PathError> {
        let plain = &mut self.plain;
        self.records.take(&mut self.incoming, &mut self.out, |bytes| {
            plain.extend(bytes);
            Ok(())
        })
    }

    /// Reads once; false at the end.
    async fn fill(&mut self) -> io::Result<bool> {
        loop {
            self.socket.readable().await?;
            match self.socket.try_read(self.incoming.room(READ_BYTES)) {
                Ok(count) => {
                    self.incoming.fill(count);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn flush(&mut self) -> Result<(), PathError> {
        while !self.out.is_empty() {
            self.socket.writable().await?;
            match self.socket.try_write(self.out.filled()) {
                Ok(count) => self.out.consume(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn closed() -> PathError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}
