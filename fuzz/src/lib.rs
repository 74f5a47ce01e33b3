//! What can be fuzzed: a module with a function `run` for each target.
//!
//! `programs/` makes a program for libFuzzer of each; `tests/seeds.rs` runs each on its seeds.
#![forbid(unsafe_code)]

pub mod alto_digest;
pub mod alto_request;
pub mod alto_stream_input;
pub mod bgp_input;
pub mod bgp_ls_input;
pub mod bird_reply;
pub mod bmp_input;
pub mod capture_unpack;
pub mod chrony_reply;
pub mod config;
pub mod control;
pub mod gate_bencode;
pub mod gate_capture;
pub mod gate_chat;
pub mod gate_clamd;
pub mod gate_classify;
pub mod gate_dns;
pub mod gate_files;
pub mod gate_p2p;
pub mod gate_parser;
pub mod gate_stream;
pub mod gate_tls;
pub mod lab_control;
pub mod lab_engine;
pub mod lab_file;
pub mod lab_gso;
pub mod lab_import;
pub mod lab_settings;
pub mod mask_check;
pub mod mask_file;
pub mod mask_policy;
pub mod mask_unit;
pub mod ntp_packet;
pub mod probe_dns;
pub mod probe_icmp;
pub mod probe_iperf3_json;
pub mod probe_station_input;
pub mod probe_throughput_control;
pub mod proxidor_reply;
pub mod proxidor_request;
pub mod psock_core;
pub mod psock_frame;
pub mod stamp_packet;
pub mod stamp_reflector;
pub mod topo_mrt;
pub mod topo_oracle_conf;
pub mod topo_toml;
pub mod wire_frame;
