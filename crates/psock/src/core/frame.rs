//! The frames of psock, version 1: what goes over every connection of a session. docs/psock.md has the
//! tables.
//!
//! ```text
//! 0        1                       4
//! +--------+-----------------------+----------------- - -
//! |  kind  |  length of the body   |  body
//! +--------+-----------------------+----------------- - -
//! ```
//!
//! Numbers are big-endian. Each kind has its longest body, and a header that asks for more is refused
//! before its body has come. Kinds from [`SKIPPED_FROM`] on that are not known are skipped, so that later
//! versions may add what old ends need not understand; other unknown kinds end the session.

mod read;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use super::driver_name::DriverName;
use read::Body;

/// What Challenge, Open and Join begin with.
pub const MAGIC: [u8; 4] = *b"psck";
/// The version that is spoken.
pub const VERSION: u8 = 1;
/// Octets before the body of a frame.
pub const HEADER_LEN: usize = 4;
/// Octets of a Block frame before the bytes of the stream.
pub const BLOCK_HEADER_LEN: usize = HEADER_LEN + 8;
/// Bytes of the stream that one block carries at most.
pub const MAX_BLOCK: usize = 65_536;
/// The longest frame.
pub const MAX_FRAME: usize = BLOCK_HEADER_LEN + MAX_BLOCK;
/// Kinds from here on are skipped when they are not known.
pub const SKIPPED_FROM: u8 = 0x80;
/// Addresses that one frame lists at most.
pub const MAX_ADDRESSES: usize = 64;
/// Octets of the text of a Refuse or Reset at most.
pub const MAX_TEXT: usize = 255;
/// A stream has at most so many bytes; offsets beyond are refused, so that sums of them never overflow.
pub const MAX_OFFSET: u64 = 1 << 62;

const CHALLENGE: u8 = 1;
const OPEN: u8 = 2;
const WELCOME: u8 = 3;
const JOIN: u8 = 4;
const JOINED: u8 = 5;
const REFUSE: u8 = 6;
const BLOCK: u8 = 16;
const ACKNOWLEDGE: u8 = 17;
const FINISH: u8 = 18;
const RESET: u8 = 19;
const PING: u8 = 20;
const PONG: u8 = 21;
const GOODBYE: u8 = 22;
const ADDRESSES: u8 = SKIPPED_FROM;

/// Which session a connection belongs to. Not a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub [u8; 16]);

/// What proves that a connection may join a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A frame as it came; blocks and texts point into what was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The accepting end, first of all on each connection.
    Challenge(Challenge),
    /// The connecting end wants a new session; this becomes its control connection.
    Open(Open),
    /// The session is there.
    Welcome(Welcome),
    /// The connecting end wants to add a connection to a session.
    Join(Join),
    /// The connection is part of the session.
    Joined,
    /// The accepting end wants neither session nor connection, and closes.
    Refuse(Reason<'a>),
    /// Bytes of the stream.
    Block(Block<'a>),
    /// What came, and what may be sent.
    Acknowledge(Acknowledge),
    /// The stream that the sender of this sends has so many bytes.
    Finish(u64),
    /// The session ends here, with an error.
    Reset(Reason<'a>),
    /// To be answered with the same number.
    Ping(u64),
    /// The answer.
    Pong(u64),
    /// Everything is acknowledged in both directions. An end that has sent and received it leaves.
    Goodbye,
    /// Addresses of the accepting end.
    Addresses(Vec<SocketAddr>),
    /// A kind of a later version that may be skipped.
    Skipped(u8),
}

/// The accepting end's greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The oldest version that it speaks.
    pub lowest: u8,
    /// The newest.
    pub highest: u8,
    /// Never used twice: a proof for it is worth nothing on another connection.
    pub nonce: [u8; 32],
}

/// A new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The driver that is wanted.
    pub driver: DriverName,
    /// Data connections that will join.
    pub connections: u16,
    /// Reorder memory of the connecting end: so many bytes may be sent to it before its first
    /// acknowledgement.
    pub window: u64,
    /// For how many milliseconds it keeps the session without any connection.
    pub survive_ms: u32,
}

