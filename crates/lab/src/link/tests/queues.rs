//! Queues against one that is simulated event by event.

use super::{
    naive::{Backlog, NaiveOutcome, Queue, arrivals},
    red::{Average, Found},
    *,
};
use proptest::prelude::*;

const SEED: u64 = 9;
const LINK: LinkId = LinkId(3);

/// What the link says of the same packets.
fn outcomes(settings: &LinkSettings, arrivals: &[Arrival]) -> Vec<NaiveOutcome> {
    let mut state = LinkState::new(SEED, LINK);
    let outcome = |arrival: &Arrival| match state.offer(settings, *arrival) {
        Outcome::Drop(DropReason::QueueFull) => NaiveOutcome::Full,
        Outcome::Drop(DropReason::QueueDiscipline) => NaiveOutcome::Discipline,
        Outcome::Pass { at, copy: None, corrupt: None, mark } => NaiveOutcome::Sent(at.0, mark),
        other => panic!("{other:?}"),
    };
    arrivals.iter().map(outcome).collect()
}

/// Bursts, streams and pauses: at the rates of these tests from idle links to a few times what they
/// carry.
fn packets() -> impl Strategy<Value = Vec<(u64, u32, bool)>> {
    let gap = prop_oneof![
        3 => Just(0u64),
        6 => 0..1_000_000u64,
        2 => 1_000_000..3_000_000u64,
        1 => 0..60_000_000u64,
    ];
    let length = prop_oneof![Just(1_500), Just(40), 20..=1_500u32];
    let stretch = (1..60usize, gap, length, any::<bool>())
        .prop_map(|(count, gap, length, ect)| vec![(gap, length, ect); count]);
    proptest::collection::vec(stretch, 1..60).prop_map(|stretches| stretches.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn droptail_is_a_real_queue(
        packets in packets(),
        rate in 1_000_000..100_000_000u64,
        limit in prop_oneof![(1..100u32).prop_map(|n| format!("{n}p")),
                             (1..100_000u32).prop_map(|n| format!("{n}B"))],
    ) {
        let settings = settings(&format!("rate={rate}bit queue={limit}"));
        let arrivals = arrivals(&packets);
        let real = Queue::new(&settings, SEED, LINK, Backlog::Behind).run(&arrivals);
        prop_assert_eq!(outcomes(&settings, &arrivals), real);
    }

    #[test]
    fn red_is_a_real_queue(
        packets in packets(),
        rate in 1_000_000..100_000_000u64,
        parts in prop_oneof![
            Just("60p,red,min=5p,max=15p,weight=2%"),
            Just("60p,red,min=5p,max=15p,probability=50%,weight=20%,gentle,ecn"),
            Just("90KB,red,min=10KB,max=30KB,weight=1%,gentle"),
        ],
    ) {
        let settings = settings(&format!("rate={rate}bit queue={parts}"));
        let arrivals = arrivals(&packets);
        let real = Queue::new(&settings, SEED, LINK, Backlog::Behind).run(&arrivals);
        let outcomes = outcomes(&settings, &arrivals);
        // The naive queue drops what it could mark, so it stands for the link up to there.
        let end = outcomes.iter().position(|outcome| matches!(outcome, NaiveOutcome::Sent(_, true)));
        let end = end.unwrap_or(outcomes.len());
        prop_assert_eq!(&outcomes[..end], &real[..end]);
        if end < real.len() {
            prop_assert_eq!(real[end], NaiveOutcome::Discipline);
        }
    }

    /// With the bytes that a packet found in place of those behind it, every packet has the outcome that
    /// the RFC's pseudocode gives it when its turn comes. With the RFC's own bytes this holds up to the
    /// first packet for which the two differ.
    #[test]
    fn codel_is_the_pseudocode_run_when_packets_are_taken_out(
        packets in packets(),
        rate in 1_000_000..20_000_000u64,
        parts in prop_oneof![
            Just("codel,target=5ms,interval=100ms"),
            Just("codel,target=1ms,interval=10ms"),
            Just("codel,target=1ms,interval=10ms,ecn"),
            Just("20p,codel,target=2ms,interval=4ms,ecn"),
        ],
    ) {
        let settings = settings(&format!("rate={rate}bit queue={parts}"));
        let arrivals = arrivals(&packets);
        let outcomes = outcomes(&settings, &arrivals);
        let found = Queue::new(&settings, SEED, LINK, Backlog::Found).run(&arrivals);
        prop_assert_eq!(&outcomes, &found);
        let mut queue = Queue::new(&settings, SEED, LINK, Backlog::Behind);
        let behind = queue.run(&arrivals);
        let end = queue.differs.unwrap_or(outcomes.len());
        prop_assert_eq!(&outcomes[..end], &behind[..end]);
    }
}

/// A load of 1.5 times the rate for a minute, then as much as it carries: the RFC's own backlog and the
/// one found on arrival drop alike, and the queue comes down to the target.
#[test]
fn codel_holds_a_standing_queue_at_its_target() {
    let settings = settings("rate=10Mbit queue=10000p,codel");
    let overload = (800_000, 1_486, false);
    let packets = [vec![overload; 75_000], vec![(1_200_000, 1_486, false); 5_000]].concat();
    let arrivals = arrivals(&packets);
    let outcomes = outcomes(&settings, &arrivals);
    let real = Queue::new(&settings, SEED, LINK, Backlog::Behind).run(&arrivals);
    let dropped = |outcomes: &[NaiveOutcome]| {
        outcomes.iter().filter(|outcome| **outcome == NaiveOutcome::Discipline).count() as f64
    };
    let (here, there) = (dropped(&outcomes), dropped(&real));
    assert!((here / there - 1.0).abs() < 0.01, "{here} and {there}");
    let wait = |n: usize| match outcomes[n] {
        NaiveOutcome::Sent(at, _) => at - arrivals[n].now.0,
        _ => 0,
    };
    // The unresponsive load builds a queue while the drop rate rises, and the end of it finds none.
    let (most, last) = ((0..outcomes.len()).map(wait).max(), wait(outcomes.len() - 1));
    assert!(most > Some(100_000_000), "{most:?}");
    assert!(last <= 5_000_000 + 2_400_000, "{last}");
}

/// Floyd and Jacobson, section VII: the packets from one drop to the next are as likely to be any number
/// below 1 / p, so their mean is 1 / 2p.
#[test]
fn red_spaces_its_drops_evenly() {
    let settings = settings("queue=1000p,red,min=100p,max=300p,probability=4%,weight=100%");
    let Discipline::Red(red) = settings.queue.discipline else { panic!("RED") };
    // Half way between: a chance of 2 %.
    let found = Found { size: 200, idle: None, rate: 1, ect: false };
    let (mut average, random) = (Average::new(), Random::new(SEED, LINK));
    let drops: Vec<u64> = (0..100_000)
        .filter(|n| {
            average.judge(&red, found, random.packet(*n).number(Lane::Red)) == Verdict::Drop
        })
        .collect();
    let distances: Vec<u64> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(distances.iter().max(), Some(&49));
    assert_eq!(distances.iter().min(), Some(&1));
    let mean = distances.iter().sum::<u64>() as f64 / distances.len() as f64;
    let deviation = ((49.0f64 * 49.0 - 1.0) / 12.0 / distances.len() as f64).sqrt();
    let off = (mean - 25.0).abs() / deviation;
    assert!(off < 3.0, "{mean:.2} packets apart, {off:.2} deviations from 25");
}
