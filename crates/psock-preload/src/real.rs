//! The C library's own functions, which those of this library stand in front of.

use libc::{c_char, c_int, c_void, sockaddr, socklen_t};
use nix::errno::Errno;
use std::{
    ffi::CStr,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, Ordering},
};

/// A function that is looked for when it is first needed.
struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(null_mut()) }
    }

    /// The function, or null where there is none.
    fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Relaxed);
        if !found.is_null() {
            return found;
        }
        let name: *const c_char = self.name.as_ptr();
        // SAFETY: the name is a string with a zero at its end.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name) };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// A function of this module that calls the C library's.
macro_rules! next {
    ($visible:vis fn $name:ident($($argument:ident: $type:ty),*)) => {
        $visible unsafe fn $name($($argument: $type),*) -> c_int {
            static NEXT: Next = Next::new(
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("a name has no zero inside"),
                },
            );
            let found = NEXT.get();
            if found.is_null() {
                Errno::ENOSYS.set();
                return -1;
            }
            // SAFETY: POSIX gives the function of this name these arguments and this result.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(found)
            };
            // SAFETY: the caller's promise.
            unsafe { function($($argument),*) }
        }
    };
}

mod unchecked {
    use super::*;

    next!(pub(super) fn listen(fd: c_int, backlog: c_int));
    next!(pub(super) fn close(fd: c_int));
}

next!(pub(crate) fn connect(fd: c_int, address: *const sockaddr, length: socklen_t));
next!(pub(crate) fn accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int));
next!(pub(crate) fn getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t));
next!(pub(crate) fn getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t));

/// listen(2).
pub(crate) fn listen(fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: it takes two numbers; a wrong descriptor is refused.
    unsafe { unchecked::listen(fd, backlog) }
}

/// close(2).
pub(crate) fn close(fd: c_int) -> c_int {
    // SAFETY: it takes a number that the program, or this library for it, gives up.
    unsafe { unchecked::close(fd) }
}
