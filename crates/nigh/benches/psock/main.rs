//! What psock makes of several paths, in one run: `make bench-psock`.
//!
//! - 155 and 620 Mbit/s, the two paths of *Psock Parallel Socket Library* (CESNET, 2005);
//! - 620 and 20 Mbit/s, where 300 ms of packets can wait on the slow one;
//! - twice 310 Mbit/s with 0.1 % loss, and with a foreign TCP stream on one for a while, as there;
//! - one of two paths cut in the middle: how long the receiving application waits;
//! - 10 GB over four paths, two of which are cut and returned, hashed at both ends.
//!
//! psock is encrypted everywhere. Beside it, in the same minutes, through the same lab, with the same
//! programs at both ends: TCP on each path alone and the kernel's MPTCP over all. Rates are what the
//! receiving application reads; it compares each byte with what was sent. `PSOCK_PARTS=unequal,cut` in
//! the environment measures only those parts. Nothing here fails for being slow.
#![forbid(unsafe_code)]

mod child;
mod content;
mod parts;
mod scenes;
mod transfer;

use std::error::Error;
use testbed::Figures;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The program that runs the lab.
pub(crate) const NIGH: &str = env!("CARGO_BIN_EXE_nigh");

type Part = fn(&mut Figures) -> Result<(), Failure>;

/// The parts by name.
const PARTS: [(&str, Part); 6] = [
    ("unequal", parts::unequal),
    ("swollen", parts::swollen),
    ("lossy", parts::lossy),
    ("crossed", parts::crossed),
    ("cut", parts::cut),
    ("four", parts::four),
];

fn main() -> Result<(), Failure> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(child::CHILD) {
        return child::run(&words.next().ok_or("no task")?);
    }
    testbed::need_root();
    let wanted = std::env::var("PSOCK_PARTS").ok();
    let mut figures = Figures::new("psock");
    for (name, part) in PARTS {
        if wanted.as_ref().is_none_or(|wanted| wanted.split(',').any(|one| one == name)) {
            part(&mut figures)?;
        }
    }
    figures.write()?;
    Ok(())
}
