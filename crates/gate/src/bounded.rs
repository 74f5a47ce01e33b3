//! Lists that are read from a parser's process, in bounded memory.

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};
use std::{fmt, marker::PhantomData};

/// Reads a list of at most `N`; of few bytes a long one can be made that takes much memory.
///
/// # Errors
/// When it is longer, or the format's.
pub(crate) fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct List<T, const N: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for List<T, N> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {N}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(one) = from.next_element()? {
                if list.len() >= N {
                    return Err(A::Error::invalid_length(list.len() + 1, &self));
                }
                list.push(one);
            }
            Ok(list)
        }
    }
    deserializer.deserialize_seq(List::<T, N>(PhantomData))
}
