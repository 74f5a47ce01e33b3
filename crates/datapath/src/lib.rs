//! eBPF programs, typed maps, attach guards and packet sockets; the unsafe lives here.

pub mod blast;
pub mod echo;
mod run;
pub mod socket;
