//! The step about many requests: the limit for a source.

use crate::{
    ENTERPRISES,
    screen::{Screen, thousands},
};
use serde_json::json;
use std::time::{Duration, Instant};
use testbed::{
    Error,
    dinr::{self, Internet, Ledger, Site},
};

/// More requests than a source may send are dropped, and counted.
pub(crate) fn limit(
    screen: &mut Screen,
    internet: &Internet,
    site: &Site<'_>,
) -> Result<(), Error> {
    const COUNT: u64 = 1000;
    let pc = internet.host(ENTERPRISES[0]);
    let before = site.ledger()?;
    let begin = Instant::now();
    pc.run(
        &["ping", "-n", "-q", "-c", &COUNT.to_string(), "-i", "0.001", "-W", "0.2", dinr::SERVICE4],
        Duration::from_secs(20),
    )?;
    let took = begin.elapsed().as_secs_f64();
    let ledger = site.ledger()?.since(&before);
    screen.name(&format!("ENT_A-testPC$ ping -c {COUNT} -i 0.001 {}", dinr::SERVICE4));
    ledger_line(screen, &ledger);
    screen.line("");
    // A full bucket, and what flows into it meanwhile.
    let most = 200 + (100.0 * took).ceil() as u64;
    let limited = ledger.dropped.iter().any(|(reason, _)| reason == "source_limit");
    screen.check(
        ledger.received == COUNT && limited && (200..=most).contains(&ledger.answered),
        "a source may burst 200 requests and then 100 a second; the rest is dropped, by name",
    );
    screen.check(balances(&ledger), "received = answered + passed + dropped");
    screen.line("");
    Ok(())
}

/// Switches the limits of both sites off while they run, for what follows.
pub(crate) fn lift(screen: &Screen, sites: [&Site<'_>; 2]) -> Result<(), Error> {
    for site in sites {
        site.ask(&json!({"ask": "limit", "rate": 0}))?;
    }
    screen.line(
        "From here on both sites answer without limit (`nigh echo limit --rate 0`, at run time).",
    );
    screen.line("");
    Ok(())
}

fn balances(ledger: &Ledger) -> bool {
    ledger.received == ledger.answered + ledger.passed + ledger.drops()
}

fn ledger_line(screen: &Screen, ledger: &Ledger) {
    let mut text = format!(
        "DINR_A's ledger: {} received = {} answered + {} passed",
        thousands(ledger.received),
        thousands(ledger.answered),
        thousands(ledger.passed)
    );
    for (reason, count) in &ledger.dropped {
        text.push_str(&format!(" + {} {reason}", thousands(*count)));
    }
    screen.line(&text);
}
