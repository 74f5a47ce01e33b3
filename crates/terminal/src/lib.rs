//! What commands show in a terminal: tables and numbers as [`text`], [`progress`], and full-screen views
//! ([`screen`]).
#![forbid(unsafe_code)]

pub mod progress;
pub mod screen;
pub mod text;
