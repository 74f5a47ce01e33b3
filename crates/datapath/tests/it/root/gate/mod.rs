//! The gate's programs: by BPF_PROG_TEST_RUN on frames from memory, and between namespaces.
//!
//! `frame` builds packets of which every field can be chosen, and reads what came out with every
//! checksum checked; `site` is an internal host, the gate, and an external host.

mod cost;
mod flood;
mod frame;
mod hold;
mod hooks;
mod live;
mod random;
mod rules;
mod site;
mod table;
mod takeover;
mod through;
