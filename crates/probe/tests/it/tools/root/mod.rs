//! What needs root: these tests make network namespaces.

mod iperf3;
mod lab;
mod narrow;
mod ping;
mod throughput;

use super::{anywhere, wait};
