//! What keeps a program on an interface: a link of the kernel's, by descriptor and, if pinned, without
//! one; or a filter where the kernel has no such link.

mod clsact;

pub(crate) use clsact::{Filter, Life};

use crate::kernel;
use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{LinkInfo, LinkTypeInfo};
use socket2::{Domain, Socket, Type};
use std::{
    ffi::CString,
    fmt, io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

/// Where a program of the kernel's traffic control is on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    Ingress,
    Egress,
}

impl Hook {
    fn kind(self) -> libbpf_sys::bpf_attach_type {
        match self {
            Self::Ingress => libbpf_sys::BPF_TCX_INGRESS,
            Self::Egress => libbpf_sys::BPF_TCX_EGRESS,
        }
    }
}

/// By what programs get to an interface's hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// Links at TCX (Linux 6.6).
    Tcx,
    /// Filters of a clsact qdisc.
    Clsact,
}

impl HookKind {
    /// The better one of those that the kernel has.
    pub fn of_kernel() -> Self {
        if kernel::tcx() { Self::Tcx } else { Self::Clsact }
    }
}

impl fmt::Display for HookKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcx => "TCX",
            Self::Clsact => "clsact",
        })
    }
}

/// A program on an interface.
#[derive(Debug)]
pub(crate) enum Link {
    /// Goes with its last descriptor, pins included.
    Kernel(OwnedFd),
    Filter(Filter),
}

impl Link {
    /// Attaches a program behind those that are there already. A filter is known by its owner's name;
    /// `life` is a filter's: a kernel's link stays if it is pinned.
    pub(crate) fn attach(
        kind: HookKind,
        program: BorrowedFd<'_>,
        ifindex: u32,
        hook: Hook,
        owner: &str,
        life: Life,
    ) -> io::Result<Self> {
        match kind {
            HookKind::Tcx => attach(program, ifindex, hook).map(Self::Kernel),
            HookKind::Clsact => {
                Filter::attach(program, ifindex, hook, owner, life).map(Self::Filter)
            }
        }
    }

    /// The interface that it is at; 0 if that is gone, or it was taken off.
    pub(crate) fn interface(&self) -> u32 {
        match self {
            Self::Kernel(link) => interface(link),
            Self::Filter(filter) => filter.interface(),
        }
    }

    /// Takes the program off, unless another descriptor or pin keeps it.
    pub(crate) fn remove(self) {
        if let Self::Filter(filter) = &self {
            filter.remove();
        }
    }
}

fn attach(program: BorrowedFd<'_>, ifindex: u32, hook: Hook) -> io::Result<OwnedFd> {
    let options = libbpf_sys::bpf_link_create_opts {
        sz: size_of::<libbpf_sys::bpf_link_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let target = i32::try_from(ifindex).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    let program = program.as_raw_fd();
    // SAFETY: the options live through the call and say their own size; the rest are integers.
    let link =
        unsafe { libbpf_sys::bpf_link_create(program, target, hook.kind(), &raw const options) };
    owned(link)
}

/// Puts another program in a link's place at once: no packet goes without.
pub(crate) fn replace(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let (link, program) = (link.as_raw_fd(), program.as_raw_fd());
    // SAFETY: two descriptors that are open, and no options.
    done(unsafe { libbpf_sys::bpf_link_update(link, program, std::ptr::null()) })
}

/// Keeps a link when its descriptors are closed, until the file is removed.
pub(crate) fn pin(link: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a C string that lives through the call.
    done(unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) })
}

/// Opens a pinned link.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a C string that lives through the call.
    owned(unsafe { libbpf_sys::bpf_obj_get(path.as_ptr()) })
}

/// The interface that a link is at; 0 if that is gone.
pub(crate) fn interface(link: &OwnedFd) -> u32 {
    match LinkInfo::from_fd(link.as_fd()).map(|info| info.info) {
        Ok(LinkTypeInfo::Tcx(tcx)) => tcx.ifindex,
        Ok(LinkTypeInfo::Xdp(xdp)) => xdp.ifindex,
        _ => 0,
    }
}

/// The type of an interface's hardware (linux/if_arp.h), in the calling thread's network namespace.
pub(crate) fn hardware(ifindex: u32) -> io::Result<u16> {
    let name = nix::net::if_::if_indextoname(ifindex)?;
    let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
    // SAFETY: a struct of integers and a union of such, of which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // It is shorter than the field, which so ends with a zero.
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = *from as libc::c_char;
    }
    // SAFETY: the request is of the type that this ioctl takes, and lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has filled in this member.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

fn owned(descriptor: libc::c_int) -> io::Result<OwnedFd> {
    done(descriptor)?;
    // SAFETY: the call succeeded, so this is a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}
