//! What one must see, on the terminal and in the picture.

use super::{
    cli::{ShowArgs, What},
    *,
};
use crate::{
    archive::{Entry, Span, Summary},
    record::{Bounded, Clock, Delay, Figures, Hop, Record, Series, Throughput, Trace},
};
use std::time::Duration;

/// 2026-01-01 00:00 UTC.
const BEGIN_NS: i64 = 1_767_225_600_000_000_000;
const MINUTE: i64 = 60_000_000_000;
const MS: i64 = 1_000_000;
const PLAIN: Look = Look { columns: 80, colour: false };

fn record(minute: i64, from: &str, to: &str, figures: Figures) -> Entry {
    Entry::Record(Record {
        at_ns: BEGIN_NS + minute * MINUTE,
        lasted_ns: 1_000_000_000,
        from: from.to_owned(),
        to: to.to_owned(),
        test: "mesh".to_owned(),
        figures,
    })
}

fn series(estimate_ns: i64, error: Option<i64>, lost: u64) -> Series {
    let low_ns = error.map(|error| estimate_ns - error);
    let high_ns = error.map(|error| estimate_ns + error);
    let median = (lost < 10).then_some(Bounded { estimate_ns, low_ns, high_ns });
    Series { sent: 10, lost, median, ..Series::default() }
}

fn delay(minute: i64, from: &str, to: &str, ms: i64, error: Option<i64>, lost: u64) -> Entry {
    let forward = series(ms * MS, error.map(|error| error * MS), lost);
    let round_trip = series(2 * ms * MS, Some(0), lost);
    let forward = Some(forward);
    record(
        minute,
        from,
        to,
        Figures::Delay(Delay { forward, reverse: None, round_trip, counted: true }),
    )
}

fn args(what: What) -> ShowArgs {
    ShowArgs {
        what,
        from: None,
        to: None,
        test: None,
        since: Duration::from_secs(86_400),
        direction: Direction::Forward,
        way: None,
        archive: None,
        svg: None,
        json: false,
    }
}

/// Text and picture of the same.
fn both(what: What, entries: &[Entry]) -> (String, String) {
    let picture = ShowArgs { svg: Some("-".into()), ..args(what) };
    let both = [args(what), picture].map(|args| args.render(entries, BEGIN_NS, PLAIN));
    let [text, svg] = both;
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        assert!(!line.contains('\x1b') && line == line.trim_end(), "{line:?}");
    }
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(svg.contains("<title id=\"title\">") && svg.contains("<desc id=\"desc\">"));
    // Every element that is opened is closed.
    let count = |part: &str| svg.matches(part).count();
    assert_eq!(count("<text"), count("</text>"));
    assert_eq!(count("<g "), count("</g>"));
    assert_eq!(count("<title"), 1);
    (text, svg)
}

/// The rows of a chart's area, without the marks.
fn area(text: &str) -> Vec<String> {
    let rows = text.lines().filter_map(|line| line.split_once(['│', '┤']));
    rows.map(|row| row.1.to_owned()).collect()
}

