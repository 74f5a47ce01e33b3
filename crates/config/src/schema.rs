//! Schemas of values that are written as text, for `#[derive(JsonSchema)]` on sections.
//!
//! A type with a syntax of its own gets its schema from [`text_schema!`](crate::text_schema). Types of
//! other crates have a stand-in here: `#[schemars(with = "config::schema::Duration")]`.
//!
//! A pattern matches every text that the type reads; it may match others too. It is for editors;
//! `nigh check` decides.

/// A time with its unit: [`std::time::Duration`] through `humantime_serde`.
#[derive(Debug)]
pub struct Duration;

/// A prefix: [`ipnet::IpNet`].
#[derive(Debug)]
pub struct Prefix;

/// A prefix, or an address alone.
#[derive(Debug)]
pub struct Hosts;

/// An address with a port: [`std::net::SocketAddr`].
#[derive(Debug)]
pub struct Endpoint;

/// Gives types the schema of a text: `Type => "name", "pattern", ["example", ...];`.
#[macro_export]
macro_rules! text_schema {
    ($($type:ty => $name:literal, $pattern:literal, $examples:tt;)+) => {$(
        impl ::schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                ::schemars::json_schema!({
                    "title": $name,
                    "type": "string",
                    "pattern": $pattern,
                    "examples": $examples,
                })
            }
        }
    )+};
}

text_schema! {
    Duration => "duration", r"^\s*(0|([0-9]+(\.[0-9]+)?\s*[A-Za-zµ]+\s*)+)\s*$", ["100ms", "1.5s", "1h 30m"];
    Prefix => "prefix", r"^[0-9A-Fa-f:.]+/[0-9]+$", ["192.0.2.0/24", "2001:db8::/48"];
    Hosts => "prefix or address", r"^[0-9A-Fa-f:.]+(/[0-9]+)?$", ["192.0.2.0/24", "2001:db8::7"];
    Endpoint => "address with port", r"^([0-9.]+|\[.+\]):[0-9]+$", ["127.0.0.1:9160", "[::1]:9160"];
    crate::Rate => "rate", r"^\s*[0-9]+(\.[0-9]+)?\s*[A-Za-z]*(/s)?\s*$", ["800kbit", "20Mbit", "1.5Gbit"];
    crate::Size => "size", r"^\s*[0-9]+(\.[0-9]+)?\s*[A-Za-z]*\s*$", ["64MiB", "64KB", "1500"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipnet::IpNet;
    use regex_automata::meta::Regex;
    use schemars::JsonSchema;
    use std::net::{IpAddr, SocketAddr};

    /// Every text that is read fits the pattern, and so does every example, which is read.
    fn check<T: JsonSchema>(texts: &[&str], reads: impl Fn(&str) -> bool) {
        let schema = schemars::generate::SchemaGenerator::default().into_root_schema_for::<T>();
        let pattern = Regex::new(schema.get("pattern").unwrap().as_str().unwrap()).unwrap();
        let examples = schema.get("examples").unwrap().as_array().unwrap();
        let examples = examples.iter().map(|example| example.as_str().unwrap());
        for text in texts.iter().copied().chain(examples) {
            assert!(reads(text), "{text} is not read");
            assert!(pattern.is_match(text), "{text} does not fit");
        }
        assert!(!pattern.is_match("x") && !pattern.is_match(""));
    }

    #[test]
    fn patterns_take_what_is_read() {
        let duration = |text: &str| crate::duration(text).is_ok();
        check::<Duration>(
            &["0", "5 minutes", "1h30m", "250us", "3µs", "14days", "100years"],
            duration,
        );
        let prefix = |text: &str| text.parse::<IpNet>().is_ok();
        check::<Prefix>(&["0.0.0.0/0", "::/0", "::ffff:192.0.2.1/128"], prefix);
        let hosts = |text: &str| prefix(text) || text.parse::<IpAddr>().is_ok();
        check::<Hosts>(&["::/0", "::1", "192.0.2.1"], hosts);
        let endpoint = |text: &str| text.parse::<SocketAddr>().is_ok();
        check::<Endpoint>(&["0.0.0.0:0", "[fe80::1%2]:80"], endpoint);
        let rate = |text: &str| text.parse::<crate::Rate>().is_ok();
        check::<crate::Rate>(&["20 Mbit/s", "0", "1G", "64000 bit/s"], rate);
        let size = |text: &str| text.parse::<crate::Size>().is_ok();
        check::<crate::Size>(&["0", "100M", "1.5 MiB ", "3G"], size);
    }
}
