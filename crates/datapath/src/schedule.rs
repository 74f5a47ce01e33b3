//! How soon the calling thread gets a core when it wakes: sched(7), sched_setattr(2).

use nix::libc;
use std::{io, mem, time::Duration};

/// Sets how long the calling thread runs at a stretch while others want its core. Its share of the
/// core stays the same. A thread with a shorter slice than the one that runs takes the core over when
/// it wakes (since Linux 6.12; before, nothing changes).
///
/// # Errors
/// When the kernel refuses.
pub fn set_slice(slice: Duration) -> io::Result<()> {
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: all zeros is a valid value of it: numbers only.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes; thread 0 is the calling one.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    attributes.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the kernel reads as many bytes as the attributes say they have.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_a_tenth_of_a_millisecond_is_taken() {
        set_slice(Duration::from_micros(100)).unwrap();
    }
}
