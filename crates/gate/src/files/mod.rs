//! What protocols say of the files they carry, read from the two in-order streams of a connection.
//!
//! - `ftp`: FTP's control and data connections.
//! - `http`: HTTP/1, and Gnutella's and web seeds' transfers, which are HTTP.
//! - `peer_wire`, `edonkey`, `direct_connect`: files between peers.
//! - `utp`: the peer wire's connections over uTP.
//! - `talk`: chat, and the files offered in it.
//!
//! A parser turns bytes into calls on `Transfers`, which keeps what policy decided of each file.

pub(crate) mod direct_connect;
pub(crate) mod edonkey;
pub(crate) mod ftp;
pub(crate) mod http;
pub(crate) mod peer_wire;
pub(crate) mod talk;
pub(crate) mod transfers;
pub(crate) mod utp;

mod gather;

use classify::flow::Side;
use transfers::Transfers;

/// The applications whose flows announce others.
pub(crate) const ANNOUNCERS: [&str; 3] = ["ftp", "ftp_control", "irc"];

/// What a direction will bring next, as its parser sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// Bytes that have to be read.
    Read,
    /// The head of a message, which begins with a packet.
    Head,
    /// Nothing that can be read before a packet begins with a message.
    Lost,
    /// A file's content: so many bytes of it in one run, none when only the connection's end ends
    /// it; `last` when that run ends the file.
    Content { run: Option<u64>, last: bool },
    /// Content or protocol that is never of interest: so many bytes, none for all there are.
    Idle(Option<u64>),
}

/// A protocol over two streams.
pub(crate) trait Protocol: Send + std::fmt::Debug {
    /// Bytes in order; `at` is the offset of the first.
    fn bytes(&mut self, from: Side, at: u64, bytes: &[u8], transfers: &mut Transfers);

    /// Bytes that were not seen.
    fn gap(&mut self, from: Side, at: u64, length: u64, transfers: &mut Transfers);

    /// The direction's end: orderly, or not.
    fn end(&mut self, from: Side, complete: bool, transfers: &mut Transfers);

    /// A new connection between the same sockets begins.
    fn restart(&mut self, transfers: &mut Transfers);

    /// What a direction brings next.
    fn ahead(&self, from: Side) -> Ahead;
}
