//! The steps that the paper left to future work: a site dies, returns, and is drained.
//!
//! Each site answers with TTL 64, so the TTL with which a reply reaches ENT_A-testPC shows which site
//! sent it: three routers away or seven.

use crate::{
    ENTERPRISES,
    screen::{Screen, thousands},
};
use nix::sys::signal::Signal;
use serde_json::json;
use std::time::{Duration, Instant, SystemTime};
use testbed::{
    Error, Pings,
    dinr::{self, Internet, Site},
    pings::{Reply, lost},
    wait_until,
};

const FROM_A: u8 = dinr::TTL_AT_ENT_A[0];
const FROM_B: u8 = dinr::TTL_AT_ENT_A[1];

const INTERVAL: Duration = Duration::from_millis(2);
const LIMIT: Duration = Duration::from_secs(20);

/// Begins to ping from ENT_A-testPC and waits until the site with this TTL answers.
fn begin(internet: &Internet, ttl: u8) -> Result<Pings, Error> {
    let pings = Pings::start(internet.host(ENTERPRISES[0]), dinr::SERVICE4, INTERVAL)?;
    wait_until("answers from the right site", LIMIT, || from(&pings, ttl))?;
    Ok(pings)
}

fn from(pings: &Pings, ttl: u8) -> bool {
    pings.last().is_some_and(|reply| reply.ttl == ttl)
}

/// Lets the pings run for a while, to see that the change holds.
fn settle(pings: &Pings) -> Result<(), Error> {
    let goal = pings.last().map_or(0, |reply| reply.sequence) + 250;
    wait_until("half a second of pings", LIMIT, || {
        pings.last().is_some_and(|reply| reply.sequence >= goal)
    })
    .map(drop)
}

/// Milliseconds from `begin` to the first of the replies after it that came with this TTL.
fn first(replies: &[Reply], ttl: u8, begin: SystemTime) -> Option<f64> {
    let reply = replies.iter().find(|reply| reply.ttl == ttl && reply.at >= begin)?;
    Some(reply.at.duration_since(begin).ok()?.as_secs_f64() * 1e3)
}

/// `kill -9`, and how long until the other site answers.
pub(crate) fn kill(
    screen: &mut Screen,
    internet: &Internet,
    site: &mut Site<'_>,
) -> Result<(), Error> {
    let pings = begin(internet, FROM_A)?;
    settle(&pings)?;
    let killed = SystemTime::now();
    site.nigh().process().signal(Signal::SIGKILL)?;
    wait_until("answers from DINR_B", LIMIT, || from(&pings, FROM_B))?;
    settle(&pings)?;
    let path = internet.router(ENTERPRISES[0]).best_path(dinr::PREFIX4).unwrap_or_default();
    let replies = pings.finish()?;
    let Some(took) = first(&replies, FROM_B, killed) else {
        screen.check(false, "DINR_B did not answer after the kill");
        return Ok(());
    };
    screen.line(&format!("first answer from DINR_B       {took:>8.1} ms after the kill"));
    screen.line(&format!(
        "pings lost                     {:>8}    of {}",
        lost(&replies),
        replies.len()
    ));
    screen.line(&format!("Enterprise_A's path now        {path}"));
    screen.line("");
    screen.check(took < 1000.0, "the other site answers within a second of the kill");
    screen.check(path == "4 2 1 3 5 13", "and Enterprise_A's path crosses the whole internet");
    Ok(())
}

/// Starts the site again, and how long until it answers.
pub(crate) fn back(
    screen: &mut Screen,
    internet: &Internet,
    site: &mut Site<'_>,
) -> Result<(), Error> {
    let pings = begin(internet, FROM_B)?;
    let started = SystemTime::now();
    site.restart()?;
    // A site that has just started has its limits back.
    site.ask(&json!({"do": "limit", "rate": 0}))?;
    wait_until("answers from DINR_A", LIMIT, || from(&pings, FROM_A))?;
    settle(&pings)?;
    let replies = pings.finish()?;
    let took = first(&replies, FROM_A, started);
    screen.line(&format!(
        "first answer from DINR_A       {:>8.1} ms after the start of `nigh run`",
        took.unwrap_or(f64::NAN)
    ));
    screen.line(&format!(
        "pings lost                     {:>8}    of {}",
        lost(&replies),
        replies.len()
    ));
    screen.line("");
    let path = internet.router(ENTERPRISES[0]).best_path(dinr::PREFIX4).unwrap_or_default();
    screen.check(took.is_some() && path == "4 12", "DINR_A serves Enterprise_A again, path `4 12`");
    Ok(())
}

/// `nigh drain`, and what was lost.
pub(crate) fn drain(
    screen: &mut Screen,
    internet: &Internet,
    site: &Site<'_>,
) -> Result<(), Error> {
    let pings = begin(internet, FROM_A)?;
    settle(&pings)?;
    let (began, clock) = (Instant::now(), SystemTime::now());
    site.drain()?;
    let took = began.elapsed();
    wait_until("answers from DINR_B", LIMIT, || from(&pings, FROM_B))?;
    settle(&pings)?;
    let replies = pings.finish()?;
    let moved = first(&replies, FROM_B, clock);
    screen.line(&format!(
        "first answer from DINR_B       {:>8.1} ms after `nigh drain` (GRACEFUL_SHUTDOWN, RFC 8326)",
        moved.unwrap_or(f64::NAN)
    ));
    screen.line(&format!(
        "drained                        {:>8.1} ms: withdrawn, and quiet for a second",
        took.as_secs_f64() * 1e3
    ));
    screen.line(&format!(
        "pings lost                     {:>8}    of {}",
        lost(&replies),
        thousands(replies.len() as u64)
    ));
    screen.line("");
    screen.check(moved.is_some() && lost(&replies) == 0, "nothing was lost");
    Ok(())
}
