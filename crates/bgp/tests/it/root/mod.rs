//! What needs root: these tests make network namespaces or load eBPF programs.

mod bfd;
mod common;
mod hostile;
mod session_bird;
mod session_frr;
mod steered_bird;
