//! A session: the task between the application's socket and the connections.

use crate::{
    Counters, SessionError,
    channel::{Channel, READ_BYTES},
    error::{EndReason, PathError},
    status::Status,
};
use std::{io, net::SocketAddr, os::unix::net::UnixStream as StdUnixStream, sync::Arc};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    sync::Notify,
};

/// What the application's end and the protocol task share.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) status: Status,
    aborted: Notify,
}

impl Session {
    /// Begins a session on a connection whose handshake is done; returns the application's socket.
    pub(crate) fn begin(channel: Channel) -> io::Result<(StdUnixStream, Arc<Self>)> {
        let (application, ours) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let ours = UnixStream::from_std(ours)?;
        let (peer, local) = (channel.socket.peer_addr()?, channel.socket.local_addr()?);
        let (status, aborted) = (Status::default(), Notify::new());
        let session = Arc::new(Self { peer, local, status, aborted });
        let task = Arc::clone(&session);
        tokio::spawn(async move {
            let result = tokio::select! {
                result = task.carry(channel, ours) => result.map_err(|error| {
                    SessionError::Violation(error.to_string())
                }),
                () = task.aborted.notified() => Err(SessionError::Here(EndReason::Aborted)),
            };
            task.status.end(result);
        });
        Ok((application, session))
    }

    pub(crate) fn abort(&self) {
        self.aborted.notify_one();
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Carries both streams until both have ended: blocks with their length, none for the end.
    async fn carry(&self, mut channel: Channel, socket: UnixStream) -> Result<(), PathError> {
        let (mut reader, mut writer) = socket.into_split();
        let (mut ended_here, mut ended_there) = (false, false);
        let mut buffer = vec![0; READ_BYTES];
        while !(ended_here && ended_there) {
            tokio::select! {
                read = reader.read(&mut buffer), if !ended_here => {
                    let count = read?;
                    let bytes = buffer.get(..count).unwrap_or_default();
                    let mut block = (count as u32).to_be_bytes().to_vec();
                    block.extend_from_slice(bytes);
                    channel.write(&block).await?;
                    ended_here = count == 0;
                }
                read = channel.read() => if !read? {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                },
            }
            while let Some((length, rest)) = channel.plain.filled().split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*length) as usize;
                let Some(block) = rest.get(..length) else { break };
                if length == 0 {
                    ended_there = true;
                    self.status.received();
                    writer.shutdown().await?;
                }
                writer.write_all(block).await?;
                channel.plain.consume(4 + length);
            }
        }
        self.status.sent();
        Ok(())
    }
}
