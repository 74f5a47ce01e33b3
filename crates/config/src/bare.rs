//! Values of links and tests that used to be plain numbers and are still read as such: Mbit/s,
//! milliseconds, shares. They are written with their units: `100Mbit`, `5ms`, `1%`.

use crate::{BadDuration, BadRate, Rate, decimal, duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use std::{borrow::Cow, fmt, str::FromStr};

/// Bits a second; a plain number is Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bandwidth(pub u64);

impl FromStr for Bandwidth {
    type Err = BadRate;

    fn from_str(text: &str) -> Result<Self, BadRate> {
        match decimal::times(text.trim(), 1_000_000) {
            Some(bits) => Ok(Self(bits)),
            None => text.parse().map(|Rate(bits)| Self(bits)),
        }
    }
}

/// The schema of a [`Rate`], or a number.
impl JsonSchema for Bandwidth {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "bandwidth".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [Rate::json_schema(generator), { "type": "number", "minimum": 0 }] })
    }
}

/// In the form of [`Rate`].
impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Rate(self.0).fmt(f)
    }
}

impl Serialize for Bandwidth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(Bare("a rate such as `100Mbit`", |text: &str| text.parse().ok()))
    }
}

/// Mbit/s of a rate, or of a plain number.
///
/// # Errors
/// When the text is neither.
pub fn mbit(text: &str) -> Result<f64, BadRate> {
    text.trim().parse().or_else(|_| text.parse().map(|Rate(bits)| bits as f64 / 1e6))
}

/// Milliseconds of a duration, or of a plain number.
///
/// # Errors
/// When the text is neither.
pub fn milliseconds(text: &str) -> Result<f64, BadDuration> {
    text.trim().parse().or_else(|_| duration(text).map(|time| time.as_nanos() as f64 / 1e6))
}

/// A text is not a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a share of all packets such as `1%` or `0.01`")]
pub struct BadShare;

/// A share of a whole, from 0 to 1: a percentage, or a plain number.
///
/// # Errors
/// When the text is neither.
pub fn share(text: &str) -> Result<f64, BadShare> {
    let (number, whole) = text.trim().strip_suffix('%').map_or((text, 1.0), |text| (text, 100.0));
    let number: f64 = number.trim().parse().map_err(|_| BadShare)?;
    Ok(number / whole)
}

/// Reads [`mbit`] in a file: a text, or a number.
///
/// # Errors
/// When it is neither.
pub fn read_mbit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    deserializer
        .deserialize_any(Bare("Mbit/s, or a rate such as `100Mbit`", |text: &str| mbit(text).ok()))
}

/// Reads [`milliseconds`] in a file: a text, or a number.
///
/// # Errors
/// When it is neither.
pub fn read_milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let expected = "milliseconds, or a duration such as `5ms`";
    deserializer.deserialize_any(Bare(expected, |text: &str| milliseconds(text).ok()))
}

/// Reads [`share`] in a file: a text, or a number.
///
/// # Errors
/// When it is neither.
pub fn read_share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let expected = "a share such as `0.01` or `1%`";
    deserializer.deserialize_any(Bare(expected, |text: &str| share(text).ok()))
}

/// Reads a number as the text that it is written as.
struct Bare<F>(&'static str, F);

impl<T, F: Fn(&str) -> Option<T>> Visitor<'_> for Bare<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.1(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.1(&number.to_string())
            .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.1(&number.to_string())
            .ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.1(&number.to_string())
            .ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::value::{Error, F64Deserializer, StrDeserializer, U64Deserializer};

    #[test]
    fn a_number_alone_is_in_the_unit_that_it_always_had() {
        for (text, bits) in [
            ("100", 100_000_000),
            ("1.5", 1_500_000),
            ("100Mbit", 100_000_000),
            ("1G", 1_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Bandwidth(bits)), "{text}");
            assert_eq!(mbit(text), Ok(bits as f64 / 1e6), "{text}");
        }
        assert_eq!(Bandwidth(100_000_000).to_string(), "100Mbit");
        for (text, ms) in
            [("5", 5.0), ("5ms", 5.0), ("1.5s", 1500.0), ("0.29ms", 0.29), ("-1", -1.0)]
        {
            assert_eq!(milliseconds(text), Ok(ms), "{text}");
        }
        for (text, part) in [("0.01", 0.01), ("1%", 0.01), ("100%", 1.0), ("1", 1.0)] {
            assert_eq!(share(text), Ok(part), "{text}");
        }
        for text in ["", "fast", "1 packet", "%"] {
            assert!(text.parse::<Bandwidth>().is_err(), "{text}");
            assert!(mbit(text).is_err() && milliseconds(text).is_err() && share(text).is_err());
        }
    }

    #[test]
    fn files_have_texts_and_numbers() {
        let number = || U64Deserializer::<Error>::new(100);
        assert_eq!(Bandwidth::deserialize(number()), Ok(Bandwidth(100_000_000)));
        assert_eq!(read_milliseconds(number()), Ok(100.0));
        let part = || F64Deserializer::<Error>::new(0.5);
        assert_eq!(Bandwidth::deserialize(part()), Ok(Bandwidth(500_000)));
        assert_eq!(read_share(part()), Ok(0.5));
        let text = |text| StrDeserializer::<Error>::new(text);
        assert_eq!(Bandwidth::deserialize(text("1.5Gbit")), Ok(Bandwidth(1_500_000_000)));
        assert_eq!(read_mbit(text("1.5Gbit")), Ok(1500.0));
        let error = read_mbit(text("fast")).expect_err("no rate").to_string();
        assert!(error.contains("such as `100Mbit`"), "{error}");
    }
}
