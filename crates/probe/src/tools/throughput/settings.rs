//! What a throughput test is to be, and the secret that joins its ends.

use config::{Problem, hex};
use ring::digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{fmt, str::FromStr, time::Duration};

/// Longest time that data are sent.
pub const LONGEST: Duration = crate::config::LONGEST_THROUGHPUT;
/// Least time that data are sent.
pub const LEAST: Duration = Duration::from_millis(100);
/// Most TCP connections side by side.
pub const MOST_STREAMS: u16 = 16;
/// Most bits a second that can be asked for.
pub const MOST_RATE: u64 = 400_000_000_000;
/// Most moments of a test.
pub const MOST_MOMENTS: usize = 300;
/// Payloads of datagrams, in bytes: room for the number, and what UDP over IPv4 holds.
const DATAGRAM: std::ops::RangeInclusive<u16> = 64..=65_507;
/// Time for meeting, and for what is still in flight at the end.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);

/// Over what data are sent.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP connections.
    #[default]
    Tcp,
    /// A psock session.
    Psock,
    /// Datagrams in even distances.
    Udp,
}

impl Transport {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Psock => "psock",
            Self::Udp => "udp",
        }
    }
}

/// A throughput test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Over what data are sent.
    pub transport: Transport,
    /// From the other station to this one.
    pub reverse: bool,
    /// How long data are sent.
    #[serde(with = "humantime_serde")]
    pub duration: Duration,
    /// Most bits a second, such as 100M; UDP needs it, TCP and psock take what they get without.
    pub rate: Option<u64>,
    /// Connections side by side (TCP, psock)
    pub streams: u16,
    /// Bytes that a datagram carries (UDP)
    pub datagram: u16,
    /// Congestion control of the sender (TCP, psock), such as bbr.
    pub congestion: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transport: Transport::Tcp,
            reverse: false,
            duration: Duration::from_secs(10),
            rate: None,
            streams: 1,
            datagram: 1400,
            congestion: None,
        }
    }
}

impl Settings {
    /// What is wrong with the values.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        if !(LEAST..=LONGEST).contains(&self.duration) {
            let [least, longest] = [LEAST, LONGEST].map(humantime::format_duration);
            wrong("duration", format!("must be {least} to {longest}"));
        }
        match self.rate {
            None if self.transport == Transport::Udp => {
                wrong("rate", "UDP has no congestion control: give a rate".to_owned());
            }
            Some(rate) if !(1000..=MOST_RATE).contains(&rate) => {
                wrong("rate", "must be 1k to 400G".to_owned());
            }
            _ => {}
        }
        if self.streams == 0 || self.streams > MOST_STREAMS {
            wrong("streams", format!("must be 1 to {MOST_STREAMS}"));
        } else if self.streams > 1 && self.transport == Transport::Udp {
            wrong("streams", "UDP has no connections: give 1".to_owned());
        }
        if !DATAGRAM.contains(&self.datagram) {
            wrong("datagram", format!("must be {} to {} bytes", DATAGRAM.start(), DATAGRAM.end()));
        }
        let fits = |name: &String| {
            // TCP_CA_NAME_MAX of linux/tcp.h, less the zero at the end.
            (1..16).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        if self.congestion.as_ref().is_some_and(|name| !fits(name)) {
            wrong("congestion", "must be a name such as cubic or bbr".to_owned());
        } else if self.congestion.is_some() && self.transport == Transport::Udp {
            wrong("congestion", "UDP has no congestion control".to_owned());
        }
        problems
    }

    /// How long the test takes at most, with meeting and parting.
    pub fn longest(&self) -> Duration {
        self.duration + 2 * TIMEOUT
    }

    /// Bytes a second that are allowed.
    pub(super) fn bytes_per_second(&self) -> Option<f64> {
        self.rate.map(|bits| bits as f64 / 8.0)
    }

    /// Time from one moment of a test to the next.
    pub(super) fn step(&self) -> Duration {
        // Half of what there is room for, so that a test that takes a little longer fits as well.
        (self.duration / (MOST_MOMENTS as u32 / 2)).max(Duration::from_millis(20))
    }
}

