//! The binary `nigh`; see the library of that name.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    nigh::commands::main()
}
