//! Clients of the oracle: rank, ping, load, flood.
