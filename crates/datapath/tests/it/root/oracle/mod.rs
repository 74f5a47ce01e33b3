//! The oracle's programs by BPF_PROG_TEST_RUN: frame in, frame out, verdict, counter.
//!
//! `frame` builds requests of which every field can be wrong, `model` judges and ranks once more as
//! plainly as possible, `network` has tables to rank by.

mod frame;
mod limits;
mod live;
mod model;
mod network;
mod random;
mod swap;
mod table;

use datapath::oracle::{Limit, OracleProgram, Settings, SourceLimit};
use network::Network;
use std::net::SocketAddrV4;
use std::time::Duration;

/// Where the service is.
const SERVICE: [u8; 4] = [50, 50, 50, 50];
const PORT: u16 = 8899;
/// An unknown peer.
const CLIENT: [u8; 4] = [192, 0, 2, 7];

/// Settings without limits and with a second address and port.
fn settings() -> Settings {
    Settings {
        services: vec![
            SocketAddrV4::new(SERVICE.into(), PORT),
            SocketAddrV4::new([50, 50, 50, 51].into(), 9000),
        ],
        ttl: Duration::from_secs(90),
        source: SourceLimit { limit: Limit::NONE, prefix4: 24, prefix6: 56 },
    }
}

/// The program with these settings and a network's tables.
fn program(settings: &Settings, network: &Network) -> OracleProgram {
    testbed::need_root();
    let program = OracleProgram::load().expect("the program loads");
    program.configure(settings).expect("the settings are valid");
    network.publish(&program);
    program
}
