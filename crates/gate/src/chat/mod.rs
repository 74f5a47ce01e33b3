//! Chat in plain text, read for the audit.
//!
//! Readers take the bytes of each side in order and give what people said and did. They are bounded
//! in all they keep, find their place again after a gap, and end by themselves where encryption
//! begins. What a client says to be let in (IRC's PASS and OPER, XMPP's and MSN's authentication, what
//! is said to services that keep passwords) is passed over unread.

mod message;

pub use message::{Event, MAX_TEXT, Message, Protocol};
