//! The state as values, as text and as metrics.
