//! The responder as an operator runs it, on real interfaces in namespaces: the traffic that it
//! answers, what can be changed while it runs, and how it starts and ends.
//!
//! The tests of `[anycast]` are in tests/anycast. All traffic stays between namespaces of the test.

mod answers;
mod distant;
mod life;
mod limits;
mod site;
