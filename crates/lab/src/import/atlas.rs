//! Traceroutes of RIPE Atlas: one JSON value a line, or an array of them.

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
    prb_id: u64,
    /// The probe's own address.
    src_addr: Option<IpAddr>,
    dst_addr: Option<IpAddr>,
    result: Vec<Hop>,
}

#[derive(Deserialize)]
struct Hop {
    hop: Option<u8>,
    /// Absent where the probe could not send.
    #[serde(default)]
    result: Vec<Answer>,
}

/// One answer; `{"x": "*"}` where none came.
#[derive(Deserialize)]
struct Answer {
    from: Option<IpAddr>,
    /// Milliseconds; absent where the answer was late.
    rtt: Option<f64>,
    /// What was unreachable: H for a host. A number for codes without a letter.
    err: Option<Value>,
}

/// The hop that is asked at last whether the destination is there at all.
const LAST_RESORT: u8 = 255;

/// Reads a file.
pub(super) fn read(reader: impl BufRead, context: &mut Context<'_>) -> Result<(), Failure> {
    records(reader, context, &mut |context, number, value| {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or("traceroute");
        if kind != "traceroute" {
            context.skipped(number, "a measurement of another kind than traceroute", kind);
            return Ok(());
        }
        let record = match serde_json::from_value::<Record>(value) {
            Ok(record) => record,
            Err(error) => {
                context.bad(number, "this is not a traceroute of Atlas", &error.to_string());
                return Ok(());
            }
        };
        let name = format!("probe{}", record.prb_id);
        let mut trace = Trace::new(number, &name, record.dst_addr);
        trace.from = record.src_addr;
        for hop in record.result {
            let Some(ttl) = hop.hop.filter(|&ttl| ttl > 0 && ttl < LAST_RESORT) else {
                continue;
            };
            trace.hop(ttl);
            for answer in hop.result {
                let Some(address) = answer.from else { continue };
                let waited = answer.err.as_ref().and_then(Value::as_str) == Some("H");
                let rtt = answer.rtt.filter(|_| !waited);
                let address = Some(address);
                trace.reply(ttl, Reply { address, rtt, count: 1, ..Reply::default() });
            }
        }
        Ok(put(context, trace)?)
    })
}
