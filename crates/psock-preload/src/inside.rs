//! Whether a call comes from the program or from this library.
//!
//! psock makes its connections with the same functions that are replaced here. Its calls must reach the C library:
//! those on its own threads, which have its name, and those that the program's thread makes while it is in one of
//! ours.

use std::{cell::Cell, marker::PhantomData};

/// The name of psock's threads, and of those of this library.
pub(crate) const THREAD: &str = "psock";

#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// This thread has not called yet.
    Unknown,
    /// A thread of the program, in its own code.
    Outside,
    /// In this library.
    Inside,
}

thread_local! {
    // Neither made lazily nor taken down, so that it can be used at any time in a thread's life.
    static PLACE: Cell<Place> = const { Cell::new(Place::Unknown) };
}

/// For as long as it lives, calls of this thread are this library's.
pub(crate) struct Inside(PhantomData<*const ()>);

/// Enters this library; `None` where the caller is inside already.
pub(crate) fn enter() -> Option<Inside> {
    // First of all: what finds out where this thread belongs may call functions that are replaced.
    let before = PLACE.replace(Place::Inside);
    let outside = before == Place::Outside || before == Place::Unknown && !is_ours();
    // Made only then: dropping one leaves this library.
    outside.then(|| Inside(PhantomData))
}

impl Drop for Inside {
    fn drop(&mut self) {
        PLACE.set(Place::Outside);
    }
}

/// Whether this is a thread of psock, by its name; a program's first thread never is.
fn is_ours() -> bool {
    nix::unistd::gettid() != nix::unistd::getpid()
        && nix::sys::prctl::get_name().is_ok_and(|name| name.to_bytes() == THREAD.as_bytes())
}