#[test]
fn a_delay_is_drawn_with_its_interval_its_loss_its_unit_and_its_times() {
    let entries: Vec<_> = (0..60)
        .map(|n| delay(n, "prague", "brno", 10 + n / 30 * 4, Some(1), u64::from(n == 40)))
        .collect();
    let (text, svg) = both(What::Delay, &entries);
    assert!(text.starts_with("prague > brno (mesh)\n"), "{text}");
    assert!(
        text.contains("one-way delay, median in ms, UTC; ░ the true value is in the band"),
        "{text}"
    );
    assert!(text.contains("lost 1 of 600 packets (0.17 %)"), "{text}");
    let rows = area(&text);
    assert_eq!(rows.len(), 12, "{text}");
    // The value rises in the middle, the band goes with it on both sides.
    let line = |at: usize| {
        let column = rows.iter().map(|row| row.chars().nth(at).unwrap_or(' '));
        column.collect::<String>()
    };
    let (early, late) = (line(10), line(60));
    let value = |column: &str| column.chars().position(|c| matches!(c, '▀' | '▄'));
    assert!(value(&early).expect("a value") > value(&late).expect("a value"), "{text}");
    assert!(early.trim().starts_with('░') && early.trim().ends_with('░'), "{text}");
    // 00:00 to 00:59, the marks at full minutes.
    assert!(text.contains("01-01") && text.contains("00:30"), "{text}");
    let loss = text.lines().find(|line| line.starts_with("loss")).expect("a line of losses");
    assert_eq!(loss.matches('▅').count() + loss.matches('▃').count(), 1, "{text}");
    assert!(svg.contains("class=\"b\"") && svg.contains("class=\"v\""), "{svg}");
    assert!(
        svg.contains("between 10.0 ms and 14.0 ms, measured 60 times; 1 of 600 packets were lost")
    );
    assert_eq!(svg.matches("<rect class=\"l\"").count(), 1);
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn gaps_stay_open_and_what_has_no_bound_is_labelled_and_drawn_to_the_edge() {
    let mut entries: Vec<_> = (0..20).map(|n| delay(n, "a", "b", 10, Some(2), 0)).collect();
    entries.extend((60..80).map(|n| delay(n, "a", "b", 10, None, 0)));
    let (text, svg) = both(What::Delay, &entries);
    let rows = area(&text);
    let middle: Vec<_> = rows.iter().map(|row| row.chars().nth(36).unwrap_or(' ')).collect();
    assert!(middle.iter().all(|c| *c == ' '), "{text}");
    let column: String = rows.iter().map(|row| row.chars().nth(65).unwrap_or(' ')).collect();
    assert_eq!(column.matches('▒').count(), 11, "{text}");
    assert!(text.contains("no bound is known"), "{text}");
    assert!(svg.contains("url(#open)") && svg.contains("hatched: no bound is known"), "{svg}");
    // Two runs: the line is not drawn over the gap.
    assert_eq!(svg.matches("<path class=\"v\"").count(), 2);
    assert!(svg.contains("at times no bound of the true value is known"));
}

#[test]
fn nothing_one_sample_and_only_losses_are_no_error() {
    let (text, svg) = both(What::Delay, &[]);
    assert_eq!(text, "nothing was measured\n");
    assert!(svg.contains("Nothing was measured"), "{svg}");
    let (text, svg) = both(What::Delay, &[delay(0, "a", "b", 10, Some(1), 0)]);
    assert!(area(&text).iter().any(|row| row.contains(['▀', '▄'])), "{text}");
    assert!(svg.contains("<circle"), "{svg}");
    let (text, svg) = both(What::Delay, &[delay(0, "a", "b", 10, None, 0)]);
    assert!(area(&text).iter().any(|row| row.contains('▒')), "{text}");
    assert!(svg.contains("url(#open)"), "{svg}");
    let (text, svg) = both(What::Delay, &[delay(0, "a", "b", 10, Some(1), 10)]);
    assert!(text.contains("nothing arrived") && text.contains("100.00 %"), "{text}");
    assert!(svg.contains("nothing arrived"), "{svg}");
    for what in [What::Mesh, What::Clocks, What::Traces, What::Throughput] {
        let (text, svg) = both(what, &[]);
        assert!(text.contains("nothing was measured"), "{text}");
        assert!(svg.to_lowercase().contains("nothing was measured"), "{svg}");
    }
}

#[test]
fn odd_numbers_and_names_do_no_harm() {
    for ns in [0, 1, -1, i64::MAX, i64::MIN] {
        let mut entries = vec![delay(0, "a", "b", 1, Some(1), 0)];
        let forward = Some(series(ns, Some(0), 0));
        let odd = Figures::Delay(Delay { forward, ..Delay::default() });
        entries.push(record(1, "a", "b", odd.clone()));
        both(What::Delay, &entries);
        both(What::Mesh, &entries);
        let Entry::Record(mut record) = record(0, "a", "b", odd) else { panic!("a record") };
        record.at_ns = ns;
        record.lasted_ns = ns.unsigned_abs();
        both(What::Delay, &[Entry::Record(record)]);
    }
    let name = "<b>&\"\x1b[31m\n";
    let (_, svg) = both(What::Mesh, &[delay(0, name, "b", 1, Some(1), 0)]);
    assert!(svg.contains("&lt;b&gt;&amp;&quot;[31m") && !svg.contains('\x1b'), "{svg}");
}

#[test]
fn throughput_is_in_bits_and_begins_at_zero_and_spans_have_a_band() {
    let rate = |bits: f64| {
        let bytes_per_second = bits / 8.0;
        Figures::Throughput(Throughput { bytes_per_second, ..Throughput::default() })
    };
    let mut entries: Vec<_> = (120..180).map(|n| record(n, "a", "b", rate(940e6))).collect();
    let parts = [rate(100e6), rate(500e6), rate(900e6)];
    let parts: Vec<_> = parts.iter().map(Summary::of).collect();
    entries.push(Entry::Span(Span {
        at_ns: BEGIN_NS,
        lasted_ns: 3_600_000_000_000,
        from: "a".to_owned(),
        to: "b".to_owned(),
        test: "mesh".to_owned(),
        records: 3,
        figures: Summary::join(&parts).expect("a summary"),
    }));
    let (text, svg) = both(What::Throughput, &entries);
    assert!(text.contains("throughput in Mbit/s"), "{text}");
    let rows = area(&text);
    let zero = text.lines().find(|line| line.contains('┤') && line.trim_start().starts_with("0"));
    assert!(zero.is_some(), "{text}");
    let at =
        |n: usize| rows.iter().map(|row| row.chars().nth(n).unwrap_or(' ')).collect::<String>();
    assert!(at(5).matches('░').count() > 6, "{text}");
    assert_eq!(at(60).matches('░').count(), 0, "{text}");
    assert!(svg.contains("between 500 Mbit/s and 940 Mbit/s"), "{svg}");
}

#[test]
fn the_mesh_is_a_matrix_with_median_and_loss_in_as_many_blocks_as_it_needs() {
    let stations = ["prague", "brno", "vienna"];
    let mut entries = Vec::new();
    for (n, from) in stations.iter().enumerate() {
        for (m, to) in stations.iter().enumerate().filter(|(m, _)| *m != n) {
            let lost = u64::from(n == 0 && m == 1);
            entries.push(delay(0, from, to, 10 * (n + 1) as i64 + m as i64, Some(1), lost));
        }
    }
    entries.pop();
    let (text, svg) = both(What::Mesh, &entries);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "one-way delay: median, packets lost");
    assert_eq!(lines[1], "from       brno   prague   vienna", "{text}");
    assert_eq!(lines[2], "brno             20.0 ms  22.0 ms", "{text}");
    assert_eq!(lines[4], "prague  11.0 ms           12.0 ms", "{text}");
    assert_eq!(lines[5], "         10.0 %               0 %", "{text}");
    assert_eq!(lines[6], "vienna        -  30.0 ms", "{text}");
    assert!(svg.contains("prague to brno: 11.0 ms, 10.0 % lost."), "{svg}");
    // With colours, each cell has that of its loss.
    let colour = args(What::Mesh).render(&entries, 0, Look { columns: 80, colour: true });
    assert!(colour.contains("\x1b[31m11.0 ms") && colour.contains("\x1b[32m20.0 ms"), "{colour}");
    let json = ShowArgs { json: true, ..args(What::Mesh) }.render(&entries, 0, PLAIN);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["cells"].as_array().map(Vec::len), Some(5));
    // Twenty stations do not fit beside each other.
    let many: Vec<_> =
        (0..20).map(|n| delay(0, "prague", &format!("station-{n:02}"), 10, Some(1), 0)).collect();
    let (text, _) = both(What::Mesh, &many);
    assert_eq!(text.lines().filter(|line| line.starts_with("from")).count(), 3, "{text}");
    assert_eq!(text.matches("10.0 ms").count(), 20, "{text}");
}

