//! A simulated internet that carries real packets between real hosts.
//!
//! The core takes frames and readings of a clock, and returns frames and the time of its next timer; it
//! does no I/O. The shell around it owns the ports to hosts, the scenes and the commands.
#![forbid(unsafe_code)]

mod ability;
pub mod capture;
pub mod clean;
pub mod cli;
pub mod control;
pub mod engine;
pub mod generate;
pub mod gso;
pub mod handle;
pub mod host;
pub mod http;
mod ids;
pub mod import;
pub mod link;
pub mod network;
mod packet;
pub mod pool;
mod port;
pub mod route;
pub mod run;
pub mod scene;
pub mod settings;
pub mod stage;
pub mod view;

pub use ability::ability;
pub use engine::{Change, ChangeError, Engine, EngineOptions, IcmpLimits, Ledger};
pub use ids::{LinkId, Nanos, NodeId, PortId};
pub use link::LinkState;
pub use network::{Builder, Network, Owner, Relation};
pub use route::{NoPath, RouteMode, RoutePolicy, Router};
pub use settings::{LinkSettings, SettingsChange};
