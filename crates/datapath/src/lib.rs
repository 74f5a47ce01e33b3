//! eBPF programs, typed maps, attach guards and packet sockets; the unsafe lives here.

pub mod bench;
pub mod blast;
pub mod echo;
pub mod mmsg;
pub mod probe_socket;
mod run;
pub mod socket;
mod xdp_link;
