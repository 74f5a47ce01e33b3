//! Suggestions for an unknown name.

/// Least similarity of a suggestion, by Jaro and Winkler.
const ALIKE: f64 = 0.8;
/// Most suggestions.
const SHOWN: usize = 3;

/// The known names that are most similar to a name.
pub(crate) fn alike<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let likeness = |known: &str| match strsim::damerau_levenshtein(name, known) {
        _ if !name.is_empty() && known.starts_with(name) => 2.0,
        1 => 1.0,
        _ => strsim::jaro_winkler(name, known),
    };
    let likely = known.into_iter().map(|known| (likeness(known), known));
    let mut likely: Vec<_> = likely.filter(|(likeness, _)| *likeness >= ALIKE).collect();
    likely.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.cmp(other)));
    likely.dedup();
    likely.into_iter().map(|(_, known)| known).take(SHOWN).collect()
}
