//! The engine as its shell sees it: frames in, time, frames out.

mod answers;
mod capture;
mod carry;
mod changes;
mod congestion;
mod ecmp;
mod random;
mod table;
mod travel;
mod wires;
