//! What the section can say, and what is found wrong with it.

use super::*;

fn problems(text: &str) -> Vec<String> {
    let config: ArchiveConfig = toml::from_str(text).expect("a section");
    config.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn an_empty_section_is_fine_and_unknown_keys_are_refused() {
    assert_eq!(problems(""), Vec::<String>::new());
    assert_eq!(problems("keep = '30days'\nkeep_hours = '1year'\nkeep_days = '10years'"), [""; 0]);
    assert!(toml::from_str::<ArchiveConfig>("kept = '1day'").is_err());
}

#[test]
fn every_value_that_makes_no_sense_is_named() {
    for (text, key) in [
        ("queue = 0", "queue"),
        ("queue = 100000000", "queue"),
        ("keep = '1h'", "keep"),
        ("keep_hours = '3days'", "keep_hours"),
        ("keep_days = '2days'", "keep_days"),
        ("keep_days = '300years'", "keep_days"),
        ("keep = '0s'", "keep_hours"),
    ] {
        let found = problems(text);
        assert!(found.first().is_some_and(|it| it.starts_with(&format!("{key}: "))), "{found:?}");
    }
    assert_eq!(problems("keep = '0s'\nkeep_hours = '0s'"), [""; 0]);
}
