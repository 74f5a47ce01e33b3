//! Attaches an XDP program to an interface by a BPF link: the kernel detaches it when the link's last
//! descriptor is closed, however the process ends.

use libbpf_rs::libbpf_sys;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// Attaches to an interface of the calling thread's network namespace; `mode` is one of
/// `XDP_FLAGS_*_MODE`. The program stays attached for as long as the descriptor is open.
pub(crate) fn attach(program: BorrowedFd<'_>, interface: u32, mode: u32) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        flags: mode,
        ..Default::default()
    };
    // What is no positive int is no interface.
    let target =
        i32::try_from(interface).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    // SAFETY: the options live through the call and say their own size; the other arguments are
    // integers.
    let link = unsafe {
        let program = program.as_raw_fd();
        libbpf_sys::bpf_link_create(program, target, libbpf_sys::BPF_XDP, &raw const options)
    };
    if link < 0 {
        return Err(io::Error::from_raw_os_error(-link));
    }
    // SAFETY: the call succeeded, so this is a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}
