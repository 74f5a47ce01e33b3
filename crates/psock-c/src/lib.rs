//! psock for C: functions shaped like those of BSD sockets (`include/psock.h` says what each does).
//!
//! A call goes through `call` or a sibling, which turns what went wrong into -1, errno and a sentence.
//! `unsafe` is where C's pointers become Rust's: strings, buffers and `struct sockaddr`
//! (docs/decisions/144).

mod failure;
mod table;

use failure::Failure;
use libc::{c_char, c_int, c_void, size_t, sockaddr, socklen_t, ssize_t};
use nix::{
    errno::Errno,
    sys::socket::{MsgFlags, recv, send},
};
use psock::c::address;
use std::{
    ffi::CStr,
    io::Read,
    net::{Shutdown, SocketAddr},
    os::fd::AsRawFd,
};

/// Runs what a function does; when it fails, errno and the sentence say why.
fn call<T>(failed: T, what: impl FnOnce() -> Result<T, Failure>) -> T {
    what().unwrap_or_else(|failure| {
        failure.tell();
        failed
    })
}

/// A text of the caller.
///
/// # Safety
///
/// `text` is null or a string with a zero at its end that lives as long as the call.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Errno::EFAULT.into());
    }
    // SAFETY: it is not null, and the caller's string.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|error| Failure::new(Errno::EILSEQ, error))
}

/// An IPv4 or IPv6 address of the caller.
///
/// # Safety
///
/// As [`address::read`].
unsafe fn internet(at: *const sockaddr, length: socklen_t) -> Result<SocketAddr, Failure> {
    // SAFETY: the caller's promise.
    let address = unsafe { address::read(at, length) }?;
    address.ok_or_else(|| Failure::new(Errno::EAFNOSUPPORT, "it is no IPv4 or IPv6 address"))
}

/// A descriptor without session.
#[unsafe(no_mangle)]
pub extern "C" fn psock_socket() -> c_int {
    call(-1, table::open)
}

/// Sets an option by name.
///
/// # Safety
///
/// Both texts are strings with a zero at their end, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_setsockopt(
    fd: c_int,
    name: *const c_char,
    value: *const c_char,
) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        // SAFETY: the caller's promise.
        let value = unsafe { text(value) }?;
        table::set(fd, name, value).map(|()| 0)
    })
}

/// An address of this end.
///
/// # Safety
///
/// `at` points to `length` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_bind(fd: c_int, at: *const sockaddr, length: socklen_t) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promise.
        let address = unsafe { internet(at, length) }?;
        table::bind(fd, address).map(|()| 0)
    })
}

/// Opens a session.
///
/// # Safety
///
/// `to` points to `length` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_connect(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    call(-1, || {
        // SAFETY: the caller's promise.
        let to = (!to.is_null()).then(|| unsafe { internet(to, length) }).transpose()?;
        table::connect(fd, to).map(|()| 0)
    })
}

/// Listens.
#[unsafe(no_mangle)]
pub extern "C" fn psock_listen(fd: c_int, backlog: c_int) -> c_int {
    call(-1, || table::listen(fd, backlog).map(|()| 0))
}

/// The next session.
///
/// # Safety
///
/// `length` is null or points to how many bytes can be written at `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_accept(
    fd: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    call(-1, || {
        // Before a session is taken that nobody would get.
        if from.is_null() != length.is_null() {
            return Err(Errno::EFAULT.into());
        }
        let (fd, peer) = table::accept(fd)?;
        // SAFETY: the caller's promise.
        unsafe { address::write(peer, from, length) }?;
        Ok(fd)
    })
}

/// Sends.
///
/// # Safety
///
/// `bytes` points to `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_send(
    fd: c_int,
    bytes: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    call(-1, || {
        let stream = table::stream(fd)?;
        if bytes.is_null() {
            return Err(Errno::EFAULT.into());
        }
        // SAFETY: the caller's promise; not null.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
        // Not the caller's number, which another thread may close, so that it is another file's.
        match send(stream.as_raw_fd(), bytes, MsgFlags::from_bits_retain(flags)) {
            Ok(sent) => Ok(sent.cast_signed()),
            Err(Errno::EPIPE) => Err(match stream.error() {
                Some(error) => Failure::new(Errno::EPIPE, error),
                None => Errno::EPIPE.into(),
            }),
            Err(errno) => Err(errno.into()),
        }
    })
}

