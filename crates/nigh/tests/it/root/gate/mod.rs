//! The gate as an operator runs it, with real clients on both of its sides: what it names, refuses,
//! limits, scans and writes down, and what it does when it is killed or flooded.
//!
//! All traffic stays between namespaces of the test.

mod audited;
mod chat;
mod decoys;
mod flood;
mod http;
mod killed;
mod parsers;
mod peers;
mod rules;
mod scanned;
mod sharing;
mod site;
mod talk;
mod torrents;
mod web;
