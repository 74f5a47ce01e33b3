//! Jobs of one node are apart: a panic in one, or a change of its section, touches no other.

#[cfg(debug_assertions)]
mod panics;
mod reloads;
mod site;
