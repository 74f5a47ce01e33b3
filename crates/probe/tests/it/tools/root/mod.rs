//! What needs root: these tests make network namespaces.

mod iperf3;
mod lab;
mod narrow;
mod ping;
mod throughput;

use super::{anywhere, wait};
use testbed::{End, Namespace, link};

/// Two namespaces with a link of both families: 192.0.2.1 and .2, 2001:db8::1 and ::2.
fn pair() -> (Namespace, Namespace) {
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    let end = |namespace, last: &str| {
        End::new(namespace, "eth0")
            .address(&format!("192.0.2.{last}/24"))
            .address(&format!("2001:db8::{last}/64"))
            .no_offloads()
            .clone()
    };
    link(end(&left, "1"), end(&right, "2")).unwrap();
    (left, right)
}
