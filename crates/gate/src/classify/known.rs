//! The names that engines give flows: those that rules can ask for.

use super::{form::can_be_read, guess::written};
use crate::{
    alike::alike,
    files::ANNOUNCED,
    label::Category,
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

/// Why no flow is ever called `application` or `application/part` with these signatures, and what may
/// have been meant; none where one can be.
pub(crate) fn never_named(name: &str, signatures: &[SignatureConfig]) -> Option<String> {
    let (application, part) = name.split_once('/').map_or((name, None), |(n, p)| (n, Some(p)));
    let own = own();
    let others = [UNKNOWN].into_iter().chain(ANNOUNCED);
    let others = others.chain(signatures.iter().chain(&own).map(|signature| &*signature.name));
    // What may stand where this stands, and what stands before it.
    let (known, said, before): (Vec<&str>, &str, &str) = match (p2p::parts(application), part) {
        (Some(_), None) => return None,
        (Some(parts), Some(part)) => (parts.collect(), part, application),
        // Who knows no names takes all.
        (None, _) if NDPI.is_empty() => return None,
        (None, Some(part)) if NDPI.contains(application) => {
            (NDPI.iter().map(String::as_str).collect(), part, application)
        }
        (None, _) => {
            let ours = p2p::Application::ALL.iter().map(|one| one.name());
            let all = ours.chain(others).chain(NDPI.iter().map(String::as_str));
            (all.collect(), application, "")
        }
    };
    if part.is_some() != before.is_empty() && known.contains(&said) {
        return None;
    }
    let whole = |known: &str| match before {
        "" => format!("{known:?}"),
        _ => format!("\"{before}/{known}\""),
    };
    let meant: Vec<String> = alike(said, known).into_iter().map(whole).collect();
    let hint = if Category::ALL.iter().any(|category| category.name() == name) {
        "it is a category, for `--category`, or `category` in a rule".to_owned()
    } else if meant.is_empty() {
        "`nigh gate classify` shows what those of a capture are called; or add a [[gate.signature]] of this \
         name"
            .to_owned()
    } else {
        format!("did you mean {}?", meant.join(" or "))
    };
    Some(format!("no flow is ever called {name:?}: {hint}"))
}