/// Reads a rate ([`config::Rate`]) of a test.
///
/// # Errors
/// When it is none, 0 or more than any test can send.
pub fn rate(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(config::Rate(bits)) if (1..=MOST_RATE).contains(&bits) => Ok(bits),
        Ok(_) => Err(format!("`{text}` is not above 0 and up to {}", config::Rate(MOST_RATE))),
        Err(error) => Err(error.to_string()),
    }
}

/// The secret of one test: who has it may take part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token([u8; Self::BYTES]);

impl Token {
    /// Its length in bytes.
    pub const BYTES: usize = 32;
    /// Bytes of its mark.
    pub const MARK: usize = 16;

    /// A new one.
    pub fn random() -> Self {
        Self(rand::random())
    }

    /// What connections and datagrams show of it. The rest never leaves in the clear.
    pub(super) fn mark(&self) -> [u8; Self::MARK] {
        let mut mark = [0; Self::MARK];
        mark.copy_from_slice(&self.0[..Self::MARK]);
        mark
    }

    /// Whether the bytes are its mark; takes the same time whichever differ.
    pub(super) fn has_mark(&self, bytes: &[u8]) -> bool {
        let pairs = self.0.iter().zip(bytes);
        let differences = pairs.fold(0, |all, (one, other)| all | (one ^ other));
        bytes.len() == Self::MARK && differences == 0
    }

    /// The key of a psock session between who has it.
    pub(super) fn key(&self) -> [u8; 32] {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"nigh probe throughput, psock");
        context.update(&self.0);
        let mut key = [0; 32];
        key.copy_from_slice(context.finish().as_ref());
        key
    }
}

impl From<[u8; Token::BYTES]> for Token {
    fn from(bytes: [u8; Token::BYTES]) -> Self {
        Self(bytes)
    }
}

/// Its value is no business of logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// No token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has 64 hexadecimal digits")]
pub struct TokenError;

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        hex::array(text).map(Self).ok_or(TokenError)
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        for (text, bits) in [
            ("64k", 64_000),
            ("100M", 100_000_000),
            ("1.5G", 1_500_000_000),
            ("9600bit", 9600),
            ("20mbit", 20_000_000),
        ] {
            assert_eq!(rate(text), Ok(bits));
        }
        for text in ["", "M", "1e9", "-1M", "NaN", "inf", "401G", "0", "1 MB", "é", "9600"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_is_written_as_digits_and_shown_to_nobody() {
        let token = Token::random();
        let text = serde_json::to_string(&token).unwrap();
        assert_eq!(serde_json::from_str::<Token>(&text).unwrap(), token);
        assert_eq!(format!("{token:?}"), "Token(..)");
        let (short, sign) = ("0".repeat(63), format!("+{}", "0".repeat(63)));
        for text in [short.as_str(), &sign, ""] {
            assert_eq!(text.parse::<Token>(), Err(TokenError), "{text}");
        }
    }

    #[test]
    fn values_out_of_their_limits_are_named() {
        assert_eq!(Settings::default().problems(), []);
        let keys = |settings: Settings| -> Vec<String> {
            settings.problems().into_iter().map(|problem| problem.key).collect()
        };
        let wrong = Settings {
            transport: Transport::Udp,
            duration: Duration::from_secs(601),
            streams: 2,
            datagram: 63,
            congestion: Some("b".to_owned()),
            ..Settings::default()
        };
        assert_eq!(keys(wrong), ["duration", "rate", "streams", "datagram", "congestion"]);
        let wrong = Settings {
            duration: Duration::ZERO,
            rate: Some(999),
            streams: 17,
            congestion: Some("a b".to_owned()),
            ..Settings::default()
        };
        assert_eq!(keys(wrong), ["duration", "rate", "streams", "congestion"]);
    }
}
