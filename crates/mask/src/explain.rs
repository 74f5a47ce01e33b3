//! What a policy makes of one packet, field by field: `nigh mask policy explain`.

use crate::{
    application::Ports,
    layer::{FIELDS, Field, Kind},
    machine::{Link, Run, Secrets, Visit, visit},
    policy::{Action, Policy, PolicyError},
};
use serde::Serialize;
use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

/// A packet before and after masking.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// Its headers in their order, and those of its options that the policy names.
    pub headers: Vec<Header>,
    /// Bytes of the packet.
    pub bytes: usize,
    /// Bytes of the result; all behind them is removed.
    pub kept: usize,
}

/// One header of it.
#[derive(Debug, Serialize)]
pub struct Header {
    /// What it is.
    pub kind: String,
    /// Its first byte in the packet.
    pub at: usize,
    /// Its fields that are wholly there.
    pub fields: Vec<Change>,
}

/// The treatment of one field.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// As policies name it.
    pub name: &'static str,
    /// Its value in the packet.
    pub before: String,
    /// Its value in the result.
    pub after: String,
    /// Why: what the policy says, or that it is structure.
    pub why: String,
}

/// Explains what a policy makes of a packet under these keys.
///
/// # Errors
/// When the policy cannot be compiled.
pub fn explain(
    policy: &Policy,
    secrets: &mut Secrets,
    link: Link,
    packet: &[u8],
) -> Result<Explanation, PolicyError> {
    let program = policy.compile()?;
    let mut visitor = Explain { run: Run::new(&program, secrets), policy, headers: Vec::new() };
    let mut out = Vec::new();
    let kept = visit(&mut visitor, link, packet, &mut out);
    Ok(Explanation { headers: visitor.headers, bytes: packet.len(), kept })
}

/// Runs a program and notes what it does.
struct Explain<'a> {
    run: Run<'a>,
    policy: &'a Policy,
    headers: Vec<Header>,
}

impl Visit for Explain<'_> {
    fn header(&mut self, kind: Kind, header: &[u8], out: &mut [u8], whole: bool, unique: u128) {
        self.run.header(kind, header, out, whole, unique);
        let change = |field: &Field| {
            Some(Change {
                name: field.name,
                before: value(field, header)?,
                after: value(field, out)?,
                why: why(self.policy, field),
            })
        };
        let fields = FIELDS.iter().filter(|field| field.kind == kind).filter_map(change).collect();
        self.headers.push(Header { kind: format!("{kind:?}"), at: unique as u32 as usize, fields });
    }

    fn keeps(&self, option: Kind) -> bool {
        self.run.keeps(option)
    }

    fn payload(&mut self, ports: Option<Ports>, payload: &[u8], out: &mut [u8]) -> bool {
        self.run.payload(ports, payload, out)
    }
}

fn why(policy: &Policy, field: &Field) -> String {
    match policy.of(field) {
        _ if field.is_structure => "structure".to_owned(),
        Action::Remove => "removed".to_owned(),
        action => format!("{action:?}").to_lowercase(),
    }
}

/// A field as people write it, if all of it is there.
fn value(field: &Field, header: &[u8]) -> Option<String> {
    let at = usize::from(field.at);
    let bytes = header.get(at..at + usize::from(field.bytes))?;
    let number = bytes.iter().fold(0_u128, |all, byte| all << 8 | u128::from(*byte));
    Some(match (field.bytes, field.is_address()) {
        (6, _) => wire::Mac(bytes.try_into().ok()?).to_string(),
        (16, _) => Ipv6Addr::from_bits(number).to_string(),
        (4, true) => Ipv4Addr::from_bits(number as u32).to_string(),
        _ => ((number as u32 & field.mask) >> field.mask.trailing_zeros()).to_string(),
    })
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for header in &self.headers {
            writeln!(f, "{} at byte {}", header.kind, header.at)?;
            for Change { name, before, after, why } in &header.fields {
                if before == after {
                    writeln!(f, "  {name:36} {before}  ({why})")?;
                } else {
                    writeln!(f, "  {name:36} {before} -> {after}  ({why})")?;
                }
            }
        }
        let behind = self.bytes - self.kept;
        writeln!(f, "{} of {} bytes are left; removed after them: {behind}", self.kept, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MappingName;

    #[test]
    fn each_field_is_listed_with_its_treatment() {
        let policy = Policy::read(
            "about = \"\"\n[fields]\n\"ipv4.source\" = { truncate = 8 }\n\"ipv4.ttl\" = \"keep\"\n\
             \"udp.*\" = \"remove\"",
        )
        .expect("a policy");
        let mut secrets = Secrets::new(&[7; 32], MappingName::CryptoPan).expect("a key");
        let packet = [
            &[0x45, 0, 0, 32, 1, 2, 0, 0, 63, 17, 0, 0, 198, 51, 100, 7, 192, 0, 2, 1][..],
            &[0, 53, 1, 0, 0, 12, 9, 9],
            b"text",
        ]
        .concat();
        let explained = explain(&policy, &mut secrets, Link::Ip, &packet).expect("a policy");
        let kinds: Vec<_> = explained.headers.iter().map(|it| (it.kind.as_str(), it.at)).collect();
        assert_eq!(kinds, [("Ipv4", 0), ("Udp", 20)]);
        assert_eq!((explained.bytes, explained.kept), (32, 28));
        let text = explained.to_string();
        for line in [
            "ipv4.source 198.51.100.7 -> 198.0.0.0 (truncate(8))",
            "ipv4.destination 192.0.2.1 -> 0.0.0.0 (removed)",
            "ipv4.ttl 63 (keep)",
            "ipv4.total_length 32 (structure)",
            "udp.source_port 53 -> 0 (removed)",
            "28 of 32 bytes are left; removed after them: 4",
        ] {
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.lines().any(|it| words(it) == line), "{line}: {text}");
        }
        // A packet that is cut has fewer fields.
        let explained = explain(&policy, &mut secrets, Link::Ip, &packet[..14]).expect("a policy");
        assert!(explained.headers[0].fields.iter().all(|field| field.name != "ipv4.source"));
    }
}
