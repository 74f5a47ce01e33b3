//! The step about many requests: the limit for a source, and the sender that tests a responder.

use crate::{
    ENTERPRISES,
    screen::{Screen, thousands},
};
use serde_json::{Value, json};
use std::{
    path::Path,
    time::{Duration, Instant},
};
use testbed::{
    Error, Forward,
    dinr::{self, Internet, Ledger, Site},
    nigh::HTTP_PORT,
};

/// More requests than a source may send are dropped, and counted.
pub(crate) fn limit(
    screen: &mut Screen,
    internet: &Internet,
    site: &Site<'_>,
) -> Result<(), Error> {
    const COUNT: u64 = 1000;
    let count = COUNT.to_string();
    let pc = internet.host(ENTERPRISES[0]);
    let before = site.ledger()?;
    let begin = Instant::now();
    pc.run(
        // All at once: while replies are in flight, ping waits longer between requests than it is set to.
        &[
            "ping",
            "-n",
            "-q",
            "-c",
            &count,
            "-l",
            &count,
            "-i",
            "0.001",
            "-W",
            "0.2",
            dinr::SERVICE4,
        ],
        Duration::from_secs(20),
    )?;
    let took = begin.elapsed().as_secs_f64();
    let ledger = site.ledger()?.since(&before);
    screen.name(&format!("ENT_A-testPC$ ping -c {COUNT} -l {COUNT} {}", dinr::SERVICE4));
    ledger_line(screen, &ledger);
    screen.line("");
    // A full bucket, and what flows into it meanwhile.
    let most = 200 + (100.0 * took).ceil() as u64;
    let limited = ledger.dropped.iter().any(|(reason, _)| reason == "source_limit");
    screen.check(
        ledger.received == COUNT && limited && (200..=most).contains(&ledger.answered),
        "a source gets a burst of 200 requests, then 100 a second; the rest is dropped, with the reason",
    );
    screen.check(balances(&ledger), "received = answered + passed + dropped");
    screen.line("");
    Ok(())
}

/// Switches the limits of both sites off while they run, for what follows.
pub(crate) fn lift(screen: &Screen, sites: [&Site<'_>; 2]) -> Result<(), Error> {
    for site in sites {
        site.ask(&json!({"do": "limit", "rate": 0}))?;
    }
    screen.line(
        "From here on both sites answer without limit (`nigh echo limit --rate 0`, at run time).",
    );
    screen.line("");
    Ok(())
}

/// Many requests from `nigh blast`, each accounted for at four points.
pub(crate) fn many(
    screen: &mut Screen,
    internet: &Internet,
    site: &Site<'_>,
    binary: &Path,
) -> Result<(), Error> {
    const RATE: &str = "20000";
    // Fewer where each takes long: on the emulated machines of scripts/test-kernels.
    let requests =
        std::env::var("DEMO_REQUESTS").map_or(Ok(1_000_000), |count| count.parse::<u64>());
    let requests = requests.map_err(|error| Error::new("DEMO_REQUESTS", error))?;
    let pc = internet.host(ENTERPRISES[0]);
    // Over this management network blast reads the site's ledger.
    let (port, service) = (HTTP_PORT + 1, internet.service(dinr::SITES[0]));
    let peer = Forward::start(Some(pc), port, service, HTTP_PORT)?;
    let before = site.ledger()?;
    let peer = format!("http://{}", peer.address());
    let load = format!("{} --count {requests} --rate {RATE}", dinr::SERVICE4);
    let whom = format!("--allow {} --peer {peer}", dinr::PREFIX4);
    screen.name(&format!("ENT_A-testPC$ nigh blast {load} \\"));
    screen.name(&format!("                {whom}"));
    screen.line("");
    let program = binary.to_string_lossy();
    let mut words = vec![&*program, "blast", "--json"];
    words.extend(load.split(' ').chain(whom.split(' ')));
    let finished = pc.run(&words, Duration::from_secs(120))?;
    let ledger = site.ledger()?.since(&before);
    let wrote = || format!("{}{}", finished.stdout, finished.stderr);
    let report: Value =
        serde_json::from_str(&finished.stdout).map_err(|_| Error::new("nigh blast", wrote()))?;
    let (count, loss) = (|value: &Value| value.as_u64().unwrap_or_default(), &report["loss"]);
    let sent = count(&report["sent"]);
    let there = count(&loss["lost_forward"]);
    let back = count(&loss["lost_reverse"]) + count(&loss["overruns"]);
    let (received, read) = (count(&loss["responder_received"]), count(&report["received"]));
    // Before the run blast asks once, so that every neighbour on the path is resolved.
    let early = ledger.received - received;
    let answered = ledger.answered - early;
    points(
        screen,
        [
            ("sent", sent, count(&loss["not_sent"])),
            ("received by DINR_A", received, there),
            ("answered", answered, ledger.drops()),
            ("replies read", read, back),
        ],
    );
    let milliseconds = |name: &str| report["rtt_ns"][name].as_f64().unwrap_or(f64::NAN) / 1e6;
    screen.line(&format!(
        "{:.0} requests a second; round trip p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms",
        report["packets_per_second"].as_f64().unwrap_or(f64::NAN),
        milliseconds("p50"),
        milliseconds("p99"),
        milliseconds("p99.9")
    ));
    ledger_line(screen, &ledger);
    if early > 0 {
        screen.line("(one request went ahead, so that every neighbour on the path was resolved)");
    }
    screen.line("");
    let bad = ["corrupt", "duplicated"].map(|name| count(&report[name]));
    screen.check(
        sent == requests && sent == there + received && early <= 1,
        &format!(
            "{} requests were sent, and each arrived or is known to have been lost on the path",
            thousands(requests)
        ),
    );
    screen.check(
        answered == read + back && bad == [0, 0],
        "each answer came back intact and once, or is known to have been lost on the path",
    );
    screen.check(balances(&ledger), "received = answered + passed + dropped");
    Ok(())
}

/// The four points, with what is left after each and what was lost there.
fn points(screen: &Screen, points: [(&str, u64, u64); 4]) {
    let row = |cell: &dyn Fn(&(&str, u64, u64)) -> String| {
        points.iter().map(|point| format!("{:>22}", cell(point))).collect::<String>()
    };
    screen.faint(&row(&|(name, ..)| (*name).to_owned()));
    screen.line(&row(&|(_, left, _)| thousands(*left)));
    screen.line(&row(&|(.., lost)| format!("{} lost", thousands(*lost))));
    screen.line("");
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