#[test]
fn silence_is_loss_on_each_way() {
    let round_trip = series(0, None, 10);
    let silent = Figures::Delay(Delay { round_trip, ..Delay::default() });
    let entries = [
        delay(0, "prague", "brno", 10, Some(1), 0),
        record(1, "prague", "brno", silent.clone()),
        record(1, "prague", "plzen", silent),
    ];
    let mesh = Mesh::new(&entries, Direction::Forward);
    let cells = mesh.cells.iter().map(|cell| (cell.to.as_str(), cell.lost, cell.sent));
    assert_eq!(cells.collect::<Vec<_>>(), [("brno", 10, 20), ("plzen", 10, 10)]);
    assert!(mesh.cells[0].median.is_some() && mesh.cells[1].median.is_none());
    let (text, _) = both(What::Delay, &entries);
    assert!(text.contains("lost 10 of 20 packets (50.00 %)"), "{text}");
}

#[test]
fn clocks_are_a_table_in_which_a_missing_bound_is_an_alarm() {
    let clock = |maximum_error_ns, holdover| {
        Figures::Clock(Clock {
            source: "chrony".to_owned(),
            offset_ns: Some(-1234),
            maximum_error_ns,
            stratum: Some(2),
            reference: Some("192.0.2.123".to_owned()),
            reach: Some(0o377),
            frequency_ppb: Some(-12_340),
            since_update_seconds: Some(16.4),
            holdover,
            ..Clock::default()
        })
    };
    let entries = [
        record(0, "prague", "prague", clock(None, false)),
        record(5, "prague", "prague", clock(Some(250_000), false)),
        record(0, "brno", "brno", clock(None, false)),
        record(0, "prague", "ntp.example", clock(Some(250_000), true)),
    ];
    let (text, svg) = both(What::Clocks, &entries);
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).expect("a row");
    let prague = line("prague");
    for part in ["-1.23 µs", "±250 µs", "2", "192.0.2.123", "377", "-12.3", "16 s", "good"] {
        assert!(prague.contains(part), "{part} in\n{text}");
    }
    assert!(line("brno").contains("unknown") && line("brno").contains("no bound"), "{text}");
    assert!(line("ntp.ex").contains("holdover"), "{text}");
    assert_eq!(svg.matches("m alarm").count(), 2 * 9, "{svg}");
    let colour = args(What::Clocks).render(&entries, 0, Look { columns: 80, colour: true });
    assert_eq!(colour.matches("\x1b[31m").count(), 2, "{colour}");
}

