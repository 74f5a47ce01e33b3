//! A program that is nothing but the gate's parsers: for tests of this crate, which do not have `nigh`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    gate::parser::run::main().unwrap_or(ExitCode::FAILURE)
}
