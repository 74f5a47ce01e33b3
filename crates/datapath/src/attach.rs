//! Attaching a program to an interface, natively or generically, and what can prevent it.

use crate::{
    capabilities,
    load::{Denied, version},
    xdp_link,
};
use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{LinkInfo, LinkTypeInfo};
use serde::Serialize;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachMode {
    /// In the driver, before the kernel has made anything of the frame.
    Native,
    /// In the kernel's receive path, for drivers without XDP.
    Generic,
}

impl AttachMode {
    /// `native` or `generic`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

impl std::fmt::Display for AttachMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The program could not be attached to an interface.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such interface.
    #[error("there is no interface with index {ifindex} in this network namespace")]
    NoInterface {
        /// The interface.
        ifindex: u32,
    },
    /// Something else is attached there.
    #[error(
        "another XDP program is attached to interface {ifindex}; find it with `bpftool net` and detach it with `ip link set dev NAME xdp off`, or stop the process that holds it"
    )]
    Busy {
        /// The interface.
        ifindex: u32,
    },
    /// The driver cannot run XDP programs.
    #[error(
        "the driver of interface {ifindex} cannot run XDP programs in {mode} mode; try the other mode"
    )]
    Unsupported {
        /// The interface.
        ifindex: u32,
        /// What was asked for.
        mode: AttachMode,
    },
    /// The driver can, but not as the interface is set up.
    #[error(
        "the driver of interface {ifindex} refuses the program in {mode} mode as the interface is set up ({source}); usual reasons are an MTU too large for one page (try 3,400 or less), receive offloads such as LRO, or too few queues; `mode = \"generic\"` works in any case"
    )]
    SetUp {
        /// The interface.
        ifindex: u32,
        /// What was asked for.
        mode: AttachMode,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The program is not loaded.
    #[error(
        "this kernel has no {lacks}, which the XDP program needs; use a later kernel, or `mode = \"auto\"` to do without the program"
    )]
    Lacks {
        /// What the kernel has not.
        lacks: &'static str,
    },
    /// The process lacks the rights.
    #[error("this process may not attach programs to interface {ifindex}: {why}")]
    NotPermitted {
        /// The interface.
        ifindex: u32,
        /// Which rights.
        why: Denied,
    },
    /// Anything else.
    #[error("cannot attach to interface {ifindex} in {mode} mode: {source} (Linux {kernel})", kernel = version())]
    Other {
        /// The interface.
        ifindex: u32,
        /// What was asked for.
        mode: AttachMode,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// The program on one interface, for as long as this lives.
#[derive(Debug)]
pub struct Attachment {
    link: OwnedFd,
    ifindex: u32,
    mode: AttachMode,
}

impl Attachment {
    /// The interface's index.
    pub fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// Where the program runs.
    pub fn mode(&self) -> AttachMode {
        self.mode
    }

    /// Is the program still on the interface? No after the interface was deleted or somebody
    /// detached the link.
    pub fn is_attached(&self) -> bool {
        match LinkInfo::from_fd(self.link.as_fd()).map(|info| info.info) {
            Ok(LinkTypeInfo::Xdp(xdp)) => xdp.ifindex == self.ifindex,
            _ => false,
        }
    }

    /// Detaches the program; the same as dropping.
    pub fn detach(self) {}
}

/// Attaches an XDP program to an interface of the calling thread's network namespace.
pub(crate) fn attach(
    program: BorrowedFd<'_>,
    ifindex: u32,
    mode: AttachMode,
) -> Result<Attachment, AttachError> {
    let flags = match mode {
        AttachMode::Native => libbpf_sys::XDP_FLAGS_DRV_MODE,
        AttachMode::Generic => libbpf_sys::XDP_FLAGS_SKB_MODE,
    };
    let link = xdp_link::attach(program, ifindex, flags)
        .map_err(|source| attach_error(ifindex, mode, source))?;
    Ok(Attachment { link, ifindex, mode })
}

fn attach_error(ifindex: u32, mode: AttachMode, source: io::Error) -> AttachError {
    // A link to an interface that is not there is an invalid argument to the kernel. (The function
    // returns an empty name instead of its error.)
    let exists = nix::net::if_::if_indextoname(ifindex).is_ok_and(|name| !name.is_empty());
    match source.raw_os_error() {
        Some(libc::ENODEV) => AttachError::NoInterface { ifindex },
        Some(libc::EINVAL) if !exists => AttachError::NoInterface { ifindex },
        Some(libc::EBUSY | libc::EEXIST) => AttachError::Busy { ifindex },
        Some(libc::EOPNOTSUPP) => AttachError::Unsupported { ifindex, mode },
        Some(libc::EPERM | libc::EACCES) => {
            let why = Denied::now(&capabilities::missing_to_load());
            AttachError::NotPermitted { ifindex, why }
        }
        Some(libc::EINVAL | libc::ERANGE | libc::E2BIG) if mode == AttachMode::Native => {
            AttachError::SetUp { ifindex, mode, source }
        }
        _ => AttachError::Other { ifindex, mode, source },
    }
}
