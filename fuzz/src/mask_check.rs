//! Any bytes as a capture against itself, which leaks whatever it has, and against itself masked by `strict`:
//! there is a report or an error.

use mask::{check::check, file::Job, key, machine::MappingName, policy::Policy};
use std::sync::LazyLock;

static JOB: LazyLock<Job> = LazyLock::new(|| {
    let policy = Policy::shipped("strict").expect("a policy");
    Job::new(&policy, key::fresh().expect("a key"), MappingName::CryptoPan).expect("a job")
});

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Ok(report) = check(data, data) else { return };
    assert_eq!(report.packets, report.masked);
    assert!(report.leaks || report.ipv6 + report.macs + report.runs == 0, "{report}");
    let mut masked = Vec::new();
    JOB.run(data, &mut masked, 1).expect("a capture that can be read");
    let report = check(data, &masked[..]).expect("two captures");
    assert!(!report.to_string().is_empty());
}
