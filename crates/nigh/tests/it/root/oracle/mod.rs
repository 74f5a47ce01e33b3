//! The oracle as an operator runs it, in namespaces: what clients get, what the console changes, how
//! files are read again, and how it starts and ends.

mod console;
mod distant;
mod driver;
mod feeds;
mod life;
mod queries;
pub(super) mod stage;
