//! The outcome of the packets of a session, in bounded memory.
//!
//! [`Collector`] counts a series of packets (loss as in RFC 7680, reordering RFC 4737, duplicates
//! RFC 5560) and keeps of their delays what percentiles with intervals and the delay variation (RFC 5481)
//! need. A packet counts in the window in which its outcome is known: when it arrives, or when its time limit
//! is over.

mod series;
mod sketch;

pub use series::Collector;
