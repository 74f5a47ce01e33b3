//! Settings in scenes: a table whose values are words, numbers, or tables of words and numbers.

use super::{
    LinkSettings, SettingsChange, Share,
    units::{self, time},
    words::Given,
};
use crate::Nanos;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};
use std::fmt;

/// A word, a number, yes or no.
struct Word(String);

/// A word or a table of them.
struct Value(Given);

struct WordVisitor;
struct ValueVisitor;
struct ChangeVisitor;

/// The forms that both visitors take as one word.
macro_rules! scalars {
    ($wrap:expr) => {
        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok($wrap(text.to_owned()))
        }
        fn visit_bool<E: Error>(self, yes: bool) -> Result<Self::Value, E> {
            Ok($wrap(yes.to_string()))
        }
        fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
            Ok($wrap(number.to_string()))
        }
        fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
            Ok($wrap(number.to_string()))
        }
        fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
            Ok($wrap(format!("{number:?}")))
        }
    };
}

impl Visitor<'_> for WordVisitor {
    type Value = Word;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word, a number, true or false")
    }

    scalars!(Word);
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word, a number, true or false, or a table of them")
    }

    scalars!(|text| Value(Given::Text(text)));

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some((name, Word(value))) = map.next_entry::<String, Word>()? {
            pairs.push((name, value));
        }
        Ok(Value(Given::Table(pairs)))
    }
}

impl<'de> Visitor<'de> for ChangeVisitor {
    type Value = SettingsChange;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of a link's settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SettingsChange, A::Error> {
        let mut change = SettingsChange::default();
        while let Some((key, Value(given))) = map.next_entry::<String, Value>()? {
            change.set(&key, &given).map_err(A::Error::custom)?;
        }
        Ok(change)
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(WordVisitor)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValueVisitor)
    }
}

impl<'de> Deserialize<'de> for SettingsChange {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ChangeVisitor)
    }
}

impl<'de> Deserialize<'de> for LinkSettings {
    /// What is not there is as in the default.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut settings = Self::default();
        SettingsChange::deserialize(from)?.apply(&mut settings);
        Ok(settings)
    }
}

impl Serialize for SettingsChange {
    /// Words, but the MTU as a number and `up` as true or false.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let words = self.words();
        let mut map = to.serialize_map(Some(words.len()))?;
        for (key, word) in words {
            match (key, self.mtu, self.up) {
                ("mtu", Some(mtu), _) => map.serialize_entry(key, &mtu)?,
                ("up", _, Some(up)) => map.serialize_entry(key, &up)?,
                _ => map.serialize_entry(key, &word)?,
            }
        }
        map.end()
    }
}

impl Serialize for LinkSettings {
    /// What differs from the default.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        SettingsChange::between(&Self::default(), self).serialize(to)
    }
}

impl<'de> Deserialize<'de> for Nanos {
    /// A time with its unit, as `1.5ms`.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        time(&text).ok_or_else(|| D::Error::custom(format!("`{text}`: {}", units::TIME)))
    }
}

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Share {
    /// A percentage, as `0.1%`, or a number below 1.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Word(text) = Word::deserialize(from)?;
        text.parse().map_err(|why| D::Error::custom(format!("`{text}`: {why}")))
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl std::str::FromStr for Nanos {
    type Err = &'static str;

    /// A time with its unit, as `1.5ms`.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        time(text).ok_or(units::TIME)
    }
}