/// The answer to [`Open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The session.
    pub session: SessionId,
    /// What further connections prove that they know.
    pub secret: Secret,
    /// The driver of both ends.
    pub driver: DriverName,
    /// Data connections that may be there at a time.
    pub connections: u16,
    /// Reorder memory of the accepting end.
    pub window: u64,
    /// For how many milliseconds it keeps the session without any connection.
    pub survive_ms: u32,
}

/// What a joining connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It takes the place of the control connection.
    Control,
    /// It carries blocks.
    Data,
}

/// One more connection of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The session.
    pub session: SessionId,
    /// What the connection is for.
    pub purpose: Purpose,
    /// The connecting end's number of the connection, never used twice in a session.
    pub connection: u32,
    /// The connecting end's number of the path.
    pub path: u16,
    /// HMAC-SHA-256 with the session's secret over [`Join::signed`].
    pub proof: [u8; 32],
}

impl Join {
    /// What the proof is made over: everything that the frame says, and the nonce of this connection.
    #[must_use]
    pub fn signed(&self, nonce: &[u8; 32]) -> Vec<u8> {
        let mut bytes = b"psock join".to_vec();
        bytes.extend_from_slice(nonce);
        self.emit_claim(&mut bytes);
        bytes
    }

    fn emit_claim(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(&self.session.0);
        out.push(matches!(self.purpose, Purpose::Data).into());
        out.extend_from_slice(&self.connection.to_be_bytes());
        out.extend_from_slice(&self.path.to_be_bytes());
    }
}

/// Why something is refused or ended. Unknown codes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason<'a> {
    /// One of [`code`], or one that is not known here.
    pub code: u16,
    /// For people, at most [`MAX_TEXT`] octets.
    pub text: &'a str,
}

/// Codes of [`Reason`].
pub mod code {
    /// The version is not spoken.
    pub const VERSION: u16 = 1;
    /// The driver is not known.
    pub const DRIVER: u16 = 2;
    /// There is no such session, it does not live any more, or the proof is wrong: which of them is reported
    /// to nobody.
    pub const SESSION: u16 = 3;
    /// There are too many sessions or connections.
    pub const LIMIT: u16 = 5;
    /// The end is about to stop.
    pub const STOPPING: u16 = 6;
    /// The peer broke the rules of this protocol.
    pub const VIOLATION: u16 = 7;
    /// The application gave up its stream.
    pub const ABORTED: u16 = 8;
    /// No path lived for too long.
    pub const PATHS: u16 = 9;
}

/// Bytes of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The offset of the first one in the stream.
    pub offset: u64,
    /// 1 to [`MAX_BLOCK`] bytes.
    pub bytes: &'a [u8],
}

/// What came, and what may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledge {
    /// All bytes before this offset came.
    pub in_order: u64,
    /// Bytes before this offset may be sent. Never taken back.
    pub limit: u64,
    /// Bytes of blocks that came on this connection, duplicates too.
    pub received: u64,
    /// The end of the stream is known and everything before it came.
    pub ended: bool,
}

/// Why bytes are no frame, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("octet {offset} of a frame: {fault}")]
pub struct FrameError {
    /// From the frame's first octet.
    pub offset: usize,
    /// What is wrong there.
    pub fault: FrameFault,
}

/// What can be wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// A kind that must be known.
    #[error("unknown kind {0}")]
    Kind(u8),
    /// A body longer or shorter than its kind allows.
    #[error("a body of {length} octets for kind {kind}")]
    Length {
        /// The kind.
        kind: u8,
        /// The length that the header says.
        length: usize,
    },
    /// Not a psock connection.
    #[error("not the magic of psock")]
    Magic,
    /// A version that is not spoken.
    #[error("version {0} instead of {VERSION}")]
    Version(u8),
    /// A driver that is not known.
    #[error("unknown driver {0}")]
    Driver(u8),
    /// A purpose that is not known.
    #[error("unknown purpose {0}")]
    Purpose(u8),
    /// An offset beyond every stream.
    #[error("offset {0} is beyond every stream")]
    Offset(u64),
    /// Flags that are not known.
    #[error("unknown flags {0:#x}")]
    Flags(u8),
    /// Text that is no UTF-8.
    #[error("text that is not UTF-8")]
    Text,
    /// An address that is neither IPv4 nor IPv6.
    #[error("unknown address family {0}")]
    Family(u8),
}

