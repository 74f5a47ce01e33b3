//! Any output of iperf3: figures are finite and their samples have an end, complaints have no control
//! characters.

use probe::tools::{iperf3::parse, throughput::MOST_MOMENTS};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    for received in [false, true] {
        match parse(data, received) {
            Ok(Ok(figures)) => {
                assert!(figures.bytes_per_second.is_finite() && figures.bytes_per_second >= 0.0);
                assert!(figures.samples.len() <= MOST_MOMENTS);
            }
            Ok(Err(complaint)) => assert!(!complaint.chars().any(char::is_control)),
            Err(_) => {}
        }
    }
}
