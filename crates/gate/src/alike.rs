//! What may have been meant by a name that nobody knows.

/// How alike names are of which one may be meant for the other, by Jaro and Winkler.
const ALIKE: f64 = 0.8;
/// Most names that may be meant.
const SHOWN: usize = 3;

/// The known names that are most like what was said.
pub(crate) fn alike<'a>(said: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let likeness = |known: &str| match strsim::damerau_levenshtein(said, known) {
        _ if !said.is_empty() && known.starts_with(said) => 2.0,
        1 => 1.0,
        _ => strsim::jaro_winkler(said, known),
    };
    let likely = known.into_iter().map(|known| (likeness(known), known));
    let mut likely: Vec<_> = likely.filter(|(likeness, _)| *likeness >= ALIKE).collect();
    likely.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
    likely.dedup();
    likely.into_iter().map(|(_, known)| known).take(SHOWN).collect()
}
