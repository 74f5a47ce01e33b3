//! ALTO over HTTPS: network maps, cost maps and endpoint services (RFC 7285), several costs at once
//! (RFC 8189), cost calendars (RFC 8896).
//!
//! This is the pure core: values go in, a status, a media type and JSON bytes come out. It opens no
//! socket and reads no clock.

pub mod address;
pub mod constraint;
pub mod cost_type;
pub mod error;
pub mod media;
pub mod name;
pub mod resource;

pub use cost_type::{CostMode, CostType};
pub use error::{Code, Failure, Problem};
pub use resource::{Method, Request, Resource, Response};
