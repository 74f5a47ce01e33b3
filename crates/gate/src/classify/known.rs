//! The names that engines give flows: those that rules can ask for.

use super::{form::can_be_read, guess::written};
use crate::{
    files::ANNOUNCED,
    p2p,
    policy::UNKNOWN,
    signatures::{SignatureConfig, own},
};
use ndpi::{Detector, Protocol};
use std::{collections::HashSet, sync::LazyLock};

/// Names of nDPI's protocols, as labels have them; none where the library cannot be used.
static NDPI: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let Ok(detector) = Detector::open() else { return HashSet::new() };
    let numbers = 0..u16::try_from(detector.count()).unwrap_or(u16::MAX);
    let names = numbers.filter_map(|number| detector.name(Protocol(number)).map(written));
    names.filter(|name| can_be_read(name)).collect()
});

/// Whether a flow can be called `application` or `application/part`, with these signatures.
pub(crate) fn can_be_named(name: &str, signatures: &[SignatureConfig]) -> bool {
    let (application, part) = name.split_once('/').map_or((name, None), |(n, p)| (n, Some(p)));
    if let Some(mut parts) = p2p::parts(application) {
        return part.is_none_or(|part| parts.any(|one| one == part));
    }
    let signed = |list: &[SignatureConfig]| list.iter().any(|one| one.name == application);
    let whole = application == UNKNOWN
        || ANNOUNCED.contains(&application)
        || signed(signatures)
        || signed(&own());
    let ndpi = |name: &str| NDPI.is_empty() || NDPI.contains(name);
    whole && part.is_none() || ndpi(application) && part.is_none_or(ndpi)
}
