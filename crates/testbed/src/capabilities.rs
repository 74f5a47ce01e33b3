//! What the threads of a process may still do.

use std::{collections::BTreeMap, fs};

/// CAP_NET_ADMIN and CAP_NET_RAW (linux/capability.h): what a daemon keeps at the most.
pub const KEPT: u64 = 1 << 12 | 1 << 13;

/// Checks that no thread of a process has more than [`KEPT`], can get more, or passes any on. Gives the
/// names of the threads and what they have, effective or permitted.
///
/// # Panics
/// When a thread has more, or the process is gone.
pub fn few_capabilities(pid: u32) -> BTreeMap<String, u64> {
    let mut threads = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs") {
        let task = task.expect("its threads can be listed").path();
        // A thread that nobody wants any more may end meanwhile.
        let Ok(status) = fs::read_to_string(task.join("status")) else { continue };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.expect("the kernel tells it").trim()
        };
        let name = field("Name:");
        let set = |set| u64::from_str_radix(field(set), 16).expect("it is hexadecimal");
        let has = set("CapEff:") | set("CapPrm:");
        assert_eq!(has & !KEPT, 0, "effective or permitted of thread {name}");
        for more in ["CapInh:", "CapBnd:", "CapAmb:"] {
            assert_eq!(set(more), 0, "{more} of thread {name}");
        }
        assert_eq!(field("NoNewPrivs:"), "1", "thread {name}");
        threads.insert(name.to_owned(), has);
    }
    threads
}