impl<'a> Frame<'a> {
    /// Reads the frame at the beginning of `bytes`, and returns how long it is; `None` if it is not whole.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Frame<'a>, usize)>, FrameError> {
        let Some((&[kind, a, b, c], rest)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let wrong = |offset, fault| Err(FrameError { offset, fault });
        let allowed = match kind {
            CHALLENGE => 38..=38,
            OPEN => 20..=20,
            WELCOME => 63..=63,
            JOIN => 60..=60,
            JOINED | GOODBYE => 0..=0,
            REFUSE | RESET => 2..=2 + MAX_TEXT,
            BLOCK => 9..=8 + MAX_BLOCK,
            ACKNOWLEDGE => 25..=25,
            FINISH | PING | PONG => 8..=8,
            ADDRESSES => 0..=MAX_ADDRESSES * 19,
            kind if kind >= SKIPPED_FROM => 0..=8 + MAX_BLOCK,
            _ => return wrong(0, FrameFault::Kind(kind)),
        };
        if !allowed.contains(&length) {
            return wrong(1, FrameFault::Length { kind, length });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        Ok(Some((Self::read(kind, Body::new(kind, body))?, HEADER_LEN + length)))
    }

    /// The frame of this kind, whose body has a length that the kind allows.
    fn read(kind: u8, mut body: Body<'a>) -> Result<Self, FrameError> {
        let frame = match kind {
            CHALLENGE => {
                body.magic()?;
                let (lowest, highest) = (body.u8()?, body.u8()?);
                Frame::Challenge(Challenge { lowest, highest, nonce: body.array()? })
            }
            OPEN => {
                body.magic()?;
                body.version()?;
                Frame::Open(Open {
                    driver: body.driver()?,
                    connections: body.u16()?,
                    window: body.offset()?,
                    survive_ms: body.u32()?,
                })
            }
            WELCOME => Frame::Welcome(Welcome {
                session: SessionId(body.array()?),
                secret: Secret(body.array()?),
                driver: body.driver()?,
                connections: body.u16()?,
                window: body.offset()?,
                survive_ms: body.u32()?,
            }),
            JOIN => {
                body.magic()?;
                body.version()?;
                Frame::Join(Join {
                    session: SessionId(body.array()?),
                    purpose: body.purpose()?,
                    connection: body.u32()?,
                    path: body.u16()?,
                    proof: body.array()?,
                })
            }
            JOINED => Frame::Joined,
            GOODBYE => Frame::Goodbye,
            REFUSE => Frame::Refuse(Reason { code: body.u16()?, text: body.text()? }),
            BLOCK => {
                let offset = body.offset()?;
                Frame::Block(Block { offset, bytes: body.rest() })
            }
            ACKNOWLEDGE => Frame::Acknowledge(Acknowledge {
                in_order: body.offset()?,
                limit: body.offset()?,
                received: body.u64()?,
                ended: body.flag()?,
            }),
            FINISH => Frame::Finish(body.offset()?),
            RESET => Frame::Reset(Reason { code: body.u16()?, text: body.text()? }),
            PING => Frame::Ping(body.u64()?),
            PONG => Frame::Pong(body.u64()?),
            ADDRESSES => Frame::Addresses(body.addresses()?),
            _ => return Ok(Frame::Skipped(kind)),
        };
        body.end()?;
        Ok(frame)
    }

    /// Appends the frame. What is longer than allowed (a text, a list of addresses) is cut.
    ///
    /// A block of more than [`MAX_BLOCK`] bytes is cut too, so blocks are made by who knows the limit.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.kind(), 0, 0, 0]);
        match self {
            Frame::Challenge(Challenge { lowest, highest, nonce }) => {
                out.extend_from_slice(&MAGIC);
                out.extend_from_slice(&[*lowest, *highest]);
                out.extend_from_slice(nonce);
            }
            Frame::Open(open) => {
                out.extend_from_slice(&MAGIC);
                out.extend_from_slice(&[VERSION, open.driver.code()]);
                out.extend_from_slice(&open.connections.to_be_bytes());
                out.extend_from_slice(&open.window.to_be_bytes());
                out.extend_from_slice(&open.survive_ms.to_be_bytes());
            }
            Frame::Welcome(welcome) => {
                out.extend_from_slice(&welcome.session.0);
                out.extend_from_slice(&welcome.secret.0);
                out.push(welcome.driver.code());
                out.extend_from_slice(&welcome.connections.to_be_bytes());
                out.extend_from_slice(&welcome.window.to_be_bytes());
                out.extend_from_slice(&welcome.survive_ms.to_be_bytes());
            }
            Frame::Join(join) => {
                out.extend_from_slice(&MAGIC);
                join.emit_claim(out);
                out.extend_from_slice(&join.proof);
            }
            Frame::Joined | Frame::Goodbye => {}
            Frame::Refuse(reason) | Frame::Reset(reason) => {
                out.extend_from_slice(&reason.code.to_be_bytes());
                let is_cut = |at: &usize| reason.text.is_char_boundary(*at);
                let cut = (0..=reason.text.len().min(MAX_TEXT)).rev().find(is_cut).unwrap_or(0);
                out.extend_from_slice(&reason.text.as_bytes()[..cut]);
            }
            Frame::Block(Block { offset, bytes }) => {
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(&bytes[..bytes.len().min(MAX_BLOCK)]);
            }
            Frame::Acknowledge(ack) => {
                for number in [ack.in_order, ack.limit, ack.received] {
                    out.extend_from_slice(&number.to_be_bytes());
                }
                out.push(ack.ended.into());
            }
            Frame::Finish(number) | Frame::Ping(number) | Frame::Pong(number) => {
                out.extend_from_slice(&number.to_be_bytes());
            }
            Frame::Addresses(list) => {
                for address in list.iter().take(MAX_ADDRESSES) {
                    match address.ip() {
                        IpAddr::V4(ip) => {
                            out.push(4);
                            out.extend_from_slice(&ip.octets());
                        }
                        IpAddr::V6(ip) => {
                            out.push(6);
                            out.extend_from_slice(&ip.octets());
                        }
                    }
                    out.extend_from_slice(&address.port().to_be_bytes());
                }
            }
            Frame::Skipped(_) => {}
        }
        let length = out.len() - start - HEADER_LEN;
        out[start + 1..start + HEADER_LEN].copy_from_slice(&header_length(length));
    }

