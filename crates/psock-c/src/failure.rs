//! How a call fails: a number in errno, and a sentence for people.

use nix::errno::Errno;
use psock::{AcceptError, BindError, ConnectError, OptionError, SessionError};
use std::{cell::RefCell, ffi::CString, io};

/// Why a call fails.
#[derive(Debug)]
pub(crate) struct Failure {
    errno: Errno,
    text: String,
}

thread_local! {
    /// The sentence of this thread's last failure.
    static LAST: RefCell<CString> = RefCell::default();
}

impl Failure {
    pub(crate) fn new(errno: Errno, text: impl ToString) -> Self {
        Self { errno, text: text.to_string() }
    }

    /// Leaves errno and the sentence for the caller to find.
    pub(crate) fn tell(self) {
        let bytes =
            self.text.into_bytes().into_iter().filter(|byte| *byte != 0).collect::<Vec<_>>();
        // Without zeros inside it cannot fail.
        let text = CString::new(bytes).unwrap_or_default();
        LAST.with(|last| last.replace(text));
        self.errno.set();
    }
}

/// The sentence of this thread's last failure.
pub(crate) fn last() -> *const libc::c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        Self::new(errno, errno.desc())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let errno = match (error.raw_os_error(), error.kind()) {
            (Some(number), _) => Errno::from_raw(number),
            (None, io::ErrorKind::TimedOut) => Errno::ETIMEDOUT,
            (None, io::ErrorKind::ConnectionReset) => Errno::ECONNRESET,
            (None, io::ErrorKind::ConnectionAborted) => Errno::ECONNABORTED,
            (None, io::ErrorKind::ConnectionRefused) => Errno::ECONNREFUSED,
            (None, io::ErrorKind::AddrInUse) => Errno::EADDRINUSE,
            (None, io::ErrorKind::AddrNotAvailable) => Errno::EADDRNOTAVAIL,
            (None, io::ErrorKind::HostUnreachable) => Errno::EHOSTUNREACH,
            (None, io::ErrorKind::NetworkUnreachable) => Errno::ENETUNREACH,
            (None, io::ErrorKind::PermissionDenied) => Errno::EACCES,
            (None, io::ErrorKind::WouldBlock) => Errno::EAGAIN,
            (None, io::ErrorKind::BrokenPipe) => Errno::EPIPE,
            (None, io::ErrorKind::InvalidInput) => Errno::EINVAL,
            (None, io::ErrorKind::InvalidData) => Errno::EPROTO,
            _ => Errno::EIO,
        };
        Self::new(errno, error)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        io::Error::from(error).into()
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        io::Error::from(error).into()
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        io::Error::from(error).into()
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        io::Error::from(error).into()
    }
}

impl From<OptionError> for Failure {
    fn from(error: OptionError) -> Self {
        let errno = match &error {
            OptionError::Unknown(_) => Errno::ENOPROTOOPT,
            OptionError::Key(_) => Errno::EACCES,
            _ => Errno::EINVAL,
        };
        Self::new(errno, error)
    }
}
