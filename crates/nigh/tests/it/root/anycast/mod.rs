//! The announcement as neighbours see it: real BIRD routers, and nodes whose health comes and goes.
//!
//! All traffic stays between namespaces of the test.

mod distant;
mod drain;
mod hangs;
mod health;
pub(super) mod site;
mod steered;
