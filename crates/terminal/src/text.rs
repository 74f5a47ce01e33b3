//! The state as text for people: plain tables without borders, so that lines can be grepped.

use comfy_table::presets;
pub use comfy_table::{CellAlignment, Table};
use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A table with a header; columns from `numbers` on are aligned to the right.
pub fn table<const N: usize>(header: [&str; N], numbers: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i >= numbers {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A table's lines, none with blanks at its end.
pub fn lines(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Time since `unix` (seconds since 1970), to the second.
pub fn ago(unix: f64) -> String {
    since(unix, SystemTime::now())
}

fn since(unix: f64, now: SystemTime) -> String {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = now.saturating_sub(Duration::try_from_secs_f64(unix).unwrap_or_default());
    age(since.as_secs_f64())
}

/// A time, to the second.
pub fn age(seconds: f64) -> String {
    humantime::format_duration(Duration::from_secs(seconds as u64)).to_string()
}

/// Bytes with one decimal place.
pub fn size(bytes: u64) -> String {
    let (unit, word) = match bytes {
        1_000_000_000.. => (1e9, "GB"),
        1_000_000.. => (1e6, "MB"),
        1000.. => (1e3, "kB"),
        _ => return format!("{bytes} B"),
    };
    format!("{:.1} {word}", bytes as f64 / unit)
}

/// The counts that are not zero, such as `5 passed, 3 dropped`.
pub fn counts(counts: &BTreeMap<String, u64>) -> String {
    let counts = counts.iter().filter(|(_, count)| **count > 0);
    let counts: Vec<_> =
        counts.map(|(name, count)| format!("{count} {}", name.replace('_', " "))).collect();
    if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }
}

/// A number in at most six places.
pub fn short(number: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(size, _)| number >= *size) {
        Some((size, unit)) => format!("{:.1}{unit}", number / size),
        None => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_number_has_six_places_at_most() {
        let numbers = [0.0, 999.0, 1000.0, 12_345.0, 999_949.0, 3e12];
        assert_eq!(numbers.map(short), ["0", "999", "1.0k", "12.3k", "999.9k", "3.0T"]);
    }

    #[test]
    fn ages_sizes_and_counts_are_for_people() {
        assert_eq!([-1.0, 0.9, 61.5].map(age), ["0s", "0s", "1m 1s"]);
        let sizes = [999, 1000, 2_500_000, 3_000_000_000];
        assert_eq!(sizes.map(size), ["999 B", "1.0 kB", "2.5 MB", "3.0 GB"]);
        let mut all = BTreeMap::from([("bad_code".to_owned(), 0)]);
        assert_eq!(counts(&all), "none");
        all.extend([("over_rate".to_owned(), 3), ("passed".to_owned(), 5)]);
        assert_eq!(counts(&all), "3 over rate, 5 passed");
    }

    #[test]
    fn numbers_are_aligned_to_the_right_and_no_line_ends_in_blanks() {
        let mut rows = table(["name", "count", "note"], 1);
        rows.add_row(["a", "7", "x"]);
        rows.add_row(["long name", "12345", ""]);
        let expected = ["name       count  note", "a              7     x", "long name  12345"];
        assert_eq!(lines(&rows), expected.join("\n") + "\n");
    }

    #[test]
    fn time_is_shown_to_the_second_and_is_never_less_than_none() {
        let now = UNIX_EPOCH + Duration::from_millis(90_061_900);
        assert_eq!(since(0.0, now), "1day 1h 1m 1s");
        assert_eq!(since(90_061.2, now), "0s");
        assert_eq!(since(1e9, now), "0s");
        assert_eq!(since(f64::NAN, now), "1day 1h 1m 1s");
    }
}
