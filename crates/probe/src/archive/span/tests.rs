//! What a summary says is true of all packets together, whatever the records were.

use super::*;
use crate::record::{Dns, Hop, Http, Throughput};
use proptest::{collection::vec, option, prelude::*};

/// A packet's true delay, and how much a clock may be wrong with it; none: nobody knows.
type Packet = (i64, Option<i64>);

/// The value that a share of the sorted ones do not pass (nearest rank).
fn rank(sorted: &[i64], share: f64) -> i64 {
    let index = (share * sorted.len() as f64).ceil() as usize;
    sorted[index.clamp(1, sorted.len()) - 1]
}

/// A record as a station would make it: the true figures, each in an interval that is off to one side.
fn series(packets: &[Packet], off: i64, lost: u64) -> Series {
    let mut delays: Vec<_> = packets.iter().map(|packet| packet.0).collect();
    delays.sort_unstable();
    let error = packets.iter().map(|packet| packet.1).collect::<Option<Vec<_>>>();
    let error = error.and_then(|errors| errors.into_iter().max());
    let bounded = |truth: i64| {
        let estimate_ns = truth + error.map_or(off, |error| off.clamp(-error, error));
        let low_ns = error.map(|error| estimate_ns - error);
        let high_ns = error.map(|error| estimate_ns + error);
        Some(Bounded { estimate_ns, low_ns, high_ns })
    };
    let arrived = packets.len() as u64;
    if packets.is_empty() {
        return Series { sent: lost, lost, ..Series::default() };
    }
    Series {
        sent: arrived + lost,
        lost,
        late: 0,
        duplicated: 1,
        reordered: 2,
        contradicted: 3,
        minimum: bounded(rank(&delays, 0.0)),
        median: bounded(rank(&delays, 0.5)),
        p95: bounded(rank(&delays, 0.95)),
        p99: bounded(rank(&delays, 0.99)),
        maximum: bounded(rank(&delays, 1.0)),
        pdv_p99_ns: Some(7),
        ipdv_mean_ns: (arrived > 1).then_some(5),
    }
}

fn holds(bounded: Option<Bounded>, truth: i64) -> Result<(), TestCaseError> {
    let it = bounded.expect("packets arrived");
    prop_assert!(it.low_ns.is_none_or(|low| low <= truth), "{truth} is below {it:?}");
    prop_assert!(it.high_ns.is_none_or(|high| high >= truth), "{truth} is above {it:?}");
    prop_assert!(it.low_ns.is_none_or(|low| low <= it.estimate_ns), "{it:?}");
    prop_assert!(it.high_ns.is_none_or(|high| high >= it.estimate_ns), "{it:?}");
    Ok(())
}

proptest! {
    #[test]
    fn intervals_of_hours_and_of_days_of_hours_hold_the_truth_of_all_packets(
        records in vec(
            (vec((-1000..5000i64, option::weighted(0.95, 0..400i64)), 0..40), -400..400i64, 0..5u64),
            1..24,
        ),
        hours in 1..6usize,
    ) {
        let parts: Vec<_> = records
            .iter()
            .map(|(packets, off, lost)| Summary::Ping(series(packets, *off, *lost)))
            .collect();
        let mut all: Vec<_> =
            records.iter().flat_map(|(packets, ..)| packets).map(|packet| packet.0).collect();
        all.sort_unstable();
        let at_once = Summary::join(&parts);
        let by_hours: Vec<_> = parts.chunks(hours).filter_map(Summary::join).collect();
        for summary in [at_once, Summary::join(&by_hours)] {
            let Some(Summary::Ping(it)) = summary else { panic!("{summary:?}") };
            let lost: u64 = records.iter().map(|(.., lost)| lost).sum();
            prop_assert_eq!((it.sent, it.lost), (all.len() as u64 + lost, lost));
            if all.is_empty() {
                prop_assert_eq!(it.median, None);
                continue;
            }
            holds(it.minimum, rank(&all, 0.0))?;
            holds(it.median, rank(&all, 0.5))?;
            holds(it.p95, rank(&all, 0.95))?;
            holds(it.p99, rank(&all, 0.99))?;
            holds(it.maximum, rank(&all, 1.0))?;
            let known = records.iter().flat_map(|(packets, ..)| packets).all(|it| it.1.is_some());
            if known {
                // Never vaguer than that there is a bound.
                prop_assert!(it.median.is_some_and(|it| it.low_ns.is_some() && it.high_ns.is_some()));
            }
        }
    }
}

#[test]
fn one_record_without_a_bound_takes_it_from_the_percentiles_but_not_from_the_extremes() {
    let bounded = |at: i64| Some(Bounded { estimate_ns: at, low_ns: Some(at), high_ns: Some(at) });
    let unbounded = Some(Bounded { estimate_ns: 50, low_ns: None, high_ns: None });
    let part = |it| Series { sent: 1, minimum: it, median: it, maximum: it, ..Series::default() };
    let parts = [part(bounded(10)), part(unbounded), part(bounded(90))];
    let it = join_series(parts.iter()).expect("a series");
    let median = it.median.expect("a median");
    assert_eq!((median.estimate_ns, median.low_ns, median.high_ns), (50, None, None));
    let minimum = it.minimum.expect("a minimum");
    assert_eq!((minimum.low_ns, minimum.high_ns), (None, Some(10)));
    let maximum = it.maximum.expect("a maximum");
    assert_eq!((maximum.low_ns, maximum.high_ns), (Some(90), None));
}

