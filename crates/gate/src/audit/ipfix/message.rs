//! Messages of IPFIX (RFC 7011) that carry flows in both directions as one record (RFC 5103).

use crate::audit::{
    mapping::Mask,
    record::{End, FlowEnd, Traffic},
};
use classify::flow::Transport;
use std::{
    net::IpAddr,
    time::{SystemTime, UNIX_EPOCH},
};

/// The version of the protocol (RFC 7011, section 3.1).
const VERSION: u16 = 10;
const HEADER_LEN: usize = 16;
/// The set of templates (section 3.3.2).
const TEMPLATE_SET: u16 = 2;
/// Our templates, one for each version of IP; numbers from 256 on are templates (section 3.4.1).
const FLOW_4: u16 = 256;
const FLOW_6: u16 = 257;
/// A length that each record gives by itself (section 3.2).
const VARIABLE: u16 = 65_535;
/// The enterprise whose elements are IANA's with the direction turned round (RFC 5103, section 6.1).
const REVERSE: u32 = 29_305;
/// In a field's number: the enterprise follows (RFC 7011, section 3.2).
const ENTERPRISE: u16 = 0x8000;

/// Numbers of elements and their lengths, as IANA's registry has them.
const FIELDS: [(Element, u16); 20] = [
    (Element::Iana(152), 8),   // flowStartMilliseconds
    (Element::Iana(153), 8),   // flowEndMilliseconds
    (Element::Source, 0),      // sourceIPv4Address or sourceIPv6Address
    (Element::Destination, 0), // destinationIPv4Address or destinationIPv6Address
    (Element::Iana(7), 2),     // sourceTransportPort
    (Element::Iana(11), 2),    // destinationTransportPort
    (Element::Iana(4), 1),     // protocolIdentifier
    (Element::Iana(1), 8),     // octetDeltaCount
    (Element::Iana(2), 8),     // packetDeltaCount
    (Element::Reverse(1), 8),
    (Element::Reverse(2), 8),
    (Element::Iana(6), 2), // tcpControlBits
    (Element::Reverse(6), 2),
    (Element::Iana(136), 1),        // flowEndReason
    (Element::Iana(239), 1),        // biflowDirection
    (Element::Iana(89), 1),         // forwardingStatus
    (Element::Iana(148), 8),        // flowId
    (Element::Iana(96), VARIABLE),  // applicationName
    (Element::Iana(373), VARIABLE), // applicationSubCategoryName
    (Element::Iana(372), VARIABLE), // applicationCategoryName
];

/// biflowDirection: the source began (RFC 5103, section 6.3).
const INITIATOR: u8 = 1;
/// forwardingStatus: forwarded, and dropped by an access list (IANA's registry).
const FORWARDED: u8 = 0b0100_0000;
const DENIED: u8 = 0b1000_0001;

#[derive(Clone, Copy)]
enum Element {
    Iana(u16),
    Reverse(u16),
    Source,
    Destination,
}

/// A record that is ready to be put into a message.
#[derive(Debug)]
pub(super) struct Data {
    template: u16,
    bytes: Vec<u8>,
}

impl Data {
    pub(super) fn of(flow: &FlowEnd, flow_id: u64, mask: &Mask) -> Self {
        let subject = &flow.subject;
        let [client, server] = [subject.flow.client, subject.flow.server].map(|it| mask.socket(it));
        let mut out = Vec::with_capacity(160);
        out.extend(milliseconds(subject.started).to_be_bytes());
        out.extend(milliseconds(flow.last).to_be_bytes());
        let template = match (client.ip(), server.ip()) {
            (IpAddr::V4(client), IpAddr::V4(server)) => {
                out.extend(client.octets());
                out.extend(server.octets());
                FLOW_4
            }
            (client, server) => {
                for address in [client, server] {
                    out.extend(match address {
                        IpAddr::V4(it) => it.to_ipv6_mapped().octets(),
                        IpAddr::V6(it) => it.octets(),
                    });
                }
                FLOW_6
            }
        };
        out.extend(client.port().to_be_bytes());
        out.extend(server.port().to_be_bytes());
        out.push(match subject.flow.transport {
            Transport::Tcp => 6,
            Transport::Udp => 17,
        });
        let counters = |it: Traffic| [it.bytes, it.packets].map(u64::to_be_bytes).concat();
        out.extend(counters(flow.to_server));
        out.extend(counters(flow.to_client));
        out.extend(u16::from(flow.to_server.flags).to_be_bytes());
        out.extend(u16::from(flow.to_client.flags).to_be_bytes());
        // IANA's flowEndReason.
        out.push(match flow.end {
            End::Timeout => 1,
            End::Closed => 3,
            End::Forced => 4,
        });
        out.push(INITIATOR);
        out.push(if flow.verdict.action.refuses() { DENIED } else { FORWARDED });
        out.extend(flow_id.to_be_bytes());
        let label = subject.label.as_ref();
        string(&mut out, label.map_or("", |it| &it.application));
        string(&mut out, label.and_then(|it| it.detail.as_deref()).unwrap_or_default());
        string(&mut out, label.map_or("", |it| it.category.name()));
        Self { template, bytes: out }
    }
}

/// One exporting process: numbers its messages (section 3.1).
#[derive(Debug)]
pub(super) struct Session {
    domain: u32,
    /// Records that were sent, modulo 2^32.
    sequence: u32,
}

impl Session {
    pub(super) const fn new(domain: u32) -> Self {
        Self { domain, sequence: 0 }
    }

