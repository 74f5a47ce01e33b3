//! What can be asked of the running stations' service over the daemon's control socket.

use crate::config::{DELAY, Family, PING, THROUGHPUT, Transport, What};
use config::Bandwidth;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The name of the test in records of what was asked for.
pub(crate) const ON_REQUEST: &str = "request";

/// One request, as a JSON object on the control socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Runs a test now; answered with the record when it is done.
    Run(Order),
}

/// A test that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What is measured.
    pub what: What,
    /// Where to: a station, an address, a page, or `NAME@SERVER`.
    pub to: String,
    /// How long it sends.
    #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,
    /// Packets a second (`owd`, `ping`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// The rate of `throughput` over UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// The transport of a throughput test.
    #[serde(default)]
    pub transport: Transport,
    /// Whether `owd` goes without authentication.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain: bool,
    /// Which addresses of a station are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
}

/// Renamed keys of an order: the old one and the new one.
const RENAMED: [(&str, &str); 2] = [("length", "duration"), ("means", "transport")];

impl Order {
    /// Reads an order of a client that is not nigh.
    ///
    /// # Errors
    /// The text is not an order: a sentence why.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| {
            let keys: serde_json::Map<_, _> = serde_json::from_slice(text).unwrap_or_default();
            match RENAMED.iter().find(|(old, _)| keys.contains_key(*old)) {
                Some((old, new)) => format!("`{old}` was renamed to `{new}`"),
                None => error.to_string(),
            }
        })
    }

    /// How long the test itself takes, about.
    pub fn takes(&self) -> Duration {
        match self.what {
            What::Owd => self.duration.unwrap_or(DELAY),
            What::Throughput => self.duration.unwrap_or(THROUGHPUT),
            What::Ping => self.duration.unwrap_or(PING),
            What::Trace | What::Http | What::Dns | What::Clock => crate::config::UNMEASURED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_back_as_written() {
        let order = Order {
            what: What::Owd,
            to: "brno".into(),
            duration: Some(Duration::from_secs(5)),
            rate: None,
            bandwidth: None,
            transport: Transport::Tcp,
            plain: false,
            family: Some(Family::V6),
        };
        let text = r#"{"do":"run","what":"owd","to":"brno","duration":"5s","transport":"tcp","family":"ipv6"}"#;
        let request = Request::Run(order);
        assert_eq!(serde_json::to_string(&request).expect("it serializes"), text);
        assert_eq!(serde_json::from_str::<Request>(text).expect("it parses"), request);
        let short = r#"{"do":"run","what":"ping","to":"192.0.2.1"}"#;
        assert!(serde_json::from_str::<Request>(short).is_ok());
        let more = r#"{"do":"run","what":"ping","to":"192.0.2.1","speed":1}"#;
        assert!(serde_json::from_str::<Request>(more).is_err());
    }

    #[test]
    fn an_old_key_of_an_order_is_refused_with_the_new_one_named() {
        let read = |more: &str| {
            Order::read(format!(r#"{{"what":"throughput","to":"brno"{more}}}"#).as_bytes())
        };
        assert_eq!(read("").expect("an order").what, What::Throughput);
        for (more, why) in [
            (r#","length":"5s""#, "`length` was renamed to `duration`"),
            (r#","means":"udp""#, "`means` was renamed to `transport`"),
            (r#","speed":1"#, "unknown field `speed`"),
        ] {
            let error = read(more).expect_err("refused");
            assert!(error.starts_with(why), "{error}");
        }
        assert!(Order::read(b"[]").is_err() && Order::read(b"").is_err());
    }
}
