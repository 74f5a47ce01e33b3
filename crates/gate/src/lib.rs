//! Knows, limits, filters, scans and audits peer-to-peer traffic that passes through a gateway.
//!
//! The kernel's program (`bpf/gate.bpf.c`) decides packets by a table of flows; this crate decides
//! flows by what their first packets say, and fills that table. Nothing here waits in a packet's way
//! unless a policy wants it to.
//!
//! - [`flow`], [`packet`]: what is looked at.
//! - [`p2p`], [`hosts`]: the parsers of peer-to-peer protocols, and what they learn of hosts.
//! - [`manage`], [`stream`], [`files`]: the files in flows of interest.
//! - [`torrents`]: files of torrents, put together from blocks.
//! - [`scan`]: content given to ClamAV.
//! - [`label`]: what is found: the application of a flow, how sure that is, and why.
//! - [`classify`]: the three engines that say what a flow is; [`signatures`] is the operator's, [`dns`],
//!   [`names`] and [`tls`] help.
//! - [`capture`]: packet captures read into flows.
//! - [`config`], [`policy`]: what the operator wants, and what follows from it for a flow or a file.
//! - [`chat`]: what people say in plain text.
//! - [`audit`]: what is written down of all that.
#![forbid(unsafe_code)]

mod alike;
pub mod audit;
pub mod capture;
pub mod chat;
pub mod classify;
pub mod cli;
pub mod config;
pub mod control;
pub mod dns;
pub mod files;
pub mod flow;
pub mod hosts;
pub mod label;
pub mod manage;
pub mod names;
pub mod p2p;
pub mod packet;
pub mod policy;
pub mod scan;
pub mod service;
pub mod signatures;
pub mod status;
pub mod stream;
pub mod tls;
pub mod torrents;
