//! What needs root: these tests make network namespaces or load eBPF programs.

mod alto_attacks;
mod driver;
mod feed_bgp_ls;
mod feed_bmp;
mod feed_stage;
