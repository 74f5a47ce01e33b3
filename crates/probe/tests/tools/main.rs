//! The measuring tests in namespaces and through the lab.

mod dns;
mod http;
mod iperf3;
mod lab;
mod narrow;
mod ping;
mod throughput;

use probe::tools::{Context, Permission};
use std::{future::Future, net::IpAddr, sync::Arc};
use testbed::{End, Namespace, link};

/// Runs to its end what a test does, on this thread and one for blocking work, so that all of it is in
/// this thread's namespace.
fn wait<R>(future: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A station that may send anywhere; in namespaces nowhere is far.
fn anywhere() -> Context {
    Context::new(Arc::new(|_: IpAddr| true) as Arc<dyn Permission>)
}

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
