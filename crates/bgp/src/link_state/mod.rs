//! BGP-LS: a speaker advertises the link-state database of the network (RFC 9552).
//!
//! - [`graph`]: the database, and the routers, links and prefixes that its objects describe.
//! - [`learner`]: the session with the speaker, on tokio.

pub mod graph;
pub mod learner;
mod object;

pub use graph::{Graph, GraphChange, LinkId};
pub use learner::{Learned, Learner};
pub use object::Properties;