    /// The message that says what the records' fields are.
    pub(super) fn templates(&self, now: SystemTime) -> Vec<u8> {
        let mut out = self.begin(now);
        let set = begin_set(&mut out, TEMPLATE_SET);
        for (template, version_6) in [(FLOW_4, false), (FLOW_6, true)] {
            out.extend(template.to_be_bytes());
            out.extend((FIELDS.len() as u16).to_be_bytes());
            for (element, length) in FIELDS {
                let address = if version_6 { 16 } else { 4 };
                let (number, enterprise, length) = match element {
                    Element::Iana(number) => (number, None, length),
                    Element::Reverse(number) => (number | ENTERPRISE, Some(REVERSE), length),
                    Element::Source => (if version_6 { 27 } else { 8 }, None, address),
                    Element::Destination => (if version_6 { 28 } else { 12 }, None, address),
                };
                out.extend(number.to_be_bytes());
                out.extend(length.to_be_bytes());
                out.extend(enterprise.into_iter().flat_map(u32::to_be_bytes));
            }
        }
        end_at(&mut out, set + 2, set);
        end_at(&mut out, 2, 0);
        out
    }

    /// A message with as many of the records as fit into `most` bytes, and how many those are: one at
    /// least.
    pub(super) fn data(
        &mut self,
        records: &[Data],
        most: usize,
        now: SystemTime,
    ) -> (Vec<u8>, usize) {
        let mut out = self.begin(now);
        let mut set: Option<(u16, usize)> = None;
        let mut count = 0;
        for record in records {
            let begins = set.is_none_or(|(template, _)| template != record.template);
            let header = if begins { SET_HEADER_LEN } else { 0 };
            if count > 0 && out.len() + header + record.bytes.len() > most {
                break;
            }
            if begins {
                if let Some((_, at)) = set {
                    end_at(&mut out, at + 2, at);
                }
                set = Some((record.template, begin_set(&mut out, record.template)));
            }
            out.extend(&record.bytes);
            count += 1;
        }
        if let Some((_, at)) = set {
            end_at(&mut out, at + 2, at);
        }
        end_at(&mut out, 2, 0);
        self.sequence = self.sequence.wrapping_add(count as u32);
        (out, count)
    }

    fn begin(&self, now: SystemTime) -> Vec<u8> {
        let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut out = Vec::with_capacity(512);
        out.extend(VERSION.to_be_bytes());
        out.extend(0_u16.to_be_bytes());
        // Wraps in 2106, as the protocol's field does.
        out.extend((seconds as u32).to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.domain.to_be_bytes());
        debug_assert_eq!(out.len(), HEADER_LEN);
        out
    }
}

const SET_HEADER_LEN: usize = 4;

/// Begins a set; gives where.
fn begin_set(out: &mut Vec<u8>, id: u16) -> usize {
    let at = out.len();
    out.extend(id.to_be_bytes());
    out.extend(0_u16.to_be_bytes());
    at
}

/// Writes at `at` how long what began at `start` has become.
fn end_at(out: &mut [u8], at: usize, start: usize) {
    let length = (out.len() - start) as u16;
    if let Some(field) = out.get_mut(at..at + 2) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// Longest string of a record, in bytes: the length then is one byte (section 7).
const LONGEST_STRING: usize = 254;

/// A string with its length.
fn string(out: &mut Vec<u8>, text: &str) {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|&end| end <= LONGEST_STRING).last().unwrap_or_default();
    out.push(end as u8);
    out.extend(text.as_bytes().get(..end).unwrap_or_default());
}

fn milliseconds(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{
        record::{AuditAction, Record},
        tests::{at, flow_end},
    };

    fn data() -> Data {
        let Record::Flow(flow) = flow_end(Transport::Tcp, AuditAction::Limit) else {
            unreachable!()
        };
        Data::of(&flow, 7, &Mask::default())
    }

    #[test]
    fn lengths_of_messages_and_sets_are_right_and_records_are_counted() {
        let mut session = Session::new(5);
        let templates = session.templates(at(0));
        assert_eq!(templates.len(), usize::from(u16::from_be_bytes([templates[2], templates[3]])));
        // 20 fields of 4 bytes, 3 of them with an enterprise; two templates with headers.
        assert_eq!(templates.len(), HEADER_LEN + SET_HEADER_LEN + 2 * (4 + 20 * 4 + 3 * 4));
        let records = [data(), data(), data()];
        let most = HEADER_LEN + SET_HEADER_LEN + 2 * records[0].bytes.len();
        let (message, count) = session.data(&records, most, at(0));
        assert_eq!((message.len(), count), (most, 2));
        assert_eq!(message[2..4], (most as u16).to_be_bytes());
        assert_eq!(message[8..16], [0, 0, 0, 0, 0, 0, 0, 5]);
        let (message, count) = session.data(&records[2..], 1, at(0));
        assert_eq!((message[8..12].to_vec(), count), (vec![0, 0, 0, 2], 1));
    }

    #[test]
    fn records_have_the_length_that_their_template_says() {
        let fixed: u16 = FIELDS.iter().map(|&(_, it)| if it == VARIABLE { 0 } else { it }).sum();
        let strings = ["bittorrent", "peer-wire", "peer-to-peer"].map(|it| it.len() + 1);
        let expected = usize::from(fixed) + 2 * 4 + strings.iter().sum::<usize>();
        assert_eq!(data().bytes.len(), expected);
    }

    #[test]
    fn long_strings_are_cut_at_a_character() {
        let mut out = Vec::new();
        string(&mut out, &"\u{e9}".repeat(200));
        assert_eq!((out[0], out.len()), (254, 255));
        out.clear();
        string(&mut out, &("x".to_owned() + &"\u{e9}".repeat(200)));
        assert_eq!((out[0], out.len()), (253, 254));
    }
}
