//! What commands show in a terminal: tables and numbers as [`text`], [`progress`], and full-screen views
//! ([`screen`]); and text in pages and pictures ([`markup`]).
#![forbid(unsafe_code)]

pub mod markup;
pub mod progress;
pub mod screen;
pub mod text;