#[test]
fn traces_are_a_list_of_hops() {
    let hop = |address: Option<[u8; 4]>, times: &[i64], answer: Option<&str>| Hop {
        address: address.map(Into::into),
        round_trips_ns: times.iter().map(|time| (time * MS) as u64).collect(),
        answer: answer.map(str::to_owned),
        ..Hop::default()
    };
    let hops = vec![
        hop(Some([192, 0, 2, 1]), &[3, 1, 2], None),
        hop(None, &[], None),
        hop(Some([198, 51, 100, 7]), &[9], Some("net unreachable")),
    ];
    let trace = Trace { hops, reached: false, mtu_bytes: Some(1400) };
    let old = Trace { reached: true, ..Trace::default() };
    let entries = [
        record(7, "prague", "198.51.100.9", Figures::Trace(trace)),
        record(0, "prague", "198.51.100.9", Figures::Trace(old)),
    ];
    let (text, svg) = both(What::Traces, &entries);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[2].contains("01-01 00:07  prague > 198.51.100.9"), "{text}");
    assert!(lines[2].ends_with("not reached, MTU 1400"), "{text}");
    assert!(lines[3].contains("1  192.0.2.1") && lines[3].contains("2.00 ms"), "{text}");
    assert!(lines[4].trim() == "2  *", "{text}");
    assert!(lines[5].contains("198.51.100.7") && lines[5].contains("net unreachable"), "{text}");
    assert_eq!(lines.len(), 6);
    assert!(svg.contains("net unreachable"), "{svg}");
}
