//! BGP sessions on top of the netgauze crates, and BIRD through its control socket.
#![forbid(unsafe_code)]
