//! The names that engines give flows: those that rules can ask for.

use crate::event::ANNOUNCED;
use classify::{
    application::Application,
    label::{Category, UNKNOWN},
    ndpi_names, p2p,
    signatures::SignatureConfig,
};
use config::alike;

/// Why no flow is ever called `application` or `application/part` with these signatures, and what may
/// have been meant; none where one can be.
pub(super) fn never_named(name: &str, signatures: &[SignatureConfig]) -> Option<String> {
    let (application, part) = name.split_once('/').map_or((name, None), |(n, p)| (n, Some(p)));
    let ndpi = ndpi_names();
    let others = [UNKNOWN].into_iter().chain(ANNOUNCED);
    let others = others.chain(signatures.iter().map(|signature| &*signature.name));
    // What may stand where this stands, and what is before it.
    let (known, word, before): (Vec<&str>, &str, &str) = match (p2p::parts(application), part) {
        (Some(_), None) => return None,
        (Some(parts), Some(part)) => (parts.collect(), part, application),
        // Who knows no names takes all.
        (None, _) if ndpi.is_empty() => return None,
        (None, Some(part)) if ndpi.contains(application) => {
            (ndpi.iter().map(String::as_str).collect(), part, application)
        }
        (None, _) => {
            let ours = Application::ALL.iter().map(|one| one.name());
            let all = ours.chain(others).chain(ndpi.iter().map(String::as_str));
            (all.collect(), application, "")
        }
    };
    if part.is_some() != before.is_empty() && known.contains(&word) {
        return None;
    }
    let whole = |known: &str| match before {
        "" => format!("{known:?}"),
        _ => format!("\"{before}/{known}\""),
    };
    let meant: Vec<String> = alike(word, known).into_iter().map(whole).collect();
    let hint = if Category::ALL.iter().any(|category| category.name() == name) {
        "it is a category, for `--category`, or `category` in a rule".to_owned()
    } else if meant.is_empty() {
        "`nigh gate classify` shows the names in a capture; or add a [[gate.signature]] with this name"
            .to_owned()
    } else {
        format!("did you mean {}?", meant.join(" or "))
    };
    Some(format!("no flow can have the name {name:?}: {hint}"))
}
