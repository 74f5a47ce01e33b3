//! The engine as its shell sees it: frames in, time, frames out.

mod carry;
mod table;
