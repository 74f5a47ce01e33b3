//! What needs root: these tests make network namespaces or load eBPF programs.

mod anycast;
mod apart;
mod blast;
mod daemon;
mod demo;
mod dinr;
mod docs;
mod echo;
mod gate;
mod kernel;
mod lab;
mod manager;
mod mask_live;
mod oracle;
mod probe;
mod psock;
mod reload;
