//! What this kernel can do, found out by trying it and never inferred from its version. Answers are kept, so
//! what needs a capability must be asked for while it is there.

mod cipher;

pub use cipher::{Cannot, cipher};

use libbpf_rs::libbpf_sys::{self, bpf_insn};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::sync::LazyLock;
use std::{ffi::c_void, ptr};

/// Whether there is memory that programs and processes share by pointers (Linux 6.9).
pub fn arena() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| has_map(libbpf_sys::BPF_MAP_TYPE_ARENA));
    *CAN
}

/// Whether there are loops that the kernel itself ends (Linux 6.9).
pub fn may_goto() -> bool {
    const BPF_JCOND: u32 = 0xe0;
    static CAN: LazyLock<bool> = LazyLock::new(|| {
        let jump = instruction(libbpf_sys::BPF_JMP | BPF_JCOND, 1);
        load(&[clear(), jump, clear(), exit()]).is_some()
    });
    *CAN
}

/// Whether programs can be attached at TCX, which takes no qdisc. Asking takes CAP_NET_ADMIN; without it
/// the answer is no.
pub fn tcx() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| {
        let mut options = libbpf_sys::bpf_prog_query_opts {
            sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        // No interface has this index: who knows the hook looks for the interface.
        let nowhere = i32::MAX;
        // SAFETY: the options live through the call and say their own size; the rest are integers.
        let result = unsafe {
            let hook = libbpf_sys::BPF_TCX_INGRESS;
            libbpf_sys::bpf_prog_query_opts(nowhere, hook, &raw mut options)
        };
        result == -libc::ENODEV
    });
    *CAN
}

fn has_map(kind: libbpf_sys::bpf_map_type) -> bool {
    // SAFETY: a number and no options.
    unsafe { libbpf_sys::libbpf_probe_bpf_map_type(kind, ptr::null()) == 1 }
}

/// An instruction on register 0.
fn instruction(code: u32, off: i16) -> bpf_insn {
    bpf_insn { code: code as u8, off, ..Default::default() }
}

/// `r0 = 0`
fn clear() -> bpf_insn {
    instruction(libbpf_sys::BPF_ALU64 | libbpf_sys::BPF_MOV | libbpf_sys::BPF_K, 0)
}

fn exit() -> bpf_insn {
    instruction(libbpf_sys::BPF_JMP | libbpf_sys::BPF_EXIT, 0)
}

/// Loads an XDP program, for as long as the descriptor is open.
fn load(instructions: &[bpf_insn]) -> Option<OwnedFd> {
    // SAFETY: the licence and the instructions live through the call, and there are no options.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_XDP,
            ptr::null(),
            c"GPL".as_ptr(),
            instructions.as_ptr(),
            instructions.len() as libbpf_sys::size_t,
            ptr::null_mut::<c_void>().cast(),
        )
    };
    // SAFETY: the call succeeded, so this is a new descriptor that nobody else owns.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
