//! What commands show in a terminal: tables and numbers as [`text`], and full-screen views ([`screen`]).
#![forbid(unsafe_code)]

pub mod screen;
pub mod text;
