//! The table and the graph against naive ones, and loaders.
//!
//! One program for all of them: it is linked once. A module is a subject.
#![forbid(unsafe_code)]

mod changes;
mod first;
mod generate;
mod large;
mod load;
mod lpm;
mod mrt;
mod naive;
