//! What needs root: these tests make network namespaces or load eBPF programs.

mod blast;
mod common;
mod echo;
mod gate;
mod oracle;
mod parity;
mod shaper;
mod stamp;
mod tap;
mod verifier;
mod xsk;
