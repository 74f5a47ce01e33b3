//! Whether this test may make namespaces.

use std::io::Write;

/// Whether this process is root and the test can go on.
///
/// A test that needs root begins with `if !testbed::require_root() { return; }`. Without root it
/// says loudly that it was skipped; it writes past the test harness, which would swallow the line.
///
/// # Panics
///
/// When not root and the environment has `CI=true`: in CI nothing may skip.
pub fn require_root() -> bool {
    if nix::unistd::geteuid().is_root() {
        return true;
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{test} needs root, and CI=true allows no skipping: run it as root"
    );
    let _ = writeln!(std::io::stderr(), "SKIPPED: needs root: {test} (run it through `make test`)");
    false
}
