//! The lab as people use it: real programs on real packets through simulated networks, and what is
//! left of a lab that ends however.

mod http;
mod imports;
mod life;
mod links;
mod ports;
mod programs;
mod routing;
mod scenes;
mod using;
mod wires;

use std::path::Path;
use testbed::{LIMIT, Lab};

/// The program under test.
fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_nigh"))
}

/// Two hosts, with two routers and 10 ms one way between them.
const TWO_HOSTS: &str = r#"
[lab]
seed = 7

[[node]]
name = "r1"

[[node]]
name = "r2"

[[link]]
between = ["r1", "r2"]
delay = "10ms"

[[host]]
name = "pc"
attach = "r1"
address = ["20.0.0.10/24", "2001:db8:20::10/64"]

[[host]]
name = "server"
attach = "r2"
address = ["30.0.0.10/24", "2001:db8:30::10/64"]
"#;

/// Runs a scene.
fn lab(scene: &str) -> Lab {
    Lab::start(binary(), scene).unwrap()
}
