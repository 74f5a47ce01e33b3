//! psock: one byte stream over several TCP connections, never slower than the best of them.
#![deny(unsafe_code)]

pub mod core;
