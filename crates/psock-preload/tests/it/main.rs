//! The library for unmodified programs as its users meet it.
#![forbid(unsafe_code)]

mod root;
