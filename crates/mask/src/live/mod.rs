//! What masks live traffic in user space, beside the kernel's engine.
//!
//! ```text
//! interface -> engine in the kernel: filter, mask -> ring -> output: files, a pipe, a TAP device
//! ```

pub mod filter;
pub mod options;
pub mod output;
