//! The program as an operator runs it.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod commandline;
mod docs;
mod mask;
mod root;
mod schema;
mod unit;
