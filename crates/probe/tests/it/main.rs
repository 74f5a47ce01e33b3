//! Stations, tools and archives against real peers.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod promise;
mod root;
mod stamp;
mod tools;
