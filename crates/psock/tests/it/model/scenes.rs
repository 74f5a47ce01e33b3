//! Scenes like those that are measured in the lab.

use super::*;
use crate::model::session::mbits;

fn path(mbits: u64, delay_ms: u64, queue_ms: u64) -> PathSettings {
    let rate = mbits * 125_000;
    let queue_bytes = rate * queue_ms / 1_000;
    PathSettings { rate, delay_ns: delay_ms * MS, queue_bytes, jitter_ns: 0, loss: 0 }
}

fn bulk(driver: DriverName, paths: &[PathSettings], bytes: u64) -> Plan {
    Plan {
        seed: 1,
        driver,
        block_bytes: psock::core::RECORD_BLOCK,
        window_bytes: [32 << 20; 2],
        send_bytes: [32 << 20; 2],
        paths: paths.to_vec(),
        applications: [Application::bulk(bytes), Application::bulk(0)],
        changes: Vec::new(),
        closes_after_ns: 3 * SECOND,
        limit_ns: 600 * SECOND,
    }
}

/// Mbit/s of a plan's first stream.
fn speed(plan: &Plan) -> u64 {
    mbits(plan.applications[0].sends, plan.run().delivered_ns[0])
}

/// Mbit/s of each path alone.
fn alone(paths: &[PathSettings], bytes: u64) -> Vec<u64> {
    paths.iter().map(|path| speed(&bulk(DriverName::PollAll, &[*path], bytes))).collect()
}

#[test]
fn two_unequal_paths_give_their_sum_and_round_robin_twice_the_slower_one() {
    let paths = [path(155, 5, 20), path(620, 5, 20)];
    let single = alone(&paths, 50_000_000);
    let speeds = DriverName::ALL.map(|driver| speed(&bulk(driver, &paths, 100_000_000)));
    println!("{single:?} Mbit/s alone, {speeds:?} with each driver");
    let [round_robin, poll_all, adaptive] = speeds;
    assert!(round_robin <= 2 * single[0] + 10);
    assert!(poll_all.min(adaptive) * 100 >= (single[0] + single[1]) * 98);
}

#[test]
fn a_slow_path_with_a_long_queue_does_not_hold_up_a_fast_one() {
    let paths = [path(620, 5, 20), path(20, 10, 300)];
    let single = alone(&paths[..1], 100_000_000);
    for window_bytes in [32 << 20, 4 << 20, 2 << 20] {
        let mut plan = bulk(DriverName::Adaptive, &paths, 100_000_000);
        (plan.window_bytes, plan.send_bytes) = ([window_bytes; 2], [window_bytes; 2]);
        let adaptive = speed(&plan);
        println!("{single:?} Mbit/s alone, {adaptive} with a window of {window_bytes} bytes");
        assert!(adaptive * 100 >= single[0] * 99);
    }
}

#[test]
fn a_path_that_is_cut_is_missed_for_a_moment_and_used_again() {
    let paths = [path(310, 10, 20), path(310, 10, 20)];
    let mut plan = bulk(DriverName::Adaptive, &paths, 120_000_000);
    plan.changes = vec![(SECOND, 0, Change::Down)];
    let cut = plan.run();
    println!("longest gap {} ms, {:?}", cut.longest_gap_ns / MS, cut.totals[0]);
    assert!(cut.longest_gap_ns < 150 * MS);
    // The bytes that were in flight, and no others, are sent again.
    assert!(cut.totals[0].retransmitted_blocks < 150);
    plan.changes.push((SECOND + 400 * MS, 0, Change::Up));
    plan.closes_after_ns = 200 * MS;
    let returned = plan.run();
    assert!(returned.longest_gap_ns < 150 * MS);
    assert!(returned.over[0] > cut.over[0] + 10_000_000, "{returned:?}");
}

#[test]
fn a_path_that_falls_silent_without_being_closed_is_used_again() {
    let paths = [path(100, 10, 20), path(100, 10, 20)];
    let mut plan = bulk(DriverName::Adaptive, &paths, 50_000_000);
    plan.changes = vec![(SECOND, 0, Change::Down), (SECOND * 3 / 2, 0, Change::Up)];
    let report = plan.run();
    println!("longest gap {} ms, {:?}", report.longest_gap_ns / MS, report.over);
    assert!(report.longest_gap_ns < 200 * MS);
    // TCP needs another second to notice.
    assert!(report.over[0] > 14_000_000, "{report:?}");
}

#[test]
fn cross_traffic_on_one_path_costs_what_it_takes() {
    let paths = [path(310, 10, 20), path(310, 10, 20)];
    let speeds = DriverName::ALL.map(|driver| {
        let mut plan = bulk(driver, &paths, 100_000_000);
        let half = Change::Rate(155 * 125_000);
        plan.changes = vec![(SECOND / 2, 0, half), (SECOND, 0, Change::Rate(310 * 125_000))];
        speed(&plan)
    });
    println!("{speeds:?} Mbit/s with each driver");
    let [round_robin, poll_all, adaptive] = speeds;
    assert!(round_robin < adaptive && poll_all * 97 <= adaptive * 100);
}

#[test]
fn loss_on_equal_paths_does_not_make_them_worse_than_their_sum() {
    // A segment of the model is eleven of TCP, so this is a loss of 0.1 %.
    let lossy = PathSettings { loss: 11_000, ..path(310, 10, 20) };
    let single = alone(&[lossy], 50_000_000);
    let adaptive = speed(&bulk(DriverName::Adaptive, &[lossy; 2], 100_000_000));
    println!("{single:?} Mbit/s alone, {adaptive} together");
    assert!(adaptive * 10 >= single[0] * 2 * 9);
}

#[test]
fn a_path_that_becomes_longer_keeps_its_rate() {
    let paths = [path(100, 5, 50)];
    let speeds = [DriverName::PollAll, DriverName::Adaptive].map(|driver| {
        let mut plan = bulk(driver, &paths, 50_000_000);
        plan.changes = vec![(SECOND, 0, Change::Delay(60 * MS))];
        speed(&plan)
    });
    println!("{speeds:?} Mbit/s with poll-all and adaptive");
    let [poll_all, adaptive] = speeds;
    assert!(adaptive * 100 >= poll_all * 90);
}
