//! ALTO, Proxidor and feeds, from outside.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod alto_rfc7285;
mod alto_streams;
mod client;
mod feed_hostile;
mod proxidor;
mod rank;
mod root;
