//! Super-packets and their segments.
#![forbid(unsafe_code)]

mod linux;
mod packets;
mod rules;
