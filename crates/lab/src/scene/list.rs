//! A value that is one thing or a list of them: `"a"` or `["a", "b"]`.

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
};
use std::{fmt, marker::PhantomData, ops::Deref};

/// None, one or more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct List<T> {
    items: Vec<T>,
    /// Whether it was written without brackets.
    #[serde(skip)]
    bare: bool,
}

impl<T> List<T> {
    /// The key of one of them, when `key` is that of the list.
    pub(crate) fn key(&self, key: &str, index: usize) -> String {
        if self.bare { key.to_owned() } else { format!("{key}[{index}]") }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, bare: false }
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotes, or a list of them")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<List<T>, E> {
        let item = T::deserialize(serde::de::value::StrDeserializer::new(text))?;
        Ok(List { items: vec![item], bare: true })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<List<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(Into::into)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ListVisitor(PhantomData))
    }
}
