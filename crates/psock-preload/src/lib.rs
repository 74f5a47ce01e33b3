//! A library for LD_PRELOAD that lets an unmodified program use psock (docs/psock.md).
//!
//! The program keeps its TCP sockets. A connection to one of the configured paths is opened as a
//! session, and the program's own socket is connected to a socket of this library over loopback, which
//! is spliced with the session; at the accepting end the listening socket is one on loopback, to which
//! this library connects for each session that comes. So options, poll(2), dup(2), fork(2), passing to a child
//! and everything else that programs do with sockets are the kernel's.
//!
//! Only what must be is put in the place of the C library's functions, all of it in this file: connect,
//! listen, accept, accept4, getpeername, getsockname and close. What is none of the configured paths and
//! ports goes to the C library unchanged, and so does what this library and psock do themselves
//! (`inside`).
//!
//! `pairs` is the memory of which socket belongs to which session; it is shared with the children of
//! fork(2), keyed by loopback ports.

mod call;
mod connect;
mod inside;
mod listen;
mod live;
mod names;
mod pairs;
mod real;
mod setup;

use call::Call;
use libc::{c_int, sockaddr, socklen_t};
use psock::c::{address, errno};
use std::io;

/// Decides about a call and does it, unless it comes from this library itself; `real` is the C library's.
fn call(decide: impl FnOnce() -> io::Result<Call>, real: impl FnOnce() -> c_int) -> c_int {
    let Some(_inside) = inside::enter() else { return real() };
    match decide() {
        Ok(Call::Pass) => real(),
        Ok(Call::Done(result)) => result,
        Err(error) => {
            setup::explain(&error);
            errno(&error).set();
            -1
        }
    }
}

/// connect(2): a session where the address is that of a path.
///
/// # Safety
///
/// As the C library's: `address` points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    let decide = || match unsafe { address::read(address, length) } {
        Ok(Some(to)) => connect::connect(fd, to),
        _ => Ok(Call::Pass),
    };
    // SAFETY: the caller's arguments.
    call(decide, || unsafe { real::connect(fd, address, length) })
}

/// listen(2): takes sessions where the port is a configured one.
#[unsafe(no_mangle)]
pub extern "C" fn listen(fd: c_int, backlog: c_int) -> c_int {
    call(|| listen::listen(fd, backlog), || real::listen(fd, backlog))
}

/// accept(2): see [`accept4`].
///
/// # Safety
///
/// As the C library's: `length` is null or points to how many bytes can be written at `address`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise is the same.
    unsafe { accept4(fd, address, length, 0) }
}

/// accept4(2): the next session's socket, with the peer's real address.
///
/// # Safety
///
/// As [`accept`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    let decide = || {
        let Some((socket, peer)) = listen::accept(fd, flags)? else { return Ok(Call::Pass) };
        // SAFETY: the caller's promise.
        match unsafe { address::write(peer, address, length) } {
            Ok(()) => Ok(Call::Done(socket)),
            Err(error) => {
                real::close(socket);
                Err(error)
            }
        }
    };
    // SAFETY: the caller's arguments.
    call(decide, || unsafe { real::accept4(fd, address, length, flags) })
}

/// getpeername(2): the peer's real address.
///
/// # Safety
///
/// As [`accept`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let decide = || {
        let Some(peer) = names::peer(fd) else { return Ok(Call::Pass) };
        // SAFETY: the caller's promise.
        unsafe { address::write(peer, address, length) }.map(|()| Call::Done(0))
    };
    // SAFETY: the caller's arguments.
    call(decide, || unsafe { real::getpeername(fd, address, length) })
}

/// getsockname(2): this end's real address.
///
/// # Safety
///
/// As [`accept`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let decide = || {
        let Some(local) = names::local(fd) else { return Ok(Call::Pass) };
        // SAFETY: the caller's promise.
        unsafe { address::write(local, address, length) }.map(|()| Call::Done(0))
    };
    // SAFETY: the caller's arguments.
    call(decide, || unsafe { real::getsockname(fd, address, length) })
}

/// close(2): of a listening socket it ends the taking of sessions as well.
#[unsafe(no_mangle)]
pub extern "C" fn close(fd: c_int) -> c_int {
    if listen::any() {
        let decide = || {
            listen::closing(fd);
            Ok(Call::Pass)
        };
        return call(decide, || real::close(fd));
    }
    real::close(fd)
}
