//! The binary `nigh`; see the library of that name.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    // The gate starts this program again for its parsers.
    gate::parser::run::main().unwrap_or_else(nigh::commands::main)
}
