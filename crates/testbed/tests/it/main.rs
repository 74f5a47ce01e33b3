//! What the testbed makes and takes away.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod process;
mod programs;
mod root;