#[test]
fn a_percentile_that_one_record_does_not_give_is_not_given_for_all() {
    let median = Some(Bounded { estimate_ns: 1, low_ns: None, high_ns: None });
    let with = Series { sent: 3, median, ..Series::default() };
    let without = Series { sent: 3, ..Series::default() };
    let lost = Series { sent: 3, lost: 3, ..Series::default() };
    assert_eq!(join_series([&with, &without].into_iter()).expect("a series").median, None);
    assert_eq!(join_series([&with, &lost].into_iter()).expect("a series").median, median);
}

#[test]
fn every_kind_is_summed_up_and_reads_back_as_it_was_written() {
    let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
    let trace = |last: u8, reached, mtu_bytes| {
        let hop = |last| Hop { address: address(last), ..Hop::default() };
        Figures::Trace(Trace { hops: vec![hop(1), hop(last)], reached, mtu_bytes })
    };
    let rate = |bytes_per_second, lost| {
        Figures::Throughput(Throughput {
            transport: "udp".to_owned(),
            bytes: 1000,
            bytes_per_second,
            lost,
            ..Throughput::default()
        })
    };
    let clock = |maximum_error_ns, offset| {
        let source = "kernel".to_owned();
        let offset_ns = Some(offset);
        Figures::Clock(Clock { source, offset_ns, maximum_error_ns, ..Clock::default() })
    };
    let code =
        |code: &str, took_ns| Figures::Dns(Dns { code: code.to_owned(), answers: 1, took_ns });
    let page = |status, whole_ns| Figures::Http(Http { status, whole_ns, ..Http::default() });
    let failed = |reason: &str| Figures::Failed { reason: reason.to_owned() };
    let cases = [
        (
            vec![rate(100.0, Some((1, 10))), rate(300.0, Some((2, 10))), rate(200.0, None)],
            r#""kind":"throughput","transport":"udp","bytes":3000,"bytes_per_second":{"count":3,"minimum":100.0,"median":200.0,"maximum":300.0},"lost":[3,20]"#,
        ),
        (
            vec![trace(2, true, Some(1500)), trace(3, false, None), trace(2, true, Some(1400))],
            r#""reached":2,"paths":[{"hops":["192.0.2.1","192.0.2.2"],"times":2},{"hops":["192.0.2.1","192.0.2.3"],"times":1}],"other_paths":0,"mtu_bytes":[1400,1500]"#,
        ),
        (
            vec![clock(Some(10), -5), clock(Some(30), 7)],
            r#""offset_ns":[-5,7],"maximum_error_ns":30,"unbounded":0"#,
        ),
        (
            vec![clock(Some(10), -5), clock(None, 7)],
            r#""offset_ns":[-5,7],"maximum_error_ns":null,"unbounded":1"#,
        ),
        (
            vec![code("NOERROR", 10), code("NXDOMAIN", 20), code("NOERROR", 90)],
            r#""codes":{"NOERROR":2,"NXDOMAIN":1},"took_ns":{"count":3,"minimum":10.0,"median":20.0,"maximum":90.0}"#,
        ),
        (vec![page(200, 10), page(503, 20)], r#""statuses":{"200":1,"503":1}"#),
        (vec![failed("no route"), failed("no route")], r#""reasons":{"no route":2}"#),
    ];
    for (records, expected) in cases {
        let parts: Vec<_> = records.iter().map(Summary::of).collect();
        let summary = Summary::join(&parts).expect("a summary");
        assert_eq!(summary.kind(), records[0].kind());
        let json = serde_json::to_string(&summary).expect("JSON");
        assert!(json.contains(expected), "{json}");
        assert_eq!(serde_json::from_str::<Summary>(&json).expect("a summary"), summary);
    }
    assert_eq!(Summary::join(&[]), None);
}

#[test]
fn ways_and_reasons_are_bounded_and_what_is_beyond_is_counted() {
    let parts: Vec<_> = (0..40u8)
        .map(|last| {
            let hops = vec![Hop { address: Some([192, 0, 2, last].into()), ..Hop::default() }];
            Summary::of(&Figures::Trace(Trace { hops, ..Trace::default() }))
        })
        .collect();
    let halves = [Summary::join(&parts[..20]), Summary::join(&parts[20..])];
    let halves: Vec<_> = halves.into_iter().flatten().collect();
    for summary in [Summary::join(&parts), Summary::join(&halves)] {
        let Some(Summary::Trace { paths, other_paths, .. }) = summary else { panic!("a trace") };
        assert_eq!((paths.len(), other_paths), (16, 24));
    }
    let parts: Vec<_> =
        (0..40).map(|n| Summary::of(&Figures::Failed { reason: format!("{n}") })).collect();
    let Some(Summary::Failed { reasons }) = Summary::join(&parts) else { panic!("failures") };
    assert_eq!((reasons.len(), reasons["..."]), (17, 24));
}
