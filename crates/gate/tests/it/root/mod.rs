//! What needs root: these tests make network namespaces or load eBPF programs.

mod parsers;
mod receiver;
mod service;
