//! Traces in JSON, and reports of mtr.

use super::*;

#[test]
fn all_programs_tell_the_same_path() {
    let expected = [("silent1", 2_000), ("core.example", 2_000)];
    for (file, from) in
        [("mtr.json", "pc"), ("mtr-report.txt", "pc"), ("scamper.json", "192.0.2.7")]
    {
        let (network, report) = import(&[file]);
        let hops = hops(&network, from, "203.0.113.9");
        assert_eq!((hops.len(), report.bad_count()), (4, 0), "{file}");
        assert_eq!(hops[0], ("192.0.2.1".to_owned(), 250));
        assert_eq!(hops[1..3], named(&expected));
        assert_eq!(hops[3].1, 2_000);
    }
}

#[test]
fn probes_of_atlas_behind_the_same_private_addresses_are_apart() {
    let (network, report) = import(&["atlas.json"]);
    assert_eq!((report.bad_count(), report.files[0].taken), (0, 2));
    let delays = |from: &str, to: &str| -> Vec<u64> {
        hops(&network, from, to).into_iter().map(|(_, delay)| delay).collect()
    };
    // The link to the last router is one, so is its delay: 2 and 2.
    assert_eq!(delays("probe7", "203.0.113.9"), [250, 2_000, 2_000, 2_000]);
    assert_eq!(delays("probe8", "203.0.113.200"), [250, 2_000]);
    assert_ne!(
        path(&network, "probe7", "203.0.113.9")[0],
        path(&network, "probe8", "203.0.113.200")[0]
    );
}

#[test]
fn an_array_is_read_as_lines_are() {
    let text = std::fs::read_to_string(sample("atlas.json")).unwrap();
    let lines = text.trim().trim_start_matches('[').trim_end_matches(']').replace(",\n{", "\n{");
    let (one, _) = import(&["atlas.json"]);
    let (two, report) = import_text(Format::Atlas, &lines);
    assert_eq!((one.nodes(), one.links()), (two.nodes(), two.links()));
    assert_eq!(report.files[0].lines, 2);
}

#[test]
fn bad_values_are_reported_and_the_others_taken() {
    let good = r#"{"type":"trace","src":"192.0.2.7","dst":"192.0.2.9","hops":[{"addr":"192.0.2.9","probe_ttl":1,"rtt":1.0}]}"#;
    let text =
        format!("{{\"type\":\"trace\"\n{good}\n{{\"type\":\"trace\",\"src\":7}}\n{{\"no\":1}}\n");
    let expected = [
        (1, "the line is not a JSON value"),
        (3, "this is not a trace"),
        (4, "a record has no type"),
    ];
    assert_eq!(bad(Format::Scamper, &text), expected);

    let good = r#"{"prb_id":1,"dst_addr":"192.0.2.9","result":[{"hop":1,"result":[{"from":"192.0.2.9","rtt":1}]}]}"#;
    let text = format!("[{good},\n{{\"prb_id\":-1}},\n{good},\n{{\"prb_id\"]");
    let expected =
        [(2, "this is not a traceroute of Atlas"), (4, "the text is not JSON from here on")];
    assert_eq!(bad(Format::Atlas, &text), expected);

    let good = std::fs::read_to_string(sample("mtr.json")).unwrap();
    let text = format!("{{\"report\":1}}{good}x");
    let expected = [(1, "this is not a report of mtr"), (12, "the text is not JSON from here on")];
    assert_eq!(bad(Format::Mtr, &text), expected);

    let text = "  1.|-- 192.0.2.1  0.0% 1 1 1 1 1 1\nHOST: pc Loss%\n 1.|-- 192.0.2.1 0.0% 10 1 1 1 1 0\n 2.|-- 192.0.2.2 0.0%\n";
    let expected =
        [(1, "a hop before any `HOST:` line"), (4, "this is not a hop of a report of mtr")];
    assert_eq!(bad(Format::MtrReport, text), expected);
}

#[test]
fn a_value_without_an_end_does_not_fill_memory() {
    let text = format!("[\"{}", "x".repeat(40 << 20));
    let mut importer = Importer::new();
    let error = importer
        .read(text.as_bytes(), Path::new("x"), Some(Format::Atlas), &mut |_| ())
        .unwrap_err();
    assert!(error.to_string().contains("one value in it is too long"), "{error}");
}

/// Names are shown in terminals.
#[test]
fn control_characters_of_names_are_replaced() {
    let text = std::fs::read_to_string(sample("mtr.json")).unwrap();
    let text = text.replacen("\"src\": \"", "\"src\": \"\\u001b[2J", 1);
    let (network, _) = import_text(Format::Mtr, &text);
    let names: Vec<_> = (0..network.nodes()).map(|node| network.name(NodeId(node))).collect();
    assert!(names.iter().any(|name| name.starts_with("\u{fffd}[2J")), "{names:?}");
    assert!(!names.iter().any(|name| name.contains(char::is_control)), "{names:?}");
}
