//! Metrics in the OpenMetrics text form, which Prometheus reads.
//!
//! Everything is read at the scrape: the jobs' own counters, and the process's from /proc.

use crate::node::Node;
use job::Metrics;
use std::{fmt, sync::Arc};

/// The content type of [`render`]'s text (OpenMetrics 1.0).
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of `node`.
///
/// # Errors
///
/// A metric did not format, which is a mistake in the program.
pub fn render(node: &Arc<Node>) -> Result<String, fmt::Error> {
    let node = node.clone();
    job::metrics::text(move |metrics| {
        let facts = [("version", env!("CARGO_PKG_VERSION")), ("node", node.name())];
        metrics.info("nigh_build", "What runs here", &facts)?;
        let uptime = node.uptime().as_secs_f64();
        metrics.gauge("nigh_uptime_seconds", "Time since the start", uptime)?;
        let healthy = i64::from(node.jobs().problems().is_empty());
        metrics.gauge("nigh_healthy", "1 when no job has a problem", healthy)?;
        let drained = i64::from(node.drained());
        metrics.gauge("nigh_drained", "1 when the operator drained the node", drained)?;
        if let Some(process) = Process::read() {
            process.collect(metrics)?;
        }
        node.jobs().collect(metrics)
    })
}

/// What the kernel counts for this process (proc_pid_stat(5)), under the usual names.
struct Process {
    cpu_seconds: f64,
    threads: u64,
    resident_bytes: u64,
    open_files: u64,
}

impl Process {
    /// Reads /proc/self; `None` where it is not mounted.
    fn read() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let open_files = std::fs::read_dir("/proc/self/fd").ok()?.count() as u64;
        Self::parse(&stat, open_files)
    }

    /// Reads a line of /proc/PID/stat. Its second field, the name, may hold spaces and brackets.
    fn parse(stat: &str, open_files: u64) -> Option<Self> {
        // USER_HZ is 100 and pages have 4 KiB on every target of this program.
        const TICKS: f64 = 100.0;
        const PAGE: u64 = 4096;
        let fields: Vec<u64> = stat
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        // Field 3 of the manual page is index 0 here.
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) as f64 / TICKS,
            threads: field(20)?,
            resident_bytes: field(24)? * PAGE,
            open_files,
        })
    }

    fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        metrics.counter("process_cpu_seconds", "CPU time, user and system", self.cpu_seconds)?;
        for (name, help, value) in [
            ("process_threads", "Threads", self.threads),
            ("process_resident_memory_bytes", "Memory in use", self.resident_bytes),
            ("process_open_fds", "Open file descriptors", self.open_files),
        ] {
            metrics.gauge(name, help, value as f64)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 1000 8192000 \
                    512 18446744073709551615 1 1 0";
        let process = Process::parse(stat, 9).unwrap();
        assert_eq!(process.cpu_seconds, 3.0);
        assert_eq!(process.threads, 3);
        assert_eq!(process.resident_bytes, 512 * 4096);
        assert_eq!(process.open_files, 9);
    }
}
