//! What the C library and the library for unmodified programs share (feature `c`).

pub mod address;

use nix::errno::Errno;
use std::io;

/// The number by which C programs know an error.
pub fn errno(error: &io::Error) -> Errno {
    use io::ErrorKind as Kind;
    match (error.raw_os_error(), error.kind()) {
        (Some(number), _) => Errno::from_raw(number),
        (None, Kind::TimedOut) => Errno::ETIMEDOUT,
        (None, Kind::ConnectionReset) => Errno::ECONNRESET,
        (None, Kind::ConnectionAborted) => Errno::ECONNABORTED,
        (None, Kind::ConnectionRefused) => Errno::ECONNREFUSED,
        (None, Kind::AddrInUse) => Errno::EADDRINUSE,
        (None, Kind::AddrNotAvailable) => Errno::EADDRNOTAVAIL,
        (None, Kind::HostUnreachable) => Errno::EHOSTUNREACH,
        (None, Kind::NetworkUnreachable) => Errno::ENETUNREACH,
        (None, Kind::NotConnected) => Errno::ENOTCONN,
        (None, Kind::PermissionDenied) => Errno::EACCES,
        (None, Kind::WouldBlock) => Errno::EAGAIN,
        (None, Kind::BrokenPipe) => Errno::EPIPE,
        (None, Kind::InvalidInput) => Errno::EINVAL,
        (None, Kind::InvalidData) => Errno::EPROTO,
        _ => Errno::EIO,
    }
}
