//! What is emitted is parsed again.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod round_trips;
mod transport;
