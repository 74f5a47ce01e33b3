//! The handshake of a connection before it is part of a session (docs/psock.md).
//!
//! ```text
//! connecting end                       accepting end
//!      <---- TLS handshake (none for plain) ---->
//!                                <--  Challenge: versions, nonce
//!   Open: driver, connections    -->                       a new session
//!                                <--  Welcome: session, secret (or Refuse); Addresses
//!
//!   Join: session, proof         -->                       one more connection of it
//!                                <--  Joined (or Refuse)
//! ```
//!
//! The proof is HMAC-SHA-256 (RFC 2104) with the session's secret over what the join says and the nonce
//! of this connection, so that a recorded join is worth nothing on another one.

use crate::{
    channel::Channel,
    core::frame::{
        Challenge, Frame, FrameError, FrameFault, Join, Open, Purpose, Reason, Secret, SessionId,
        VERSION, Welcome, code,
    },
    error::{PathError, Refusal},
};
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use std::{io, net::SocketAddr};

/// Random bytes: nonces, secrets, names of sessions.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random bytes"))?;
    Ok(bytes)
}

/// What a connecting end says: who it is to the session it joins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) session: SessionId,
    pub(crate) secret: Secret,
    pub(crate) purpose: Purpose,
    pub(crate) connection: u32,
    pub(crate) path: u16,
}

/// Asks for a new session on a connection whose peer has greeted.
pub(crate) async fn open(channel: &mut Channel, open: Open) -> Result<Welcome, PathError> {
    send(channel, &Frame::Open(open)).await?;
    channel
        .frame(|frame| match frame {
            Frame::Welcome(welcome) => Ok(*welcome),
            other => Err(unexpected(other)),
        })
        .await
}

/// Joins a session with a connection whose TLS handshake is done.
pub(crate) async fn join(channel: &mut Channel, claim: &Claim) -> Result<(), PathError> {
    let Claim { session, purpose, connection, path, .. } = *claim;
    let nonce = challenge(channel).await?;
    let mut join = Join { session, purpose, connection, path, proof: [0; 32] };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &claim.secret.0);
    let proof = hmac::sign(&key, &join.signed(&nonce));
    join.proof.copy_from_slice(proof.as_ref());
    send(channel, &Frame::Join(join)).await?;
    channel
        .frame(|frame| match frame {
            Frame::Joined => Ok(()),
            other => Err(unexpected(other)),
        })
        .await
}

/// Reads the accepting end's greeting.
pub(crate) async fn challenge(channel: &mut Channel) -> Result<[u8; 32], PathError> {
    let challenge = channel
        .frame(|frame| match frame {
            Frame::Challenge(challenge) => Ok(*challenge),
            other => Err(unexpected(other)),
        })
        .await?;
    match (challenge.lowest..=challenge.highest).contains(&VERSION) {
        true => Ok(challenge.nonce),
        false => Err(PathError::Refused(Refusal::Version)),
    }
}

/// What a connecting end wants.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish {
    Open(Open),
    Join(Join),
}

/// Greets a connecting end and reads what it wants; returns the nonce for its proof too.
pub(crate) async fn greet(channel: &mut Channel) -> Result<(Wish, [u8; 32]), PathError> {
    let nonce = random()?;
    let challenge = Challenge { lowest: VERSION, highest: VERSION, nonce };
    send(channel, &Frame::Challenge(challenge)).await?;
    let wish = channel
        .frame(|frame| match frame {
            Frame::Open(open) => Ok(Wish::Open(*open)),
            Frame::Join(join) => Ok(Wish::Join(*join)),
            other => Err(unexpected(other)),
        })
        .await?;
    Ok((wish, nonce))
}

/// Whether a join proves that it knows the secret; takes as long for a wrong proof as for a right one.
pub(crate) fn proves(join: &Join, nonce: &[u8; 32], secret: &Secret) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.0);
    hmac::verify(&key, &join.signed(nonce), &join.proof).is_ok()
}

/// Sends one frame.
async fn send(channel: &mut Channel, frame: &Frame<'_>) -> Result<(), PathError> {
    let mut bytes = Vec::new();
    frame.emit(&mut bytes);
    channel.write(&bytes).await
}

/// Prepares the announcement of the new session and of the listener's addresses to the peer: the session must
/// be known before it is sent.
pub(crate) fn welcome(
    channel: &mut Channel,
    welcome: Welcome,
    addresses: Vec<SocketAddr>,
) -> Result<(), PathError> {
    let mut bytes = Vec::new();
    Frame::Welcome(welcome).emit(&mut bytes);
    Frame::Addresses(addresses).emit(&mut bytes);
    channel.queue(&bytes)
}

/// Confirms to the peer that its connection is part of the session.
pub(crate) async fn joined(channel: &mut Channel) -> Result<(), PathError> {
    send(channel, &Frame::Joined).await
}

/// Reports to the peer why it is refused.
pub(crate) async fn refuse(channel: &mut Channel, refusal: Refusal) -> Result<(), PathError> {
    let text = refusal.to_string();
    send(channel, &Frame::Refuse(Reason { code: refusal.code(), text: &text })).await
}

fn unexpected(frame: &Frame<'_>) -> PathError {
    match frame {
        Frame::Refuse(reason) => PathError::Refused(Refusal::from_code(reason.code)),
        _ => PathError::Protocol("an unexpected frame in the handshake".to_owned()),
    }
}

impl Refusal {
    /// The code on the wire.
    fn code(self) -> u16 {
        match self {
            Self::Version => code::VERSION,
            Self::Driver => code::DRIVER,
            Self::Session => code::SESSION,
            Self::Limit => code::LIMIT,
            Self::Stopping => code::STOPPING,
            Self::Violation => code::VIOLATION,
            Self::Other(other) => other,
        }
    }

    /// The refusal for a peer whose request cannot be read; none when the connection is broken.
    pub(crate) fn of(error: &PathError) -> Option<Self> {
        match error {
            PathError::Frame(FrameError { fault: FrameFault::Version(_), .. }) => {
                Some(Self::Version)
            }
            PathError::Frame(FrameError { fault: FrameFault::Driver(_), .. }) => Some(Self::Driver),
            PathError::Frame(_) | PathError::Protocol(_) => Some(Self::Violation),
            _ => None,
        }
    }

    fn from_code(code: u16) -> Self {
        match code {
            code::VERSION => Self::Version,
            code::DRIVER => Self::Driver,
            code::SESSION => Self::Session,
            code::LIMIT => Self::Limit,
            code::STOPPING => Self::Stopping,
            code::VIOLATION => Self::Violation,
            other => Self::Other(other),
        }
    }
}
