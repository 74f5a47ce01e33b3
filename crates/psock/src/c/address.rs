//! Addresses as C has them: `struct sockaddr` with its length beside it.
#![allow(unsafe_code)]

use libc::{sockaddr, sockaddr_storage, socklen_t};
use socket2::SockAddr;
use std::{io, net::SocketAddr};

/// Reads the address that a caller points at; of other families than IPv4 and IPv6 there is none.
///
/// # Errors
///
/// `EFAULT` for a null pointer, `EINVAL` for an impossible length.
///
/// # Safety
///
/// `address` is null or points to `length` readable bytes.
pub unsafe fn read(address: *const sockaddr, length: socklen_t) -> io::Result<Option<SocketAddr>> {
    let room = size_of::<sockaddr_storage>();
    let bytes = length as usize;
    if address.is_null() {
        return Err(io::Error::from_raw_os_error(libc::EFAULT));
    }
    if bytes > room || bytes < size_of::<libc::sa_family_t>() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let fill = |storage: *mut socket2::SockAddrStorage, filled: *mut socklen_t| {
        // SAFETY: the caller's `bytes` bytes are readable, the storage takes `room` of them, which is
        // at least as much and was zeroed by `try_init`.
        unsafe { std::ptr::copy_nonoverlapping(address.cast::<u8>(), storage.cast(), bytes) };
        // SAFETY: `try_init` points at a length of its own.
        unsafe { filled.write(length) };
        Ok(())
    };
    // SAFETY: `fill` wrote an address of that length, and what it did not write is zero, which is
    // valid for every family.
    let ((), address) = unsafe { SockAddr::try_init(fill) }?;
    let least = match i32::from(address.family()) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
        _ => return Ok(None),
    };
    if bytes < least {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(address.as_socket())
}

/// Writes an address where a caller wants it, cut to the room that is there, as accept(2) does.
///
/// # Errors
///
/// `EFAULT` where only one of the two pointers is null.
///
/// # Safety
///
/// `length` is null or points to how many bytes can be written at `address`.
pub unsafe fn write(
    from: SocketAddr,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> io::Result<()> {
    if address.is_null() && length.is_null() {
        return Ok(());
    }
    if address.is_null() || length.is_null() {
        return Err(io::Error::from_raw_os_error(libc::EFAULT));
    }
    let from = SockAddr::from(from);
    // SAFETY: the caller points at a length.
    let room = unsafe { length.read() };
    let bytes = room.min(from.len()) as usize;
    // SAFETY: `bytes` is at most what the caller has room for and at most what the address has.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr().cast::<u8>(), address.cast(), bytes) };
    // SAFETY: the caller points at a length.
    unsafe { length.write(from.len()) };
    Ok(())
}
