//! The lab beside Linux, and labs that break.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod gso;
mod root;
