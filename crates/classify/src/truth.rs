//! What the flows of captures really are, and how well that was found.
//!
//! A table of truth has a line for each flow, or for many:
//!
//! ```text
//! CAPTURE     TRANSPORT CLIENT           SERVER       APPLICATION HOW
//! bt.pcap     tcp       10.0.0.5:*       *:6881       bittorrent  plain
//! web.pcap    any       *:*              *:*          other       plain
//! ```
//!
//! The first line that fits counts, `#` begins a comment. `other` is anything but peer-to-peer: whatever
//! name such a flow gets, and none, is right as long as it is no application of peer-to-peer.

use crate::{
    flow::{Flow, Transport},
    label::Category,
    offline::Classified,
};
use serde::Serialize;
use std::{collections::BTreeMap, net::IpAddr, net::SocketAddr};

/// The application of everything that is no peer-to-peer.
pub const OTHER: &str = "other";

/// A table cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TruthError {
    line: usize,
    what: &'static str,
}

/// Whether an application hides what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Its messages can be read.
    Plain,
    /// They are encrypted so as not to be known.
    Hidden,
}

/// What a flow really is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Truth {
    /// The application, or [`OTHER`].
    pub application: String,
    /// Whether it hides.
    pub how: How,
}

#[derive(Clone, Debug)]
struct Line {
    capture: String,
    transport: Option<Transport>,
    client: End,
    server: End,
    truth: Truth,
}

/// A socket, of which both parts may be any.
#[derive(Clone, Copy, Debug)]
struct End {
    address: Option<IpAddr>,
    port: Option<u16>,
}

impl End {
    fn read(text: &str) -> Option<Self> {
        let (address, port) = text.rsplit_once(':')?;
        let address = address.trim_start_matches('[').trim_end_matches(']');
        let any = |text: &str| text == "*";
        Some(Self {
            address: if any(address) { None } else { Some(address.parse().ok()?) },
            port: if any(port) { None } else { Some(port.parse().ok()?) },
        })
    }

    fn fits(self, socket: SocketAddr) -> bool {
        self.address.is_none_or(|address| address == socket.ip())
            && self.port.is_none_or(|port| port == socket.port())
    }
}

/// A table of truth.
#[derive(Clone, Debug, Default)]
pub struct Table(Vec<Line>);

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// When a line has not its six words.
    pub fn read(text: &str) -> Result<Self, TruthError> {
        let mut lines = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let words: Vec<&str> = line
                .split_once('#')
                .map_or(line, |(line, _)| line)
                .split_ascii_whitespace()
                .collect();
            let wrong = |what| TruthError { line: at + 1, what };
            let (capture, transport, client, server, application, how) = match words[..] {
                [] => continue,
                [capture, transport, client, server, application, how] => {
                    (capture, transport, client, server, application, how)
                }
                _ => {
                    return Err(wrong("expected CAPTURE TRANSPORT CLIENT SERVER APPLICATION HOW"));
                }
            };
            let transport = match transport {
                "tcp" => Some(Transport::Tcp),
                "udp" => Some(Transport::Udp),
                "any" => None,
                _ => return Err(wrong("the transport is tcp, udp or any")),
            };
            let how = match how {
                "plain" => How::Plain,
                "hidden" => How::Hidden,
                _ => return Err(wrong("the last word is plain or hidden")),
            };
            let end = |text| {
                End::read(text)
                    .ok_or_else(|| wrong("an end is ADDRESS:PORT, each of both may be *"))
            };
            lines.push(Line {
                capture: capture.to_owned(),
                transport,
                client: end(client)?,
                server: end(server)?,
                truth: Truth { application: application.to_owned(), how },
            });
        }
        Ok(Self(lines))
    }

    /// What a flow of a capture (the file's name without folder) is, by the first line that fits.
    pub fn of(&self, capture: &str, flow: &Flow) -> Option<&Truth> {
        let fits = |line: &&Line| {
            (line.capture == "*" || line.capture == capture)
                && line.transport.is_none_or(|transport| transport == flow.transport)
                && line.client.fits(flow.client)
                && line.server.fits(flow.server)
        };
        self.0.iter().find(fits).map(|line| &line.truth)
    }
}

/// How well one application was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Flows that are it.
    pub flows: u64,
    /// Of these, those that were called it.
    pub found: u64,
    /// Of these, those that were called it within 8 packets with payload.
    pub within_8: u64,
    /// Of its flows, those that nobody named.
    pub unknown: u64,
}

/// How well the flows of captures were named.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// By what they are.
    pub by_truth: BTreeMap<Truth, Tally>,
    /// Flows that were called an application of peer-to-peer and are not it, by that name.
    pub false_positives: BTreeMap<String, u64>,
    /// Flows with payload that the table does not know.
    pub unlisted: Vec<Flow>,
}

