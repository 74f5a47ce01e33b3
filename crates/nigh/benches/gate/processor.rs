//! What the machine's processors did, and a process of them: proc(5).

use crate::Failure;
use std::{fs, time::Instant};

/// Ticks of a second in /proc (USER_HZ on all Linux).
const TICKS: f64 = 100.0;

/// Until when the processors' work is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    at: Instant,
    processors: f64,
    /// Seconds of all processors together.
    idle: f64,
}

impl Work {
    /// From now on.
    ///
    /// What is not idle is busy: the kernel knows its idle time to the microsecond, where a tick does
    /// not interrupt it, while it counts its work by whole ticks, which misses work that is done in
    /// short pieces between them.
    pub(crate) fn begin() -> Result<Self, Failure> {
        let text = fs::read_to_string("/proc/stat")?;
        let mut lines = text.lines();
        let line = lines.next().ok_or("an empty /proc/stat")?;
        let fields: Vec<f64> =
            line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; what was stolen did not work for us.
        let at = |index: usize| fields.get(index).copied().unwrap_or_default();
        let processors = lines.take_while(|line| line.starts_with("cpu")).count() as f64;
        Ok(Self { at: Instant::now(), processors, idle: (at(3) + at(4) + at(7)) / TICKS })
    }

    /// Seconds since then, and processor seconds of them in which something ran.
    pub(crate) fn until_now(self) -> Result<(f64, f64), Failure> {
        let now = Self::begin()?;
        let seconds = (now.at - self.at).as_secs_f64();
        Ok((seconds, (seconds * self.processors - (now.idle - self.idle)).max(0.0)))
    }
}

/// Seconds that a process and its threads have run, in user mode and in the kernel.
pub(crate) fn of_process(pid: u32) -> Result<f64, Failure> {
    let mut nanoseconds = 0.0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // The time of a thread that ends meanwhile is lost.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let first = text.split_whitespace().next().ok_or("an empty schedstat")?;
        nanoseconds += first.parse::<f64>()?;
    }
    Ok(nanoseconds / 1e9)
}

/// The kernel's threads that receive from an interface whose work was put into threads.
pub(crate) fn receiving(interface: &str) -> Result<Vec<u32>, Failure> {
    let begin = format!("napi/{interface}-");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.starts_with(&begin) {
            found.push(pid);
        }
    }
    Ok(found)
}
