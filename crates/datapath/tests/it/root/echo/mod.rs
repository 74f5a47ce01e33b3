//! The responder's program by BPF_PROG_TEST_RUN: packet in, packet out, verdict, counter.
//!
//! `frame` builds frames, `model` is the responder written once more as plainly as possible; the
//! table of packets says what both must do, the random frames that both always agree.

mod attach;
mod change;
mod checksums;
mod cost;
mod fib;
mod frame;
mod limits;
mod model;
mod random;
mod table;

use datapath::echo::{EchoProgram, Limit, Settings};
use std::net::IpAddr;

/// The service address of most tests, IPv4.
const SERVICE4: [u8; 4] = [50, 50, 50, 50];
/// The same, IPv6: 2001:db8:50::50.
const SERVICE6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50];
/// An unknown peer, IPv4.
const CLIENT4: [u8; 4] = [192, 0, 2, 7];
/// The same, IPv6: 2001:db8:7::7.
const CLIENT6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
/// The interface's own addresses.
const LINK4: [u8; 4] = [172, 16, 0, 29];
const LINK6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x29];
/// The probe's identifier.
const PROBE_ID: u16 = 0xbeef;

/// Settings that answer at the service addresses and for the probe, without limits.
fn settings() -> Settings {
    Settings {
        addresses: vec![IpAddr::from(SERVICE4), IpAddr::from(SERVICE6)],
        probes: vec![IpAddr::from(LINK4), IpAddr::from(LINK6)],
        probe_id: PROBE_ID,
        source: datapath::echo::SourceLimit { limit: Limit::NONE, ..Settings::default().source },
        ..Settings::default()
    }
}

/// The program with these settings.
fn program(settings: &Settings) -> EchoProgram {
    testbed::need_root();
    let program = EchoProgram::load().expect("the program loads");
    program.configure(settings).expect("the settings are valid");
    program
}
