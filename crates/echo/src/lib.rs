//! Answers pings at driver speed from an anycast address that is announced only while it can answer.
#![forbid(unsafe_code)]

pub mod config;
pub mod control;
pub mod service;
