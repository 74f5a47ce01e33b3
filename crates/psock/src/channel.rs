//! A connection and its records: what comes and goes on one TCP connection.

use crate::{
    buffer::Buffer,
    core::frame::Frame,
    error::PathError,
    tls::{Progress, Records},
};
use socket2::SockRef;
use std::{io, net::Shutdown};
use tokio::net::TcpStream;

/// Bytes read from a socket at once in the handshake and on the control connection: unknown peers get
/// little memory.
const READ_BYTES: usize = 4096;

/// A TCP connection with what its records need.
pub(crate) struct Channel {
    pub(crate) socket: TcpStream,
    pub(crate) records: Records,
    pub(crate) incoming: Buffer,
    pub(crate) out: Buffer,
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

    /// Does the handshake of TLS; nothing for plain connections.
    pub(crate) async fn handshake(&mut self) -> Result<(), PathError> {
        loop {
            let progress = self.process();
            // Also the alert that reports the error to the peer.
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

    /// Waits for the next frame and takes it.
    pub(crate) async fn frame<T>(
        &mut self,
        take: impl Fn(&Frame<'_>) -> Result<T, PathError>,
    ) -> Result<T, PathError> {
        loop {
            if let Some((frame, length)) = Frame::parse(self.plain.filled())? {
                let skipped = matches!(frame, Frame::Skipped(_));
                let taken = if skipped { None } else { Some(take(&frame)?) };
                self.plain.consume(length);
                match taken {
                    Some(taken) => return Ok(taken),
                    None => continue,
                }
            }
            if !self.read().await? {
                return Err(closed());
            }
        }
    }

    /// Sends bytes and waits until the kernel has them.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), PathError> {
        self.queue(bytes)?;
        self.flush().await
    }

    /// Makes bytes ready to be sent.
    pub(crate) fn queue(&mut self, bytes: &[u8]) -> Result<(), PathError> {
        self.records.put(bytes, &mut self.incoming, &mut self.out)
    }

    /// Says that nothing more comes from here.
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        SockRef::from(&self.socket).shutdown(Shutdown::Write)
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

    /// Sends what is ready and waits until the kernel has it.
    pub(crate) async fn flush(&mut self) -> Result<(), PathError> {
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

/// The peer ended the connection.
pub(crate) fn closed() -> PathError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}
