//! Generated from `bpf/mask.bpf.c` at build time.
#![allow(unreachable_pub, missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
#![allow(clippy::multiple_unsafe_ops_per_block)]

include!(concat!(env!("OUT_DIR"), "/mask.skel.rs"));
