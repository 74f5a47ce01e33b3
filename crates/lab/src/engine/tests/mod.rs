//! The engine as its shell sees it: frames in, time, frames out.

mod answers;
mod carry;
mod changes;
mod random;
mod table;
mod travel;
mod wires;
