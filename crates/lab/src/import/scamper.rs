//! Traces of scamper as JSON, as sc_warts2json writes them: one value a line.

use super::Failure;
use super::json::records;
use super::report::Context;
use super::trace::{Reply, Trace, put};
use serde::Deserialize;
use serde_json::Value;
use std::io::BufRead;
use std::net::IpAddr;

#[derive(Deserialize)]
struct Record {
    src: IpAddr,
    dst: IpAddr,
    /// Absent where nobody answered.
    #[serde(default)]
    hops: Vec<Hop>,
}

#[derive(Deserialize)]
struct Hop {
    addr: IpAddr,
    name: Option<String>,
    probe_ttl: u8,
    /// Milliseconds.
    rtt: Option<f64>,
    icmp_type: Option<u8>,
    icmp_code: Option<u8>,
}

/// Whether an answer says that a host is unreachable: the router waited for ARP before.
pub(super) fn waited(icmp_type: Option<u8>, icmp_code: Option<u8>) -> bool {
    icmp_type == Some(3) && icmp_code == Some(1)
}

/// Reads a file; a private source is called `name`.
pub(super) fn read(
    reader: impl BufRead,
    name: &str,
    context: &mut Context<'_>,
) -> Result<(), Failure> {
    records(reader, context, &mut |context, number, value| {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind != "trace" {
            if kind.is_empty() {
                context.bad(number, "a record has no type", "");
            } else if !kind.starts_with("cycle-") {
                context.skipped(number, "a record of another kind than trace", kind);
            }
            return Ok(());
        }
        let record = match serde_json::from_value::<Record>(value) {
            Ok(record) => record,
            Err(error) => {
                context.bad(number, "this is not a trace", &error.to_string());
                return Ok(());
            }
        };
        let mut trace = Trace::new(number, name, Some(record.dst));
        trace.from = Some(record.src);
        for hop in record.hops {
            let rtt = hop.rtt.filter(|_| !waited(hop.icmp_type, hop.icmp_code));
            let reply =
                Reply { address: Some(hop.addr), name: hop.name, rtt, count: 1, as_number: None };
            trace.reply(hop.probe_ttl, reply);
        }
        Ok(put(context, trace)?)
    })
}
