//! The timetable of random meshes, held against what it promises.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3600 * SECOND;
/// 2026-01-01.
const NOW: u64 = 1_767_225_600 * SECOND;

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![Just(Class::Exclusive), Just(Class::Normal), Just(Class::Background)]
}

/// A job of a mesh of eight stations and four links. Intervals divide an hour.
fn job() -> impl Strategy<Value = Job> {
    let divisors =
        prop_oneof![Just(30_u64), Just(60), Just(300), Just(720), Just(1800), Just(3600)];
    let uses = proptest::collection::btree_set(0..12_u32, 1..4);
    (divisors, 0..100_u64, 1..100_u64, class(), uses, any::<u64>()).prop_map(
        |(seconds, spread, length, class, uses, seed)| {
            let interval_ns = seconds * SECOND;
            let spread_ns = interval_ns * spread / 101;
            let length_ns = (interval_ns - spread_ns) * length / 100;
            let uses = uses.into_iter().collect();
            Job { interval_ns, spread_ns, length_ns, class, uses, seed }
        },
    )
}

/// What a timetable says until a moment.
fn until(plan: Plan, end_ns: u64) -> Vec<Step> {
    plan.take_while(|step| step.at_ns() < end_ns).collect()
}

fn runs(steps: &[Step]) -> Vec<(u64, usize)> {
    let run = |step: &Step| match step {
        Step::Run { begin_ns, job, .. } => Some((*begin_ns, *job)),
        Step::Skip { .. } => None,
    };
    steps.iter().filter_map(run).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_two_that_disturb_each_other_overlap(jobs in proptest::collection::vec(job(), 1..24)) {
        let plan = Plan::new(jobs, NOW);
        let jobs = plan.jobs().to_vec();
        let runs = runs(&until(plan, NOW + 3 * HOUR));
        for (i, (begin, job)) in runs.iter().enumerate() {
            let end = begin + jobs[*job].length_ns;
            for (later, other) in runs[i + 1..].iter().take_while(|(later, _)| *later < end) {
                let shared = jobs[*job].uses.iter().any(|used| jobs[*other].uses.contains(used));
                prop_assert!(
                    !(shared && jobs[*job].class.disturbs(jobs[*other].class)),
                    "{job} at {begin} and {other} at {later}"
                );
            }
        }
    }

    #[test]
    fn a_run_begins_within_the_spread_and_each_round_is_reported_once(
        jobs in proptest::collection::vec(job(), 1..24)
    ) {
        let plan = Plan::new(jobs, NOW);
        let jobs = plan.jobs().to_vec();
        let steps = until(plan, NOW + 2 * HOUR);
        prop_assert!(steps.is_sorted_by_key(Step::at_ns));
        for (number, job) in jobs.iter().enumerate() {
            let of_job: Vec<&Step> = steps.iter().filter(|step| step.job() == number).collect();
            // All intervals divide the epoch: every one has its round.
            prop_assert_eq!(of_job.len() as u64, 2 * HOUR / job.interval_ns);
            let phase = scatter(job.seed) % (job.interval_ns - job.spread_ns - job.length_ns + 1);
            for (round, step) in of_job.iter().enumerate() {
                let due = NOW + phase + round as u64 * job.interval_ns;
                match step {
                    Step::Run { begin_ns, .. } => {
                        prop_assert!((due..=due + job.spread_ns).contains(begin_ns));
                    }
                    Step::Skip { due_ns, .. } => prop_assert_eq!(*due_ns, due),
                }
            }
        }
    }

    #[test]
    fn nobody_starves(jobs in proptest::collection::vec(job(), 1..16)) {
        let plan = Plan::new(jobs, NOW);
        let count = plan.jobs().len();
        // Every job is the first to choose once in as many epochs as there are jobs.
        let runs = runs(&until(plan, NOW + count as u64 * HOUR));
        for job in 0..count {
            prop_assert!(runs.iter().any(|(_, other)| *other == job), "{job} never runs");
        }
    }

    #[test]
    fn who_starts_later_plans_the_same(
        jobs in proptest::collection::vec(job(), 1..24),
        later in 0..2 * HOUR,
    ) {
        let all = until(Plan::new(jobs.clone(), NOW), NOW + 3 * HOUR);
        let rest = until(Plan::new(jobs, NOW + later), NOW + 3 * HOUR);
        let expected: Vec<Step> =
            all.into_iter().filter(|step| step.at_ns() >= NOW + later).collect();
        prop_assert_eq!(rest, expected);
    }

    #[test]
    fn what_disturbs_nobody_is_never_skipped(mut jobs in proptest::collection::vec(job(), 1..24)) {
        for job in &mut jobs {
            job.class = if job.class == Class::Exclusive { Class::Normal } else { job.class };
        }
        let steps = until(Plan::new(jobs, NOW), NOW + 2 * HOUR);
        let skipped = runs(&steps).len() != steps.len();
        prop_assert!(!skipped);
    }
}

#[test]
fn a_crowded_station_is_shared_evenly() {
    // Ten throughput tests of 20 seconds each minute at one station: three fit at a time.
    let job = |seed| Job {
        interval_ns: 60 * SECOND,
        spread_ns: 40 * SECOND,
        length_ns: 20 * SECOND,
        class: Class::Exclusive,
        uses: vec![0],
        seed,
    };
    let steps = until(Plan::new((0..10).map(job).collect(), NOW), NOW + HOUR);
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for (_, job) in runs(&steps) {
        *counts.entry(job).or_default() += 1;
    }
    let (least, most) = (counts.values().min(), counts.values().max());
    assert_eq!(counts.len(), 10, "{counts:?}");
    assert!(least >= Some(&8) && most <= Some(&24), "{counts:?}");
}

#[test]
fn a_hundred_stations_are_planned() {
    // A trace from each to each every ten minutes, and throughput every 24 hours.
    let mut jobs = Vec::new();
    for from in 0..100_u32 {
        for to in (0..100).filter(|to| *to != from) {
            let seed = u64::from(from * 100 + to);
            let job = |class, interval_s: u64, length_s: u64| Job {
                interval_ns: interval_s * SECOND,
                spread_ns: interval_s * SECOND / 4,
                length_ns: length_s * SECOND,
                class,
                uses: vec![from, to],
                seed,
            };
            jobs.push(job(Class::Normal, 600, 5));
            if from < 10 && to < 10 {
                jobs.push(job(Class::Exclusive, 24 * 3600, 10));
            }
        }
    }
    let count = jobs.len();
    let steps: Vec<Step> = Plan::new(jobs, NOW).take(50_000).collect();
    assert_eq!((count, steps.len()), (9990, 50_000));
    let skipped = steps.iter().filter(|step| matches!(step, Step::Skip { .. })).count();
    assert!(skipped < 50, "{skipped}");
}

#[test]
fn no_jobs_have_no_timetable() {
    assert_eq!(Plan::new(Vec::new(), NOW).next(), None);
}