/// As [`psock_send`] without flags.
///
/// # Safety
///
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_write(fd: c_int, bytes: *const c_void, length: size_t) -> ssize_t {
    // SAFETY: the caller's promise is the same.
    unsafe { psock_send(fd, bytes, length, 0) }
}

/// Receives.
///
/// # Safety
///
/// `bytes` points to `length` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_recv(
    fd: c_int,
    bytes: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    call(-1, || {
        let stream = table::stream(fd)?;
        if bytes.is_null() {
            return Err(Errno::EFAULT.into());
        }
        // SAFETY: the caller's promise; not null. What the bytes are before does not matter, for they
        // are only written.
        let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.cast::<u8>(), length) };
        match recv(stream.as_raw_fd(), bytes, MsgFlags::from_bits_retain(flags)) {
            Ok(received) if received > 0 || length == 0 => Ok(received.cast_signed()),
            // Is it the end of the stream, or only that of the session?
            Ok(_) | Err(Errno::ECONNRESET) => Ok((&*stream).read(&mut [0])?.cast_signed()),
            Err(errno) => Err(errno.into()),
        }
    })
}

/// As [`psock_recv`] without flags.
///
/// # Safety
///
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_read(fd: c_int, bytes: *mut c_void, length: size_t) -> ssize_t {
    // SAFETY: the caller's promise is the same.
    unsafe { psock_recv(fd, bytes, length, 0) }
}

/// Ends one or both directions.
#[unsafe(no_mangle)]
pub extern "C" fn psock_shutdown(fd: c_int, how: c_int) -> c_int {
    call(-1, || {
        let how = match how {
            libc::SHUT_RD => Shutdown::Read,
            libc::SHUT_WR => Shutdown::Write,
            libc::SHUT_RDWR => Shutdown::Both,
            _ => return Err(Errno::EINVAL.into()),
        };
        table::stream(fd)?.shutdown(how)?;
        Ok(0)
    })
}

/// Ends the session when the peer has everything.
#[unsafe(no_mangle)]
pub extern "C" fn psock_close(fd: c_int) -> c_int {
    call(-1, || {
        if let Some(closed) = table::close(fd)?
            && closed.waits
        {
            closed.stream.finish()?;
        }
        Ok(0)
    })
}

/// Ends the session now.
#[unsafe(no_mangle)]
pub extern "C" fn psock_abort(fd: c_int) -> c_int {
    call(-1, || {
        if let Some(closed) = table::close(fd)? {
            closed.stream.abort();
        }
        Ok(0)
    })
}

/// The peer's address.
///
/// # Safety
///
/// `length` points to how many bytes can be written at `address`, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_getpeername(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    call(-1, || {
        let peer = table::stream(fd)?.peer();
        // SAFETY: the caller's promise.
        unsafe { address::write(peer, address, length) }?;
        Ok(0)
    })
}

/// This end's address.
///
/// # Safety
///
/// As [`psock_getpeername`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_getsockname(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    call(-1, || {
        let local = table::local(fd)?;
        // SAFETY: the caller's promise.
        unsafe { address::write(local, address, length) }?;
        Ok(0)
    })
}

/// What was counted, as JSON.
///
/// # Safety
///
/// `into` points to `size` writable bytes; it may be null where `size` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psock_counters(fd: c_int, into: *mut c_char, size: size_t) -> ssize_t {
    call(-1, || {
        let counters = table::stream(fd)?.counters();
        let json =
            serde_json::to_string(&counters).map_err(|error| Failure::new(Errno::EIO, error))?;
        if size > 0 {
            if into.is_null() {
                return Err(Errno::EFAULT.into());
            }
            let length = json.len().min(size - 1);
            // SAFETY: `length` is less than what the caller has room for and at most what there is.
            unsafe { std::ptr::copy_nonoverlapping(json.as_ptr(), into.cast(), length) };
            // SAFETY: `length` is at most `size` - 1.
            let end = unsafe { into.add(length) };
            // SAFETY: it is within the caller's `size` bytes.
            unsafe { end.write(0) };
        }
        Ok(json.len().cast_signed())
    })
}

/// The sentence of this thread's last failure.
#[unsafe(no_mangle)]
pub extern "C" fn psock_error() -> *const c_char {
    failure::last()
}
