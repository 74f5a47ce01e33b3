//! Sessions on a simulated network with a clock of its own: every byte arrives, memory stays bounded,
//! every session ends, and the adaptive driver is nearly as fast as all paths together and never much
//! slower than the best one alone. Times are those of the simulation, so they are the same in every run.

mod network;
mod scenes;
mod session;

use network::{MS, PathSettings, Random, SECOND};
use psock::core::driver::DriverName;
use session::{Application, Change, Plan};

/// Runs of the first test for each driver.
const RUNS: u64 = 1_000;
/// Runs of the second.
const BULK_RUNS: u64 = 150;

fn random_path(random: &mut Random) -> PathSettings {
    let rate = 1 << random.range(16, 23);
    let delay_ns = random.range(100, 60_000) * 1_000;
    let jitter_ns = if random.chance(500_000) { 0 } else { random.range(0, delay_ns / 2) };
    let loss = if random.chance(500_000) { 0 } else { random.range(0, 20_000) };
    // Up to 300 ms of queue.
    let queue_bytes = (rate * random.range(5, 300) / 1_000).max(20_000);
    PathSettings { rate, delay_ns, queue_bytes, jitter_ns, loss }
}

fn random_application(random: &mut Random) -> Application {
    let sends = if random.chance(200_000) { random.range(0, 3) } else { random.range(0, 100_000) };
    let mut application = Application::bulk(sends);
    if random.chance(300_000) {
        application.burst = random.range(1, 20_000);
        application.pause_ns = random.range(1, 20) * MS;
    }
    if random.chance(300_000) {
        application.takes = random.range(1, 8) as u32;
        application.digests_ns = random.range(1, 10) * MS;
    }
    application
}

fn random_plan(seed: u64, driver: DriverName) -> Plan {
    let random = &mut Random::new(seed);
    let paths: Vec<_> = (0..random.range(1, 4)).map(|_| random_path(random)).collect();
    let mut changes = Vec::new();
    for path in 0..paths.len() {
        let mut at = 0;
        for _ in 0..random.range(0, 3) {
            at += random.range(1, 1_500) * MS;
            changes.push((at, path, Change::Down));
            at += random.range(1, 4_000) * MS;
            changes.push((at, path, Change::Up));
        }
    }
    // Now and then all at once.
    if random.chance(100_000) {
        let from = random.range(0, 300) * MS;
        let until = from + random.range(1, 5_000) * MS;
        changes.clear();
        for path in 0..paths.len() {
            changes.extend([(from, path, Change::Down), (until, path, Change::Up)]);
        }
    }
    let mut window = || 1 << random.range(12, 20);
    Plan {
        seed,
        driver,
        window_bytes: [window(), window()],
        send_bytes: [window(), window()],
        block_bytes: random.range(500, 4_000) as usize,
        paths,
        applications: [random_application(random), random_application(random)],
        changes,
        closes_after_ns: random.range(300, 3_000) * MS,
        limit_ns: 600 * SECOND,
    }
}

/// Says which run it was that failed.
fn named_in_failures<T>(
    what: &str,
    seed: u64,
    run: impl FnOnce() -> T + std::panic::UnwindSafe,
) -> T {
    std::panic::catch_unwind(run).unwrap_or_else(|panic| {
        eprintln!("the run that failed: {what}, seed {seed}");
        std::panic::resume_unwind(panic)
    })
}

#[test]
fn every_byte_arrives_with_every_driver_while_paths_die_and_return() {
    for driver in DriverName::ALL {
        for seed in 0..RUNS {
            named_in_failures(driver.as_str(), seed, || random_plan(seed, driver).run());
        }
    }
}

/// A plan for one bulk transfer without loss or deaths, so that chance favours nobody.
fn random_bulk(seed: u64) -> Plan {
    let random = &mut Random::new(seed);
    let paths: Vec<_> =
        (0..random.range(2, 4)).map(|_| PathSettings { loss: 0, ..random_path(random) }).collect();
    let fastest = paths.iter().map(|path| path.rate).max().unwrap_or(0);
    // From a tenth of a second to a second and a half.
    let bytes = fastest * random.range(1, 15) / 10;
    let window = 1 << random.range(18, 25);
    Plan {
        seed,
        driver: DriverName::Adaptive,
        block_bytes: psock::core::RECORD_BLOCK,
        window_bytes: [window; 2],
        send_bytes: [window; 2],
        paths,
        applications: [Application::bulk(bytes), Application::bulk(0)],
        changes: Vec::new(),
        closes_after_ns: SECOND,
        limit_ns: 600 * SECOND,
    }
}

/// When the last byte is delivered over one of the paths alone, at best.
fn best_alone_ns(plan: &Plan) -> u64 {
    let fastest = plan.paths.iter().map(|path| path.rate).max().unwrap_or(0);
    let able = plan.paths.iter().filter(|path| path.rate >= fastest / 8);
    let times = able.map(|path| {
        let alone = Plan { paths: vec![*path], driver: DriverName::PollAll, ..plan.clone() };
        alone.run().delivered_ns[0]
    });
    times.min().unwrap_or(u64::MAX)
}

#[test]
fn adaptive_is_hardly_ever_slower_than_the_best_path_alone() {
    let compared = |seed| {
        let plan = random_bulk(seed);
        let (alone, together) = (best_alone_ns(&plan), plan.run().delivered_ns[0]);
        // At first nothing is known of the paths, which may cost some blocks' time on a slow one.
        assert!(
            together <= alone + alone / 5 + 150 * MS,
            "{together} ns over all paths, {alone} ns over the best one"
        );
        together * 1_000 / alone
    };
    let runs = (0..BULK_RUNS).map(|seed| named_in_failures("adaptive", seed, || compared(seed)));
    let mut permille: Vec<u64> = runs.collect();
    permille.sort_unstable();
    let [median, .., last] = permille[permille.len() / 2..] else { panic!("there are runs") };
    println!("of the best path's time: {median} in the middle, {last} at most (of a thousand)");
    assert!(median < 950, "more than one path is used: {permille:?}");
}
