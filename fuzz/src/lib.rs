//! What can be fuzzed: a module with a function `run` for each target.
//!
//! `programs/` makes a program for libFuzzer of each; `tests/seeds.rs` runs each on its seeds.
#![forbid(unsafe_code)]

pub mod alto_digest;
pub mod alto_request;
pub mod alto_stream_input;
pub mod alto_updates;
pub mod bfd_session;
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
pub mod http_input;
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

use std::cell::{Cell, RefCell};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    runtime::{Builder, Runtime},
    task::yield_now,
};

/// Bytes that a server may have in flight to its client, and the client to it.
const PIPE: usize = 1 << 16;
/// After so many turns of the server in which nothing comes a client believes that it waits for more.
const QUIET: usize = 32;

/// A runtime for this thread, on which nothing waits for a socket.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

thread_local! {
    static RUNTIME: RefCell<Runtime> = RefCell::new(runtime());
}

/// What a server of connections says to a client that sends `input` in pieces of `size` bytes, waits until the
/// server has nothing more to say, and closes.
fn conversation<F: Future>(
    input: &[u8],
    size: usize,
    serve: impl FnOnce(DuplexStream) -> F,
) -> Vec<u8> {
    let (client, server) = duplex(PIPE);
    let (mut from, mut to) = tokio::io::split(client);
    let (mut answers, read) = (Vec::new(), Cell::new(0));
    let ask = async {
        for piece in input.chunks(size.min(input.len()).max(1)) {
            if to.write_all(piece).await.is_err() {
                return;
            }
            yield_now().await;
        }
        let (mut before, mut quiet) = (0, 0);
        while quiet < QUIET {
            yield_now().await;
            quiet = if read.get() == before { quiet + 1 } else { 0 };
            before = read.get();
        }
        let _ = to.shutdown().await;
    };
    let listen = async {
        while from.read_buf(&mut answers).await.is_ok_and(|length| length > 0) {
            read.set(answers.len());
        }
    };
    RUNTIME.with_borrow(|runtime| {
        runtime.block_on(async { tokio::join!(serve(server), ask, listen) });
    });
    answers
}
