//! What `c/shim.h` declares.

use std::ffi::{c_char, c_int, c_void};

/// What nDPI says of a flow: `struct nigh_ndpi_answer`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Answer {
    pub(crate) master: u16,
    pub(crate) app: u16,
    pub(crate) category: u8,
    pub(crate) confidence: u8,
    pub(crate) more: u8,
}

unsafe extern "C" {
    pub(crate) fn nigh_ndpi_check() -> c_int;
    pub(crate) fn nigh_ndpi_open() -> *mut c_void;
    pub(crate) fn nigh_ndpi_close(detector: *mut c_void);
    pub(crate) fn nigh_ndpi_flow_new() -> *mut c_void;
    pub(crate) fn nigh_ndpi_flow_free(flow: *mut c_void);
    pub(crate) fn nigh_ndpi_packet(
        detector: *mut c_void,
        flow: *mut c_void,
        packet: *mut u8,
        length: u16,
        at_ms: u64,
        answer: *mut Answer,
    );
    pub(crate) fn nigh_ndpi_give_up(detector: *mut c_void, flow: *mut c_void, answer: *mut Answer);
    pub(crate) fn nigh_ndpi_host(
        detector: *mut c_void,
        name: *mut c_char,
        length: u32,
        answer: *mut Answer,
    );
    pub(crate) fn nigh_ndpi_flow_host(flow: *const c_void, size: *mut usize) -> *const c_char;
    pub(crate) fn nigh_ndpi_name(detector: *mut c_void, protocol: u16) -> *const c_char;
    pub(crate) fn nigh_ndpi_count(detector: *mut c_void) -> u32;
}
