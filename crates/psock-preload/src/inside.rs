//! Whether a call comes from the program or from this library.
//!
//! psock makes its connections with the same functions that are replaced here. Its calls must reach the C library:
//! those on its own threads, those on this library's, and those that the program's thread makes while it is in one of
//! ours.

use std::{cell::Cell, marker::PhantomData};

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
    let outside =
        before == Place::Outside || before == Place::Unknown && !psock::is_protocol_thread();
    // Made only then: dropping one leaves this library.
    outside.then(|| Inside(PhantomData))
}

impl Drop for Inside {
    fn drop(&mut self) {
        PLACE.set(Place::Outside);
    }
}

/// The calling thread is one of this library, for as long as it lives.
pub(crate) fn stay() {
    PLACE.set(Place::Inside);
}
