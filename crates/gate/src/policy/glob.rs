//! Patterns of file names: `*` is any characters, `?` is one, upper and lower case are alike.

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob(Vec<char>);

/// Whether a character means something to others who read patterns, and stands for itself here.
pub(crate) fn is_foreign(c: char) -> bool {
    matches!(c, '[' | ']' | '{' | '}' | '\\')
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        Self(lower(pattern).collect())
    }

    /// Whether a name fits; in time of at most the product of both lengths.
    pub(super) fn fits(&self, name: &str) -> bool {
        let name: Vec<char> = lower(name).collect();
        let (mut p, mut n) = (0, 0);
        // After the last star, and where in the name what it stands for ends as yet.
        let mut star = None;
        while n < name.len() {
            match self.0.get(p) {
                Some('*') => {
                    star = Some((p + 1, n));
                    p += 1;
                }
                Some(c) if *c == '?' || name.get(n) == Some(c) => {
                    p += 1;
                    n += 1;
                }
                _ => {
                    let Some((after, end)) = star else { return false };
                    star = Some((after, end + 1));
                    p = after;
                    n = end + 1;
                }
            }
        }
        self.0.iter().skip(p).all(|c| *c == '*')
    }
}

fn lower(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, name, fits) in [
            ("*.iso", "Debian-12.ISO", true),
            ("*.iso", "debian.iso.torrent", false),
            ("*movie*", "a movie.avi", true),
            ("track??.mp3", "track01.mp3", true),
            ("track??.mp3", "track1.mp3", false),
            ("*", "", true),
            ("a*b*c", "aXXbXXbc", true),
            ("a*b*c", "aXXbXXbd", false),
            ("", "a", false),
        ] {
            assert_eq!(Glob::new(pattern).fits(name), fits, "{pattern} {name}");
        }
    }

    fn naive(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|skip| naive(rest, &name[skip..])),
            Some(('?', rest)) => !name.is_empty() && naive(rest, &name[1..]),
            Some((c, rest)) => name.first() == Some(c) && naive(rest, &name[1..]),
        }
    }

    proptest! {
        #[test]
        fn the_quick_way_agrees_with_the_naive_one(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(Glob::new(&pattern).fits(&name), naive(&chars(&pattern), &chars(&name)));
        }
    }
}
