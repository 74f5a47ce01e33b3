//! Super-packets and their segments.

mod packets;
mod root;
mod rules;
