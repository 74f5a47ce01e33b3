//! The library for C as its users meet it: installed, linked and run.
#![forbid(unsafe_code)]

mod programs;
