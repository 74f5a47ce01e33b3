//! Suggestions for an unknown name: "did you mean".

/// Most suggestions.
const SHOWN: usize = 3;
/// Longest name that is compared, in characters.
const LONGEST: usize = 64;

/// The known names that may have been meant by `name`, the best first: those that begin with it, then
/// those that are a few typing errors away.
pub fn alike<T: AsRef<str> + Ord>(name: &str, known: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut best = Vec::with_capacity(SHOWN + 1);
    for known in known {
        let Some(rank) = rank(name, known.as_ref()) else { continue };
        let found = (rank, known);
        if !best.contains(&found) {
            best.push(found);
            best.sort();
            best.truncate(SHOWN);
        }
    }
    best.into_iter().map(|(_, known)| known).collect()
}

/// The fewer the better; none for a name that was not meant.
fn rank(name: &str, known: &str) -> Option<usize> {
    let (length, known_length) = (name.chars().count(), known.chars().count());
    if length == 0 || known_length == 0 || length > LONGEST {
        return None;
    }
    if known.starts_with(name) {
        return Some(0);
    }
    // Short names may have one wrong character, or two too many at the end.
    let limit = (known_length / 3).max(if name.starts_with(known) { 2 } else { 1 });
    if length.abs_diff(known_length) > limit {
        return None;
    }
    // Characters that are inserted, deleted, replaced or swapped with a neighbour.
    let distance = strsim::osa_distance(name, known);
    // Names that differ in every character are other names.
    (distance <= limit && distance < length.max(known_length)).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_nearly_right_are_suggested() {
        let known = ["listen", "limit", "name", "c", "r1", "r2", "frankfort", "frankfurt"];
        for (name, right) in [
            ("nmae", &["name"][..]),
            ("na", &["name"]),
            ("names", &["name"]),
            ("lisden", &["listen"]),
            ("li", &["limit", "listen"]),
            ("frankfurd", &["frankfurt", "frankfort"]),
            ("r3", &["r1", "r2"]),
            ("r", &["r1", "r2"]),
            ("c#x", &["c"]),
            ("x", &[]),
            ("", &[]),
            ("maroon", &[]),
            ("colour", &[]),
        ] {
            assert_eq!(alike(name, known), right, "{name}");
        }
    }

    #[test]
    fn suggestions_are_few_and_differ() {
        assert_eq!(alike("a", ["ad", "ab", "ac", "ab", "aa"]), ["aa", "ab", "ac"]);
        assert_eq!(alike("a", ["", "a"]), ["a"]);
        let long = "x".repeat(LONGEST + 1);
        assert!(alike(&long, [&long]).is_empty());
    }
}