    fn kind(&self) -> u8 {
        match self {
            Frame::Challenge(_) => CHALLENGE,
            Frame::Open(_) => OPEN,
            Frame::Welcome(_) => WELCOME,
            Frame::Join(_) => JOIN,
            Frame::Joined => JOINED,
            Frame::Refuse(_) => REFUSE,
            Frame::Block(_) => BLOCK,
            Frame::Acknowledge(_) => ACKNOWLEDGE,
            Frame::Finish(_) => FINISH,
            Frame::Reset(_) => RESET,
            Frame::Ping(_) => PING,
            Frame::Pong(_) => PONG,
            Frame::Goodbye => GOODBYE,
            Frame::Addresses(_) => ADDRESSES,
            Frame::Skipped(kind) => *kind,
        }
    }
}

/// The header of a block of `length` bytes, which are written after it.
#[must_use]
pub fn block_header(offset: u64, length: usize) -> [u8; BLOCK_HEADER_LEN] {
    let mut header = [0; BLOCK_HEADER_LEN];
    header[0] = BLOCK;
    header[1..HEADER_LEN].copy_from_slice(&header_length(length + 8));
    header[HEADER_LEN..].copy_from_slice(&offset.to_be_bytes());
    header
}

/// The length of a body as the header has it; all bodies are shorter than 2^24 octets.
fn header_length(length: usize) -> [u8; 3] {
    let bytes = length.to_be_bytes();
    let [.., a, b, c] = bytes;
    [a, b, c]
}
