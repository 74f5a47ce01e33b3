//! Addresses, prefixes, checksums, packet views and values: no I/O, no unsafe.
#![forbid(unsafe_code)]
