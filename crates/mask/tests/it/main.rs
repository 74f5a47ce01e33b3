//! Captures and TAPs.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod captures;
mod root;
