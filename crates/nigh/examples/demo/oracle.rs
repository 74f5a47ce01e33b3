//! The oracle of ISP_A: the PCs ask it, and the order follows the BGP tables.

use crate::screen::Screen;
use std::{
    path::Path,
    time::{Duration, Instant},
};
use testbed::{
    Error,
    dinr::{self, Internet, Oracle},
    wait_until,
};

const LIMIT: Duration = Duration::from_secs(20);

/// What is ranked: an address in each of six ASes, the farthest first. From ISP_A the paths lead
/// through 5, 4, 3, 1, 1 and 1 ASes, and equal ones keep the order of the question.
const CANDIDATES: [&str; 6] =
    ["21.0.0.10", "5.0.0.1", "3.0.0.1", dinr::SERVICE4, dinr::CENTRAL4, "2.0.0.1"];
const ORDER: [&str; 6] =
    [dinr::SERVICE4, dinr::CENTRAL4, "2.0.0.1", "3.0.0.1", "5.0.0.1", "21.0.0.10"];
/// The same when DINR_A cannot be reached: the service is at DINR_B then, five ASes away, as
/// Enterprise_B is, which was named before it.
const WITHOUT: [&str; 6] =
    [dinr::CENTRAL4, "2.0.0.1", "3.0.0.1", "5.0.0.1", "21.0.0.10", dinr::SERVICE4];

/// Asks from an enterprise's PC, as anybody would.
fn ask(internet: &Internet, enterprise: u32, binary: &Path) -> Result<Vec<String>, Error> {
    let binary = binary.to_string_lossy();
    let words = [&*binary, "oracle", "rank", "--json", "--server", dinr::ORACLE4];
    let line = [&words[..], &CANDIDATES].concat();
    let text = internet.host(enterprise).check(&line)?;
    let answer: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Error::new("reading a ranking", error))?;
    let list = answer["candidates"].as_array().into_iter().flatten();
    Ok(list.filter_map(|row| row.as_str()).map(str::to_owned).collect())
}

/// Waits for an order and returns how long that took.
fn wait(internet: &Internet, binary: &Path, order: &[&str]) -> Result<Duration, Error> {
    let begin = Instant::now();
    let enterprise = crate::ENTERPRISES[0];
    wait_until("the order", LIMIT, || {
        ask(internet, enterprise, binary).is_ok_and(|found| found == order)
    })?;
    Ok(begin.elapsed())
}

/// Starts the oracle, asks it, takes a link away and gives it back.
pub(crate) fn show(
    screen: &mut Screen,
    internet: &Internet,
    binary: &Path,
) -> Result<Oracle, Error> {
    let oracle = Oracle::start(internet, binary)?;
    let took = wait(internet, binary, &ORDER)?;
    screen.line(&format!(
        "`nigh run` in ISP_A receives its routes from FRR over BMP, {:.1} s after the start",
        took.as_secs_f64()
    ));
    screen.line("");
    screen.faint(&format!(
        "PC$ nigh oracle rank --server {} {}",
        dinr::ORACLE4,
        CANDIDATES.join(" ")
    ));
    for (enterprise, name) in crate::ENTERPRISES.into_iter().zip(["ENT_A-testPC", "ENT_B-testPC"]) {
        let order = ask(internet, enterprise, binary)?;
        screen.line(&format!("{name}   {}", order.join("  ")));
        screen.check(order == ORDER, &format!("{name} gets the order of ISP_A's BGP table"));
    }
    let router = &internet.router(4).namespace;
    // The link's IPv6 addresses outlive it.
    router.sysctl(&[("ipv6.conf.dinr-a.keep_addr_on_down", "1")])?;
    router.check(&["ip", "link", "set", "dinr-a", "down"])?;
    let took = wait(internet, binary, &WITHOUT);
    screen.line("");
    screen.line(&format!("link to DINR_A down   {}", WITHOUT.join("  ")));
    let came = took.as_ref().map_or_else(ToString::to_string, |took| {
        format!(
            "{} ranks last {:.2} s after its link went down: its path now has five ASes",
            dinr::SERVICE4,
            took.as_secs_f64()
        )
    });
    screen.check(took.is_ok(), &came);
    router.check(&["ip", "link", "set", "dinr-a", "up"])?;
    let took = wait(internet, binary, &ORDER);
    let came = took.as_ref().map_or_else(ToString::to_string, |took| {
        format!("and is back at its rank {:.1} s after the link", took.as_secs_f64())
    });
    screen.check(took.is_ok(), &came);
    Ok(oracle)
}
