//! The STAMP reflector by BPF_PROG_TEST_RUN: frame in, frame out, verdict, counter.
//!
//! `frame` builds test packets of which every field can be wrong, `model` judges and reflects once more as
//! plainly as possible.

mod frame;
mod live;
mod model;
mod random;
mod table;

use datapath::stamp::{Limit, StampProgram};
use std::net::{IpAddr, SocketAddr};

/// Where the reflector is.
const SERVICE: [&str; 2] = ["198.51.100.1:862", "[2001:db8::1]:862"];
/// A sender that is agreed on, with the SSIDs 0 and 7.
const SENDER: [&str; 2] = ["192.0.2.7", "2001:db8:7::7"];
const SSID: u16 = 7;
/// What the program says of its clock.
const ERROR: u16 = 0x8a05;
/// More than any test sends.
const LIMIT: Limit = Limit { rate: 1_000_000, burst: 1_000_000 };

/// The program with that.
fn program() -> StampProgram {
    testbed::need_root();
    let program = StampProgram::load(ERROR).expect("the program loads");
    for service in SERVICE {
        program.serve(service.parse::<SocketAddr>().unwrap()).unwrap();
    }
    for sender in SENDER {
        for ssid in [0, SSID] {
            program.admit(sender.parse::<IpAddr>().unwrap(), ssid, LIMIT).unwrap();
        }
    }
    program
}
