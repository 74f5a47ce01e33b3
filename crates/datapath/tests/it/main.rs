//! The programs packet by packet against models, and on real links.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod root;
