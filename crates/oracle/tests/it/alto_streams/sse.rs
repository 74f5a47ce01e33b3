//! How events are written.

use crate::alto_streams::client::event;
use oracle::alto::updates::sse::{Event, Pieces};
use proptest::prelude::*;
use serde_json::{Value, json};

fn write(value: &Value) -> (Vec<usize>, String) {
    let name = "application/alto-costmap+json,1".to_owned();
    let pieces: Vec<_> = Pieces::new(Event { name, data: value.to_string().into() }).collect();
    let text = String::from_utf8(pieces.concat()).expect("UTF-8");
    (pieces.iter().map(|piece| piece.len()).collect(), text)
}

/// RFC 8895 section 9.5: lines are limited in length, and line breaks change nothing.
#[test]
fn a_large_map_is_cut_into_lines_and_pieces() {
    let row: serde_json::Map<String, Value> =
        (0..2000).map(|pid| (format!("PID{pid},\"x\\"), json!(pid))).collect();
    let map = json!({ "cost-map": { "a,b": row.clone(), "c": row.clone(), "d": row } });
    let (pieces, text) = write(&map);
    assert!(text.lines().all(|line| line.len() < 4096 + 64), "a line is too long");
    assert!(pieces.len() > 1 && pieces.iter().all(|piece| *piece < (64 << 10) + 8192));
    assert_eq!(event(&text).expect("an event").data, map);
    assert!(text.ends_with("\n\n") && text.matches("\n\n").count() == 1);
}

/// What could be taken for something else, and an end of a string.
const LETTERS: [&str; 8] = ["\nevent: ", "\ndata: ", "\"", "\\", ",", "x", "é", "end"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    /// RFC 8895 section 11: whatever text is in a value, nothing in it looks like a field of an event.
    #[test]
    fn any_text_survives(letters in prop::collection::vec(0..8_usize, 0..6000)) {
        let letters = letters.iter().map(|letter| LETTERS[*letter]);
        let text: String = letters.collect();
        let texts: Vec<_> = text.split("end").collect();
        let map = json!({ "texts": texts });
        let (_, text) = write(&map);
        prop_assert!(text.lines().skip(1).all(|line| line.is_empty() || line.starts_with("data: ")));
        prop_assert_eq!(event(&text).expect("an event").data, map);
    }
}