impl Score {
    /// Counts a flow of a capture. Flows without payload are not counted.
    pub fn add(&mut self, table: &Table, capture: &str, one: &Classified) {
        if one.with_payload == 0 {
            return;
        }
        let Some(truth) = table.of(capture, &one.flow) else {
            self.unlisted.push(one.flow);
            return;
        };
        let tally = self.by_truth.entry(truth.clone()).or_default();
        tally.flows += 1;
        let Some(label) = &one.label else {
            // For what is no peer-to-peer, no name is right.
            let right = u64::from(truth.application == OTHER);
            tally.unknown += 1;
            tally.found += right;
            tally.within_8 += right;
            return;
        };
        let right = if truth.application == OTHER {
            label.category != Category::PeerToPeer
        } else {
            label.application == truth.application
        };
        let early = one.known_after.unwrap_or(one.with_payload) <= 8;
        tally.found += u64::from(right);
        tally.within_8 += u64::from(right && early);
        if !right && label.category == Category::PeerToPeer {
            *self.false_positives.entry(label.application.to_string()).or_default() += 1;
        }
    }

    /// Flows that are not an application.
    pub fn flows_other_than(&self, application: &str) -> u64 {
        let others = self.by_truth.iter().filter(|(truth, _)| truth.application != application);
        others.map(|(_, tally)| tally.flows).sum()
    }

    /// Of the flows called an application, the share that is it; none when no flow was.
    pub fn precision(&self, application: &str) -> Option<f64> {
        let of_it = self.by_truth.iter().filter(|(truth, _)| truth.application == application);
        let found: u64 = of_it.map(|(_, tally)| tally.found).sum();
        let wrong = self.false_positives.get(application).copied().unwrap_or_default();
        share(found, found + wrong)
    }

    /// Of the flows that are not an application, the share that was called it.
    pub fn false_share(&self, application: &str) -> Option<f64> {
        let wrong = self.false_positives.get(application).copied().unwrap_or_default();
        share(wrong, self.flows_other_than(application))
    }
}

/// A part of a whole; none of nothing.
pub fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{Certainty, Engine, Label};

    fn flow(server: &str) -> Flow {
        Flow {
            transport: Transport::Tcp,
            client: "10.0.0.5:40000".parse().unwrap(),
            server: server.parse().unwrap(),
        }
    }

    fn called(server: &str, name: Option<(&'static str, Category)>) -> Classified {
        Classified {
            flow: flow(server),
            packets: 5,
            with_payload: 2,
            bytes: 100,
            first_ns: 0,
            last_ns: 0,
            label: name.map(|(name, category)| Label {
                application: name.into(),
                detail: None,
                category,
                certainty: Certainty::Certain,
                engine: Engine::Parser,
                reason: "test".into(),
            }),
            known_after: Some(2),
            facts: Facts::default(),
        }
    }

    use crate::engine::Facts;

    #[test]
    fn the_first_line_that_fits_counts_and_shares_are_of_their_wholes() {
        let table = Table::read(
            "# what it is\n\
             a.pcap tcp 10.0.0.5:* *:6881 bittorrent plain\n\
             a.pcap any *:* [2001:db8::1]:1 edonkey hidden # one\n\
             a.pcap any *:* *:80 other plain\n",
        )
        .unwrap();
        let truth = table.of("a.pcap", &flow("[2001:db8::1]:1")).unwrap();
        assert_eq!((&*truth.application, truth.how), ("edonkey", How::Hidden));
        assert_eq!(table.of("b.pcap", &flow("1.2.3.4:80")), None);

        let p2p = Some(("bittorrent", Category::PeerToPeer));
        let mut score = Score::default();
        for (server, name) in [
            ("1.2.3.4:6881", p2p),
            ("1.2.3.5:6881", None),
            ("1.2.3.5:80", Some(("http", Category::Web))),
            ("1.2.3.6:80", None),
            ("1.2.3.7:80", p2p),
            ("1.2.3.8:81", p2p),
        ] {
            score.add(&table, "a.pcap", &called(server, name));
        }
        let plain = Truth { application: "bittorrent".into(), how: How::Plain };
        let tally = score.by_truth[&plain];
        assert_eq!(tally, Tally { flows: 2, found: 1, within_8: 1, unknown: 1 });
        assert_eq!(score.precision("bittorrent"), Some(0.5));
        assert_eq!(score.false_share("bittorrent"), Some(1.0 / 3.0));
        assert_eq!(score.unlisted, [flow("1.2.3.8:81")]);
        let other = Truth { application: OTHER.into(), how: How::Plain };
        assert_eq!(score.by_truth[&other].found, 2);
    }

    #[test]
    fn lines_that_are_wrong_have_their_number() {
        for (text, says) in [
            ("\na tcp b", "line 2: expected CAPTURE TRANSPORT CLIENT SERVER APPLICATION HOW"),
            ("a sctp *:* *:* x plain", "line 1: the transport is tcp, udp or any"),
            ("a tcp *:* *:99999 x plain", "line 1: an end is ADDRESS:PORT, each of both may be *"),
            ("a tcp *:* *:9 x other", "line 1: the last word is plain or hidden"),
        ] {
            assert_eq!(Table::read(text).unwrap_err().to_string(), says);
        }
    }
}
