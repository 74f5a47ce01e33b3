//! A program that is nothing but the gate's parsers: for tests of this crate, which do not have `nigh`. Without
//! arguments it is a daemon whose parser is killed.
#![forbid(unsafe_code)]

use gate::parser::{
    link::{Link, Program},
    names::Names,
};
use nix::{
    sys::{
        prctl,
        signal::{Signal, kill},
    },
    unistd::Pid,
};
use std::{error::Error, process::ExitCode, time::Duration};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    match gate::parser::run::main() {
        Some(code) => Ok(code),
        None => restart().map(|()| ExitCode::SUCCESS),
    }
}

/// What a daemon does that has given up its rights: starts a parser, and another one when that is killed.
fn restart() -> Result<(), Box<dyn Error>> {
    prctl::set_no_new_privs()?;
    prctl::set_dumpable(false)?;
    let mut link = Link::<Names>::open(Program::default(), classify::Settings::default())?;
    let first = link.pid().ok_or("no process")?;
    kill(Pid::from_raw(first.try_into()?), Signal::SIGKILL)?;
    while !link.is_ready() || link.pid() == Some(first) {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("{} died, {:?}", link.counts().died, link.confinement());
    Ok(())
}
