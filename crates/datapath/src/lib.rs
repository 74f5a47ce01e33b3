//! eBPF programs, typed maps, attach guards and packet sockets; the unsafe lives here.

pub mod ask;
mod attach;
pub mod bench;
pub mod blast;
pub mod capabilities;
pub mod clock;
mod datagrams;
pub mod echo;
mod ethtool;
pub mod gate;
pub mod kernel;
mod limit;
mod link;
mod load;
pub mod mapped;
pub mod mask;
pub mod mmsg;
pub mod oracle;
pub mod path_option;
pub mod probe_socket;
mod ring;
mod run;
pub mod schedule;
pub mod shaper;
mod slots;
pub mod socket;
pub mod stamp;
pub mod stamping;
pub mod tap;
pub mod tcp_info;
pub mod timex;
mod xdp_link;
pub mod xsk;

pub use attach::AttachMode;
pub use load::{Denied, LoadError};
