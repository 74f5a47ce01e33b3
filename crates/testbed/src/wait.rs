//! Waiting for something to become true, instead of sleeping for as long as it usually takes.

use crate::Error;
use std::time::{Duration, Instant};

/// Time between two looks at the condition.
const POLL: Duration = Duration::from_millis(5);

/// How long tests wait for what must come. It is far beyond what anything takes, since other tests and
/// builds may have the processors.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Looks again and again until `condition` holds and returns how long that took.
///
/// # Errors
///
/// Names `what` when the condition does not hold after `timeout`.
pub fn wait_until(
    what: &str,
    timeout: Duration,
    mut condition: impl FnMut() -> bool,
) -> Result<Duration, Error> {
    let begin = Instant::now();
    loop {
        if condition() {
            return Ok(begin.elapsed());
        }
        if begin.elapsed() >= timeout {
            return Err(Error::new(
                format!("waiting for {what}"),
                format!("not so after {timeout:?}"),
            ));
        }
        std::thread::sleep(POLL);
    }
}
