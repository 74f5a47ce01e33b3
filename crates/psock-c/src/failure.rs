//! How a call fails: a number in errno, and a sentence for people.

use nix::errno::Errno;
use psock::{AcceptError, BindError, ConnectError, OptionError, SessionError, c::errno};
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
        Self::new(errno(&error), error)
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
