//! Any output of iperf3: figures are finite and their course has an end, complaints have no control
//! characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use probe::tools::{iperf3::parse, throughput::MOST_MOMENTS};

fuzz_target!(|data: &[u8]| {
    for received in [false, true] {
        match parse(data, received) {
            Ok(Ok(figures)) => {
                assert!(figures.bytes_per_second.is_finite() && figures.bytes_per_second >= 0.0);
                assert!(figures.course.len() <= MOST_MOMENTS);
            }
            Ok(Err(complaint)) => assert!(!complaint.chars().any(char::is_control)),
            Err(_) => {}
        }
    }
});
