//! The measuring tests in namespaces and through the lab.

mod dns;
mod http;
mod root;

use probe::tools::{Context, Permission};
use std::{future::Future, net::IpAddr, sync::Arc};

/// Runs to its end what a test does, on this thread and one for blocking work, so that all of it is in
/// this thread's namespace.
fn wait<R>(future: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A station that may send anywhere; in namespaces nowhere is far.
fn anywhere() -> Context {
    Context::new(Arc::new(|_: IpAddr| true) as Arc<dyn Permission>)
}
