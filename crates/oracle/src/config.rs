//! The section `[oracle]` of the configuration.
