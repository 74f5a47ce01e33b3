//! Whole sessions: over loopback, through networks, and with peers that err.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod common;
mod forgotten;
mod loopback;
mod middle;
mod model;
mod root;
mod splice;
mod unknown_peers;
mod vanished;
