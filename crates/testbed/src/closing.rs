//! The end of everything at once, for programs that are interrupted.
//!
//! Guards take away what they hold when they are dropped, but a signal drops nothing. [`close`] does
//! it from outside, whatever the other threads are doing: first it forbids anything new, then it
//! removes what carries this process's number. Threads that still work find their programs killed and
//! get errors.

use crate::{folder, lab, namespace, permit};

/// Ends all labs of this process, removes all its namespaces, what runs in them, and its temporary
/// files. From now on nothing new can be started.
pub fn close() {
    permit::refuse_all();
    lab::end_all();
    namespace::remove_of(|owner| owner == std::process::id());
    folder::remove_of(|owner| owner == std::process::id());
    // A gate that was killed leaves its maps to the next one; there is none in a namespace that is gone.
    datapath::gate::purge();
}
