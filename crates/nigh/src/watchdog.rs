//! What the service manager hears while the daemon runs: the health of its jobs, and that it answers.
//!
//! `WATCHDOG=1` is sent each time that every loop of every job has gone round since the last time
//! ([`job::pulse`]), on the daemon's own thread. So when a job or the daemon hangs, the unit's `WatchdogSec` runs
//! out, and systemd kills the daemon and starts it again: its sessions close and neighbours withdraw its routes.

use crate::node::Node;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info};

/// Time from one look to the next.
const LOOK: Duration = Duration::from_secs(1);
/// Looks after which a loop that has not gone round is reported: longer than the longest time between two beats.
const LOOKS: u32 = 2 * job::pulse::LONGEST.as_secs() as u32;

/// Watches until it is aborted.
pub async fn watch(node: &Node) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut shown, mut unanswered) = (String::new(), 0);
    loop {
        looks.tick().await;
        let silent = node.jobs().silent();
        if silent.is_empty() {
            node.notifier().alive();
            if unanswered >= LOOKS {
                info!("all jobs answer again");
            }
            unanswered = 0;
        } else {
            unanswered += 1;
        }
        let silent = silent.join(", ");
        if unanswered == LOOKS {
            error!("no answer from {silent}: the service manager's watchdog is not fed");
        }
        let line =
            if unanswered >= LOOKS { format!("no answer from {silent}") } else { node.summary() };
        if line != shown {
            node.notifier().status(&line);
            shown = line;
        }
    }
}
