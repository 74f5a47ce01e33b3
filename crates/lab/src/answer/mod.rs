//! What nodes say themselves.

pub(crate) mod neighbour;
