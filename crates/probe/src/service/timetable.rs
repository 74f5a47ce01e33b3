//! Runs the tests of the timetable at their times, and gives admission control what is planned.

use super::{run, shared::Shared, spec::Job};
use crate::{
    config::Config,
    schedule::{
        Plan, Step,
        jobs::{self, Planned},
        plan::Ahead,
    },
    station::{message::Slot, reservations},
};
use datapath::clock::unix_ns;
use job::pulse::{Beat, LONGEST};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::sleep;
use tracing::{debug, warn};

/// How far ahead is looked, beyond the longest test.
const AHEAD: Duration = Duration::from_secs(60);
/// The longest time between two looks at the timetable.
const LOOK: Duration = LONGEST;

/// The timetable of one configuration.
struct Timetable {
    config: Arc<Config>,
    jobs: Vec<Planned>,
    ahead: Ahead,
}

impl Timetable {
    fn new(config: Arc<Config>) -> Self {
        let jobs = jobs::jobs(&config.probe);
        let plan = Plan::new(jobs.iter().map(|planned| planned.job.clone()).collect(), unix_ns());
        Self { config, jobs, ahead: Ahead::new(plan) }
    }

    /// Looks ahead and gives admission control the planned slots.
    fn look(&mut self, shared: &Shared) {
        let (own, jobs) = (self.config.name(), &self.jobs);
        let ahead = AHEAD + self.config.probe.limit.duration;
        let until_ns = unix_ns().saturating_add(ahead.as_nanos() as u64);
        self.ahead.look(until_ns, |job| jobs[job].from == own || jobs[job].to == own);
        let (now_ns, host_ns) = (unix_ns(), shared.host.now_ns());
        let planned = self.ahead.steps().filter_map(|step| {
            let Step::Run { begin_ns, job, .. } = step else { return None };
            let planned = &jobs[*job];
            let begin_ns = host_ns + begin_ns.saturating_sub(now_ns);
            Some(reservations::Planned {
                holder: (planned.from != own).then(|| planned.from.clone()),
                slot: slot(&self.config, planned),
                begin_ns,
                until_ns: begin_ns + planned.job.length_ns,
            })
        });
        let planned = planned.collect();
        shared.host.admission().reservations_mut().plan(planned);
    }

    /// Begins what is due. Runs of other stations are only watched.
    fn begin(&mut self, shared: &Arc<Shared>) {
        panics::point("probe-timetable");
        let own = self.config.name();
        while let Some(step) = self.ahead.take(unix_ns()) {
            let planned = &self.jobs[step.job()];
            let Some(test) = self.config.probe.tests.get(planned.test) else { continue };
            if planned.from != own {
                continue;
            }
            match step {
                Step::Skip { .. } => {
                    debug!(test = test.name, to = planned.to, "skipped: no slot is free");
                    shared.counters.skipped(&test.name, test.what);
                }
                Step::Run { latest_ns, .. } => {
                    let wait = Duration::from_nanos(latest_ns.saturating_sub(unix_ns()));
                    let Ok(job) = Job::of(&self.config, test, &planned.to) else { continue };
                    tokio::spawn(run::scheduled(shared.clone(), job, wait));
                }
            }
        }
    }

    /// How long nothing is due.
    fn pause(&self) -> Duration {
        let next_ns = self.ahead.steps().next().map(Step::at_ns);
        next_ns
            .map_or(LOOK, |at_ns| Duration::from_nanos(at_ns.saturating_sub(unix_ns())).min(LOOK))
    }
}

/// What a run of the timetable shares, as it asks for it.
fn slot(config: &Config, planned: &Planned) -> Slot {
    let test = config.probe.tests.get(planned.test).map(|test| test.name.clone());
    Slot {
        test: test.unwrap_or_default(),
        class: planned.job.class,
        uses: jobs::uses(&config.probe, &planned.from, &planned.to).into_iter().collect(),
    }
}

/// Runs the timetable, until the runtime ends.
pub(super) async fn run(shared: Arc<Shared>, beat: Beat) {
    loop {
        let changed = shared.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let mut timetable = Timetable::new(shared.config());
        loop {
            beat.beat();
            let before = (unix_ns(), Instant::now());
            timetable.look(&shared);
            timetable.begin(&shared);
            tokio::select! {
                () = sleep(timetable.pause()) => {}
                () = &mut changed => break,
            }
            if stepped(before.0, unix_ns(), before.1.elapsed()) {
                warn!("the clock was set: the timetable begins anew");
                break;
            }
        }
    }
}

/// Whether the clock was set between two of its times, between which so long has gone by.
fn stepped(before_ns: u64, now_ns: u64, elapsed: Duration) -> bool {
    let expected_ns = before_ns.saturating_add(elapsed.as_nanos() as u64);
    now_ns.abs_diff(expected_ns) > LOOK.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_known_from_one_that_goes() {
        let (hour, day) = (3_600_000_000_000, 86_400_000_000_000);
        for (now_ns, set) in
            [(day, true), (day - hour, true), (day + hour, false), (day + 2 * hour, true)]
        {
            assert_eq!(stepped(day, now_ns, Duration::from_secs(3600)), set, "{now_ns}");
        }
        assert!(!stepped(day, day + 5_000_000_000, LOOK));
        assert!(!stepped(day, day + 4_000_000_000, LOOK), "it may be slewed");
    }
}
