//! What the gate makes of captures, and what it exports.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod captures;
mod clients;
mod ipfix;
mod parsers;
mod recordings;
mod root;
mod secrets;
