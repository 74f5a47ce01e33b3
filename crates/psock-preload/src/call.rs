//! The result of a call that the program makes.

use libc::c_int;

/// What is done about a call.
pub(crate) enum Call {
    /// It is the C library's.
    Pass,
    /// It is done, with this result.
    Done(c_int),
}
