//! Sessions with real routers and between two of our own, hostile peers, messages, BMP.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod bfd;
mod bmp;
mod fsm;
mod link_state;
mod messages;
mod monitored;
mod root;
mod stream;
