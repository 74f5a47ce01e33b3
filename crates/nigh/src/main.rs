//! nigh: keeps an operator's network near, measured and under control.
#![forbid(unsafe_code)]

fn main() {}
