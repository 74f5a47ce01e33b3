//! A client of BIRD's control socket: one command, one reply, both in bounded time.

use super::reply::{Parser, Reply, ReplyError};
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

/// How long BIRD has for one reply.
const REPLY: Duration = Duration::from_secs(2);

/// BIRD did not do as it was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum BirdError {
    /// The socket cannot be opened.
    #[error(
        "{socket}: {error}; check that BIRD runs and that this is its control socket, which only its group may open"
    )]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The connection broke.
    #[error("BIRD closed its control socket: {0}")]
    Broken(io::Error),
    /// There was no reply in time.
    #[error("BIRD did not answer `{command}` within 2 s")]
    Late {
        /// The command.
        command: String,
    },
    /// The reply is not BIRD's.
    #[error("BIRD's answer to `{command}`: {error}")]
    Reply {
        /// The command.
        command: String,
        /// What is wrong with it.
        error: ReplyError,
    },
    /// BIRD refuses the command.
    #[error("BIRD refuses `{command}`: {why}; check the protocol's name in bird.conf")]
    Refused {
        /// The command.
        command: String,
        /// BIRD's reason.
        why: String,
    },
}

/// An open control socket.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    parser: Parser,
}

impl Client {
    /// Opens the control socket and waits for BIRD's greeting.
    ///
    /// # Errors
    /// The socket cannot be opened, or nothing that greets like BIRD is behind it.
    pub(super) async fn open(socket: &Path) -> Result<Self, BirdError> {
        let stream = UnixStream::connect(socket)
            .await
            .map_err(|error| BirdError::Connect { socket: socket.to_owned(), error })?;
        let mut client = Self { stream, parser: Parser::default() };
        client.reply("(greeting)").await?;
        Ok(client)
    }

    /// Sends a command and reads its reply, errors of BIRD among them.
    ///
    /// # Errors
    /// The reply did not come, or is no reply.
    pub(super) async fn ask(&mut self, command: &str) -> Result<Reply, BirdError> {
        let line = format!("{command}\n");
        match timeout(REPLY, self.stream.write_all(line.as_bytes())).await {
            Ok(Ok(())) => self.reply(command).await,
            Ok(Err(error)) => Err(BirdError::Broken(error)),
            Err(_) => Err(BirdError::Late { command: command.to_owned() }),
        }
    }

    /// Sends a command that has to succeed.
    ///
    /// # Errors
    /// As [`Client::ask`], or BIRD refuses.
    pub(super) async fn command(&mut self, command: &str) -> Result<Reply, BirdError> {
        let reply = self.ask(command).await?;
        match reply.error() {
            Some(why) => {
                Err(BirdError::Refused { command: command.to_owned(), why: why.to_owned() })
            }
            None => Ok(reply),
        }
    }

    async fn reply(&mut self, command: &str) -> Result<Reply, BirdError> {
        timeout(REPLY, self.read(command))
            .await
            .unwrap_or_else(|_| Err(BirdError::Late { command: command.to_owned() }))
    }

    async fn read(&mut self, command: &str) -> Result<Reply, BirdError> {
        let mut buffer = [0; 4096];
        loop {
            let count = self.stream.read(&mut buffer).await.map_err(BirdError::Broken)?;
            if count == 0 {
                return Err(BirdError::Broken(io::ErrorKind::UnexpectedEof.into()));
            }
            // One command is asked at a time, so nothing follows a reply.
            let (_, reply) = self
                .parser
                .push(&buffer[..count])
                .map_err(|error| BirdError::Reply { command: command.to_owned(), error })?;
            if let Some(reply) = reply {
                return Ok(reply);
            }
        }
    }
}
