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

use datapath::oracle::{AttachError, AttachMode, Ledger, Limit, OracleProgram};
use datapath::oracle::{PublishError, Settings, SourceLimit, lacks};
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

/// The programs with these settings, without tables.
fn loaded(settings: &Settings) -> OracleProgram {
    testbed::need_root();
    let program = OracleProgram::load().expect("the program loads");
    program.configure(settings).expect("the settings are valid");
    program
}

/// The programs with these settings and a network's tables. None where the kernel lacks what the XDP
/// program needs; it is then neither attached nor given tables, so that the sockets get everything.
fn program(settings: &Settings, network: &Network) -> Option<OracleProgram> {
    let program = loaded(settings);
    if lacks().is_none() {
        network.publish(&program).expect("the tables fit");
        return Some(program);
    }
    assert_eq!(network.publish(&program), Err(PublishError::NoProgram));
    for mode in [AttachMode::Native, AttachMode::Generic] {
        let refused = program.attach(1, mode);
        assert!(matches!(refused, Err(AttachError::Lacks { .. })), "{refused:?}");
    }
    assert_eq!(program.ledger().unwrap(), Ledger::default());
    None
}
