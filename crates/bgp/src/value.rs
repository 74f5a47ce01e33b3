//! AS numbers and communities as operators write them.
//!
//! RFC 6793 (four-octet AS numbers), RFC 1997 (communities), RFC 8092 (large communities), RFC 8326
//! (GRACEFUL_SHUTDOWN). A community is written `65000:1` or by its registered name, a large one
//! `65000:1:1`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr};

/// An autonomous system number of four octets (RFC 6793).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Asn(pub u32);

impl Asn {
    /// AS_TRANS stands for a number of four octets towards a speaker that knows only two (RFC 6793
    /// section 9).
    pub const TRANS: Self = Self(23456);

    /// The number in two octets, if it fits.
    pub fn two_octets(self) -> Option<u16> {
        u16::try_from(self.0).ok()
    }

    /// Whether a speaker may have this number: not 0 (RFC 7607), AS_TRANS (RFC 6793 section 9) or
    /// one of the last numbers (RFC 7300).
    pub fn is_usable(self) -> bool {
        !matches!(self.0, 0 | 23456 | 65535 | u32::MAX)
    }
}

impl fmt::Display for Asn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A text is not a community.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommunityError {
    /// Neither two numbers nor a registered name.
    #[error(
        "`{0}` is not a community: write two numbers up to 65535 as in `65000:1`, or a registered name such as `no-export`"
    )]
    Community(String),
    /// Not three numbers.
    #[error(
        "`{0}` is not a large community: write three numbers up to 4294967295 as in `65000:1:1`"
    )]
    Large(String),
}

/// A community (RFC 1997, "COMMUNITIES attribute").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Community(pub u32);

impl Community {
    /// The sender is about to go: prefer any other path (RFC 8326 section 5).
    pub const GRACEFUL_SHUTDOWN: Self = Self(0xffff_0000);
    /// Discard traffic to the prefix (RFC 7999).
    pub const BLACKHOLE: Self = Self(0xffff_029a);
    /// Not to be advertised outside the confederation (RFC 1997, "Well-known Communities").
    pub const NO_EXPORT: Self = Self(0xffff_ff01);
    /// Not to be advertised to any peer (RFC 1997, "Well-known Communities").
    pub const NO_ADVERTISE: Self = Self(0xffff_ff02);
    /// Not to be advertised to external peers, not even in the confederation (RFC 1997, "Well-known Communities").
    pub const NO_EXPORT_SUBCONFED: Self = Self(0xffff_ff03);
    /// Not to be advertised to bilateral peers (RFC 3765).
    pub const NO_PEER: Self = Self(0xffff_ff04);

    /// The registered names, as they may be written in the configuration.
    const NAMES: [(&'static str, Self); 6] = [
        ("graceful-shutdown", Self::GRACEFUL_SHUTDOWN),
        ("blackhole", Self::BLACKHOLE),
        ("no-export", Self::NO_EXPORT),
        ("no-advertise", Self::NO_ADVERTISE),
        ("no-export-subconfed", Self::NO_EXPORT_SUBCONFED),
        ("no-peer", Self::NO_PEER),
    ];
}

impl fmt::Display for Community {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0 >> 16, self.0 & 0xffff)
    }
}

impl FromStr for Community {
    type Err = CommunityError;

    fn from_str(text: &str) -> Result<Self, CommunityError> {
        if let Some((_, value)) = Self::NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*value);
        }
        let error = || CommunityError::Community(text.to_owned());
        let (high, low) = text.split_once(':').ok_or_else(error)?;
        let high: u16 = number(high).ok_or_else(error)?;
        let low: u16 = number(low).ok_or_else(error)?;
        Ok(Self(u32::from(high) << 16 | u32::from(low)))
    }
}

/// A large community (RFC 8092 section 3): global administrator and two local parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LargeCommunity(pub u32, pub u32, pub u32);

impl fmt::Display for LargeCommunity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.0, self.1, self.2)
    }
}

impl FromStr for LargeCommunity {
    type Err = CommunityError;

    fn from_str(text: &str) -> Result<Self, CommunityError> {
        let error = || CommunityError::Large(text.to_owned());
        let mut parts = text.split(':').map(number);
        let mut next = || parts.next().flatten().ok_or_else(error);
        let value = Self(next()?, next()?, next()?);
        if parts.next().is_some() { Err(error()) } else { Ok(value) }
    }
}

/// A decimal number without sign; RFC 8092 section 5 forbids leading zeros in large communities.
fn number<T: FromStr>(text: &str) -> Option<T> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) { None } else { text.parse().ok() }
}

/// Serde through the text form.
macro_rules! as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

as_text!(Community, LargeCommunity);

config::text_schema! {
    Community => "community", r"^([0-9]+:[0-9]+|[a-z-]+)$", ["65000:1", "no-export"];
    LargeCommunity => "large community", r"^[0-9]+:[0-9]+:[0-9]+$", ["65000:1:1"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communities_are_read_and_written_back() {
        for (text, value) in [("12:100", 12 << 16 | 100), ("0:0", 0), ("65535:65535", u32::MAX)] {
            assert_eq!(text.parse(), Ok(Community(value)));
            assert_eq!(Community(value).to_string(), text);
        }
        assert_eq!("graceful-shutdown".parse(), Ok(Community::GRACEFUL_SHUTDOWN));
        assert_eq!(Community::GRACEFUL_SHUTDOWN.to_string(), "65535:0");
        assert_eq!(Community::BLACKHOLE.to_string(), "65535:666");
        for text in ["", "1", "1:", ":1", "65536:1", "1:65536", "1:2:3", "+1:2", "-1:2", " 1:2"] {
            assert_eq!(
                text.parse::<Community>(),
                Err(CommunityError::Community(text.into())),
                "{text}"
            );
        }
    }

    #[test]
    fn large_communities_are_read_and_written_back() {
        let value = LargeCommunity(4_294_967_295, 0, 7);
        assert_eq!("4294967295:0:7".parse(), Ok(value));
        assert_eq!(value.to_string(), "4294967295:0:7");
        for text in ["1:2", "1:2:3:4", "1::3", "01:2:3", "4294967296:1:1", "a:b:c"] {
            assert!(text.parse::<LargeCommunity>().is_err(), "{text}");
        }
    }

    #[test]
    fn reserved_as_numbers_are_not_usable() {
        assert!(Asn(12).is_usable() && Asn(4_200_000_000).is_usable());
        for asn in [0, 23456, 65535, u32::MAX] {
            assert!(!Asn(asn).is_usable(), "{asn}");
        }
    }
}
