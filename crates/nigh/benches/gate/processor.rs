//! What the machine's processors did, and a process of them: proc(5).

use crate::Failure;
use std::fs;

/// Ticks of a second in /proc (USER_HZ on all Linux).
const TICKS: f64 = 100.0;

/// Seconds of all processors together since boot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// Programs, the kernel and its interrupts.
    pub(crate) busy: f64,
}

impl Spent {
    /// Until now.
    pub(crate) fn now() -> Result<Self, Failure> {
        let text = fs::read_to_string("/proc/stat")?;
        let line = text.lines().next().ok_or("an empty /proc/stat")?;
        let fields: Vec<f64> =
            line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq
        let at = |index: usize| fields.get(index).copied().unwrap_or_default();
        let busy = at(0) + at(1) + at(2) + at(5) + at(6);
        Ok(Self { busy: busy / TICKS })
    }
}

/// Seconds that a process and its threads have run, in user mode and in the kernel.
pub(crate) fn of_process(pid: u32) -> Result<f64, Failure> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let rest = text.rsplit(") ").next().ok_or("no state in /proc/PID/stat")?;
    let fields: Vec<f64> = rest.split(' ').filter_map(|word| word.parse().ok()).collect();
    // The state is no number; ppid is the first, utime and stime the 11th and 12th.
    let at = |index: usize| fields.get(index).copied().unwrap_or_default();
    Ok((at(10) + at(11)) / TICKS)
}
