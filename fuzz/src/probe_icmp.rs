//! Any ICMP message as ping, trace and the search for an MTU read it: replies of sockets of each kind,
//! what errors quote, and their extensions. What is shown has no control characters.

use probe::tools::icmp::{Family, cause, extensions, quoted_sequence, reply};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    for family in [Family::V4, Family::V6] {
        for raw in [false, true] {
            if let Ok(Some(echo)) = reply(family, raw, data) {
                assert!(data.ends_with(echo.payload));
            }
        }
        quoted_sequence(family, data);
        if let [kind, code, ..] = data {
            cause(family, *kind, *code);
        }
    }
    if let Ok(texts) = extensions(data) {
        assert!(texts.iter().all(|text| !text.chars().any(char::is_control)));
    }
}
