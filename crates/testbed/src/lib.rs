//! Network namespaces, links, real routers and the daemon under test; development only.
//!
//! Read [`namespace`] first: everything else runs inside one. Each thing that is started is held by
//! a guard ([`Namespace`], [`Process`], [`Bird`], [`Chrony`], [`Frr`], [`GoBgp`], [`Nigh`], [`Lab`]) that takes it away again when
//! it is dropped, also when a test panics. What a killed test left behind is removed by the next
//! one, see [`namespace::remove_stale`].
//!
//! ```no_run
//! use testbed::{End, Namespace, link};
//!
//! let left = Namespace::new("left").unwrap();
//! let right = Namespace::new("right").unwrap();
//! link(
//!     End::new(&left, "eth0").address("192.0.2.1/30"),
//!     End::new(&right, "eth0").address("192.0.2.2/30"),
//! )
//! .unwrap();
//! left.check(&["ping", "-c", "1", "192.0.2.2"]).unwrap();
//! ```
#![forbid(unsafe_code)]

pub mod bird;
pub mod classify;
pub mod clients;
pub mod dinr;
pub mod lab;
pub mod namespace;
pub mod nigh;
pub mod pings;
pub mod process;
pub mod programs;
pub mod segment;

mod capabilities;
mod chrony;
mod closing;
mod figures;
mod folder;
mod forward;
mod frr;
mod gateway;
mod gobgp;
mod link;
mod permit;
mod receiver;
mod root;
mod wait;

pub use bird::Bird;
pub use capabilities::{KEPT, few_capabilities};
pub use chrony::Chrony;
pub use closing::close;
pub use figures::Figures;
pub use forward::Forward;
pub use frr::Frr;
pub use gateway::Gateway;
pub use gobgp::GoBgp;
pub use lab::Lab;
pub use link::{End, link, pair, pair_without_offloads};
pub use namespace::Namespace;
pub use nigh::Nigh;
pub use pings::Pings;
pub use process::{Finished, Process, itself};
pub use receiver::Receiver;
pub use root::{need_root, private_run};
pub use wait::{LIMIT, wait_until};

/// Something in the testbed did not work: what was tried, and what came of it.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Error {
    /// What was tried, such as the command line.
    pub what: String,
    /// What came of it, such as the command's output.
    pub why: String,
}

impl Error {
    /// An error from what was tried and what came of it.
    pub fn new(what: impl Into<String>, why: impl ToString) -> Self {
        Self { what: what.into(), why: why.to_string() }
    }
}
