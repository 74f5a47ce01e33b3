//! The names that nDPI gives flows.

use super::{form::can_be_read, guess::written};
use ndpi::{Detector, Protocol};
use std::{collections::HashSet, sync::LazyLock};

/// Names of nDPI's protocols, as labels have them.
static NDPI: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let Ok(detector) = Detector::open() else { return HashSet::new() };
    let numbers = 0..u16::try_from(detector.count()).unwrap_or(u16::MAX);
    let names = numbers.filter_map(|number| detector.name(Protocol(number)).map(written));
    names.filter(|name| can_be_read(name)).collect()
});

/// The names that nDPI gives flows, as labels have them; none where the library cannot be used.
pub fn ndpi_names() -> &'static HashSet<String> {
    &NDPI
}
