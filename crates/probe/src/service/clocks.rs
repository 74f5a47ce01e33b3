//! Keeps the state of this station's clock and of the watched ones in the archive, and gives admission control how
//! good this one's is.

use super::shared::Shared;
use crate::{
    record::{self, Figures, Record},
    station::message::ClockReport,
};
use datapath::clock::unix_ns;
use job::pulse::Beat;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// The name of the test in records of clocks.
const TEST: &str = "clock";
/// How often admission control is updated.
const TELL: Duration = Duration::from_secs(1);

/// Runs until the runtime ends.
pub(super) async fn run(shared: Arc<Shared>, beat: Beat) {
    let mut keep_at = Instant::now();
    loop {
        beat.beat();
        let maximum_error_ns = shared.clock.now_error().nanoseconds;
        shared.host.admission().set_clock(ClockReport { maximum_error_ns });
        if Instant::now() >= keep_at {
            let config = shared.config();
            keep(&shared, config.name(), config.name().to_owned(), shared.clock.state());
            for (address, clock) in shared.clock.servers() {
                keep(&shared, config.name(), address.to_string(), clock);
            }
            keep_at = Instant::now() + config.probe.clock.interval;
        }
        sleep(TELL).await;
    }
}

fn keep(shared: &Shared, from: &str, to: String, clock: record::Clock) {
    shared.archive.put(&Record {
        at_ns: unix_ns().cast_signed(),
        lasted_ns: 0,
        from: from.to_owned(),
        to,
        test: TEST.to_owned(),
        figures: Figures::Clock(clock),
    });
}
