//! Days of the week and hours of the day.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{fmt, str::FromStr};

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl Day {
    /// All, from Monday on.
    pub const ALL: [Self; 7] =
        [Self::Mon, Self::Tue, Self::Wed, Self::Thu, Self::Fri, Self::Sat, Self::Sun];
}

/// Minutes since midnight, up to 24:00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hour(pub u16);

/// A text is not a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a time of day from \"00:00\" to \"24:00\"")]
pub struct BadHour;

impl FromStr for Hour {
    type Err = BadHour;

    fn from_str(text: &str) -> Result<Self, BadHour> {
        let two = |digits: &str| {
            let good = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            good.then(|| digits.parse::<u16>().ok()).flatten().ok_or(BadHour)
        };
        let (hours, minutes) = text.split_once(':').ok_or(BadHour)?;
        let (hours, minutes) = (two(hours)?, two(minutes)?);
        let total = hours * 60 + minutes;
        if minutes < 60 && total <= 24 * 60 { Ok(Self(total)) } else { Err(BadHour) }
    }
}

impl fmt::Display for Hour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl<'de> Deserialize<'de> for Hour {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Hour {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

config::text_schema! {
    Hour => "time of day", r"^[0-2][0-9]:[0-5][0-9]$", ["08:30", "24:00"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_read_strictly() {
        assert_eq!("08:30".parse(), Ok(Hour(510)));
        assert_eq!("24:00".parse(), Ok(Hour(1440)));
        assert_eq!(Hour(510).to_string(), "08:30");
        for text in ["8:30", "24:01", "08:60", "0830", "+8:00", "08:3"] {
            assert_eq!(text.parse::<Hour>(), Err(BadHour), "{text}");
        }
    }
}
