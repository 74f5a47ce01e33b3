//! Traces as text.

use super::*;

#[test]
fn a_traced_path_is_the_path_of_packets() {
    let (network, report) = import(&["berlin.txt"]);
    // Hop 4 answered late: hop 5 shows that it is no further than that. The silent hop shares.
    let expected = [
        ("gw.example", 250),
        ("silent1", 2_000),
        ("ae1.core.example", 2_000),
        ("198.51.100.9", 6_000),
        ("203.0.113.1", 0),
        ("example.net", 2_000),
    ];
    assert_eq!(hops(&network, "berlin", "203.0.113.9"), named(&expected));
    let answers: Vec<_> = answers(&network, "berlin", "203.0.113.9");
    let expected =
        ["192.168.1.1", "", "198.51.100.1", "198.51.100.9", "203.0.113.1", "203.0.113.9"];
    assert_eq!(answers, expected.map(|address| address.parse().ok()));

    // The router that says that a host is unreachable waited for ARP before: that is no delay.
    let unreached = hops(&network, "berlin", "203.0.113.77");
    let expected = [
        ("gw.example", 250),
        ("silent1", 2_000),
        ("ae1.core.example", 2_000),
        ("198.51.100.13", 2_000),
    ];
    assert_eq!(unreached, named(&expected));
    assert_eq!(network.nodes(), 8);
    assert_eq!((report.files[0].taken, report.bad_count()), (2, 0));
    let skipped: Vec<_> = report.skipped.iter().map(|count| count.what).collect();
    assert_eq!(
        skipped,
        [
            "several routers answered at one hop: the one that answered most was taken",
            "the trace did not reach its destination"
        ]
    );
}

#[test]
fn other_programs_and_families_print_the_same_in_other_words() {
    let (network, report) = import(&["six.txt", "tracert.txt"]);
    assert_eq!((report.bad_count(), network.nodes()), (0, 4 + 5));
    let expected = [("fe80::1", 200), ("r2.example", 2_160), ("www.example.org", 2_860)];
    assert_eq!(hops(&network, "2001:db8:1::5", "2001:db8:9::80"), named(&expected));
    let expected =
        [("192.168.7.1", 250), ("silent1", 2_620), ("edge.example", 2_620), ("example.net", 2_000)];
    assert_eq!(hops(&network, "tracert", "203.0.113.9"), named(&expected));
}

#[test]
fn private_addresses_are_other_routers_elsewhere() {
    let text = std::fs::read(sample("berlin.txt")).unwrap();
    let mut importer = Importer::new();
    for name in ["one.txt", "two.txt"] {
        importer.read(&text[..], Path::new(name), None, &mut |_| ()).unwrap();
    }
    let (network, report) = importer.finish(&ImportOptions::default()).unwrap();
    // Source, gateway and silent router of each; the others are the same.
    assert_eq!(network.nodes(), 8 + 3);
    let [one, two] = ["one", "two"].map(|from| path(&network, from, "203.0.113.9"));
    assert_ne!(one[0], two[0]);
    assert_eq!(one[3..], two[3..]);
    assert!(report.skipped.iter().any(|count| count.what.contains("private address already")));
}

#[test]
fn the_median_of_several_traces_counts() {
    let trace = |ms: u32| {
        format!(
            "traceroute to 192.0.2.2 (192.0.2.2), 30 hops max\n 1 192.0.2.1 1.0 ms\n 2 192.0.2.2 {ms} ms\n"
        )
    };
    let text: String = [5, 9, 101].map(trace).concat();
    let (network, _) = import_text(Format::Traceroute, &text);
    let expected = [("192.0.2.1", 500), ("192.0.2.2", 4_000)];
    assert_eq!(hops(&network, "some", "192.0.2.2"), named(&expected));
}

#[test]
fn traces_that_cross_each_other_lead_to_their_end() {
    // To the same host by a b c and by c b d: their entries would send packets from b to c and back.
    let text = "traceroute to 192.0.2.99 (192.0.2.99), 30 hops max
1 192.0.2.1 1 ms
2 192.0.2.2 2 ms
3 192.0.2.3 3 ms
4 192.0.2.99 4 ms
traceroute to 192.0.2.99 (192.0.2.99), 30 hops max
1 192.0.2.3 1 ms
2 192.0.2.2 2 ms
3 192.0.2.4 3 ms
4 192.0.2.99 4 ms
";
    let (network, report) = import_text(Format::Traceroute, text);
    for from in ["some", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"] {
        assert!(hops(&network, from, "192.0.2.99").len() <= 4);
    }
    assert_eq!(report.entries, 5);
}

#[test]
fn a_circle_ends_a_trace_and_bad_addresses_are_silent() {
    let text = "traceroute to 192.0.2.99 (192.0.2.99), 30 hops max
1 192.0.2.1 1 ms
2 127.0.0.1 2 ms
3 192.0.2.3 3 ms
4 192.0.2.1 4 ms
5 192.0.2.3 5 ms
";
    let (network, report) = import_text(Format::Traceroute, text);
    assert_eq!(network.nodes(), 4);
    assert_eq!(report.bad[0].what, "no router can have this address");
    assert!(report.skipped.iter().any(|count| count.what.contains("loop")));
}

#[test]
fn bad_lines_are_reported_and_the_others_taken() {
    let text = "1  192.0.2.1  1 ms
traceroute to 192.0.2.9 (192.0.2.9), 30 hops max
 1  192.0.2.1  1 ms
 2  192.0.2.2  soon
 300  192.0.2.3  3 ms
 3  gw (not an address)  3 ms
 2  192.0.2.5  2 ms
what is this?
 9  192.0.2.9  9 ms
";
    let hop = "this is not a hop of a traceroute";
    let answers = "the answers of this hop cannot be read";
    let expected = [
        (1, "a hop before any `traceroute to` line"),
        (4, answers),
        (5, answers),
        (6, answers),
        (7, hop),
        (8, hop),
    ];
    assert_eq!(bad(Format::Traceroute, text), expected);
}

#[test]
fn long_lines_and_bytes_that_are_no_text_are_reported() {
    let mut text = b"traceroute to 192.0.2.9 (192.0.2.9)\n 1 192.0.2.1 1 ms\n".to_vec();
    text.extend([b'x'; 40_000]);
    text.extend(b"\n \xff\xfe\n 2 192.0.2.9 2 ms");
    let mut importer = Importer::new();
    importer.read(&text[..], Path::new("some"), None, &mut |_| ()).unwrap();
    let (network, report) = importer.finish(&ImportOptions::default()).unwrap();
    assert_eq!(hops(&network, "some", "192.0.2.9").len(), 2);
    let bad: Vec<_> = report.bad.iter().map(|count| (count.what, count.examples[0].line)).collect();
    assert_eq!(bad, [("the line is too long", 3), ("the line is not UTF-8 text", 4)]);
    assert_eq!(report.files[0].lines, 5);
}
