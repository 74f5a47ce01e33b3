//! What this kernel can do, found out by trying it and never inferred from its version. Nothing of the
//! system is changed by a probe, except that the kernel may load a module. Answers are kept, so what needs a
//! capability must be asked for while it is there.

mod cipher;
mod interface;

pub use crate::ethtool::Timestamps;
pub use crate::load::version;
pub use cipher::{Cannot, cipher};
pub use interface::Interface;

use crate::capabilities::{self, Capability, LOAD};
use crate::shaper::netlink::Netlink;
use libbpf_rs::libbpf_sys::{self, bpf_insn};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage};
use socket2::{Domain, Socket, Type};
use std::fs::{self, OpenOptions};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::LazyLock;
use std::{ffi::c_void, ptr};

/// Something that kernels have or have not.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Its key in JSON.
    pub key: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What nigh uses it for.
    pub used_for: &'static str,
    needs: &'static [Capability],
    probe: fn() -> bool,
}

const RAW: &[Capability] = &[Capability::CAP_NET_RAW];
const ADMIN: &[Capability] = &[Capability::CAP_NET_ADMIN];

/// All that nigh makes use of.
pub const FEATURES: [Feature; 12] = [
    feature("btf", "BTF of the kernel", "kernel functions in mask live, blast", &[], btf),
    feature("jit", "eBPF just-in-time compiler", "all eBPF programs", &LOAD, jit),
    feature("bpf_loop", "bpf_loop", "loops of eBPF programs", &LOAD, bpf_loop),
    feature("ring_buffer", "eBPF ring buffer", "gate, mask live", &LOAD, ring_buffer),
    feature("may_goto", "may_goto", "loops of eBPF programs", &LOAD, may_goto),
    feature("arena", "eBPF arena", "oracle in the driver", &LOAD, arena),
    feature("tcx", "TCX", "gate, mask live", &LOAD, tcx),
    feature("bpf_crypto", "bpf_crypto with ecb(aes)", "mask live", &LOAD, || cipher().is_ok()),
    feature("htb", "HTB", "limits of the gate", ADMIN, htb),
    feature("af_xdp", "AF_XDP", "interfaces in the lab", RAW, af_xdp),
    feature("packet_sockets", "packet sockets", "health of echo, blast, gate", RAW, packet_sockets),
    feature("tap", "TAP devices", "hosts of the lab, mask live", &[], tap),
];

const fn feature(
    key: &'static str,
    name: &'static str,
    used_for: &'static str,
    needs: &'static [Capability],
    probe: fn() -> bool,
) -> Feature {
    Feature { key, name, used_for, needs, probe }
}

impl Feature {
    /// Whether this kernel has it.
    ///
    /// # Errors
    /// The capabilities that this process lacks to find out.
    pub fn probe(&self) -> Result<bool, Vec<Capability>> {
        let missing = match self.needs == LOAD {
            true => capabilities::missing_to_load(),
            false => capabilities::missing(self.needs),
        };
        if missing.is_empty() { Ok((self.probe)()) } else { Err(missing) }
    }
}

/// Whether the kernel has BTF of itself (CONFIG_DEBUG_INFO_BTF).
pub fn btf() -> bool {
    fs::File::open("/sys/kernel/btf/vmlinux").is_ok()
}

/// Whether eBPF programs are compiled to machine code.
pub fn jit() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| {
        let Some(program) = load(&[clear(), exit()]) else { return false };
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut length = size_of_val(&info) as u32;
        let fd = program.as_raw_fd();
        // SAFETY: the kernel writes at most `length` bytes to it.
        let result = unsafe {
            libbpf_sys::bpf_obj_get_info_by_fd(fd, (&raw mut info).cast(), &raw mut length)
        };
        result == 0 && info.jited_prog_len > 0
    });
    *CAN
}

/// Whether programs may call `bpf_loop` (Linux 5.17).
pub fn bpf_loop() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| {
        let (kind, function) = (libbpf_sys::BPF_PROG_TYPE_XDP, libbpf_sys::BPF_FUNC_loop);
        // SAFETY: two numbers and no options.
        unsafe { libbpf_sys::libbpf_probe_bpf_helper(kind, function, ptr::null()) == 1 }
    });
    *CAN
}

/// Whether there are ring buffers between programs and processes (Linux 5.8).
pub fn ring_buffer() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| has_map(libbpf_sys::BPF_MAP_TYPE_RINGBUF));
    *CAN
}

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

/// Whether programs are attached to traffic control by links (Linux 6.6, CONFIG_NET_XGRESS).
pub fn tcx() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| {
        let mut options = libbpf_sys::bpf_prog_query_opts {
            sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        let (loopback, hook) = (1, libbpf_sys::BPF_TCX_INGRESS);
        // SAFETY: the options live through the call and say their own size; the rest are integers.
        let result = unsafe { libbpf_sys::bpf_prog_query_opts(loopback, hook, &raw mut options) };
        // A namespace may be without its loopback interface; where there is no TCX it is EINVAL.
        matches!(-result, 0 | libc::ENODEV)
    });
    *CAN
}

/// Whether packets can wait for their rate (sch_htb).
pub fn htb() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| {
        // Without options it is refused, but only where it is known. Another root is kept.
        let header = TcHeader { index: 1, parent: TcHandle::ROOT, ..TcHeader::default() };
        let message = TcMessage::from_parts(header, vec![TcAttribute::Kind("htb".into())]);
        let message = RouteNetlinkMessage::NewQueueDiscipline(message);
        let asked = Netlink::open()
            .and_then(|mut netlink| netlink.request(message, NLM_F_CREATE | NLM_F_EXCL));
        asked.is_err_and(|error| matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EEXIST)))
    });
    *CAN
}

/// Whether there are AF_XDP sockets (CONFIG_XDP_SOCKETS).
pub fn af_xdp() -> bool {
    Socket::new(Domain::from(libc::AF_XDP), Type::RAW, None).is_ok()
}

/// Whether there are packet sockets (CONFIG_PACKET).
pub fn packet_sockets() -> bool {
    Socket::new(Domain::PACKET, Type::RAW, None).is_ok()
}

/// Whether there are TAP devices for this user (tun.ko).
pub fn tap() -> bool {
    OpenOptions::new().read(true).write(true).open("/dev/net/tun").is_ok()
}

/// Who may load programs: 0 everybody, 1 and 2 those with CAP_BPF; none if the kernel does not say.
pub fn unprivileged_bpf_disabled() -> Option<u8> {
    let text = fs::read_to_string("/proc/sys/kernel/unprivileged_bpf_disabled").ok()?;
    text.trim().parse().ok()
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

#[cfg(test)]
mod tests;
