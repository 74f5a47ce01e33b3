//! The measuring stations: each enterprise's oracle ranks by what its station measures, also while a link
//! is congested.

use crate::{ENTERPRISES, screen::Screen};
use serde_json::{Value, json};
use std::{
    path::Path,
    time::{Duration, Instant, SystemTime},
};
use testbed::{
    Error,
    dinr::{Enterprise, Internet, Mesh, RoundTrip, station_address},
    wait_until,
};

const LIMIT: Duration = Duration::from_secs(40);
/// How long the load lasts.
const LOAD: Duration = Duration::from_secs(12);
/// The sites: their stations and their names.
const SITES: [(u32, &str, &str); 2] = [(12, "dinr-a", "DINR_A"), (13, "dinr-b", "DINR_B")];
const NAMES: [&str; 2] = ["Enterprise_A", "Enterprise_B"];
/// The link that is congested, in one direction, and how.
const LINK: &str = "isp-a>dinr-a";
const NARROW: [&str; 2] = ["rate=1Mbit", "queue=64KB"];

/// Starts what measures and ranks at the enterprises.
pub(crate) fn start<'a>(
    internet: &'a Internet,
    mesh: &Mesh,
    binary: &'a Path,
) -> Result<[Enterprise<'a>; 2], Error> {
    let [a, b] = ENTERPRISES;
    Ok([
        Enterprise::start(internet, a, mesh, binary)?,
        Enterprise::start(internet, b, mesh, binary)?,
    ])
}

/// Both sites as seen at both enterprises: the rank, and the last measurement.
type Moment = [[(usize, RoundTrip); 2]; 2];

/// Looks when there are measurements that began after `since`.
fn look(enterprises: &[Enterprise<'_>; 2], since: SystemTime) -> Result<Moment, Error> {
    let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut moment = Vec::new();
    for enterprise in enterprises {
        let order = order(enterprise)?;
        let mut row = Vec::new();
        for (asn, station, _) in SITES {
            let mut newest = None;
            wait_until(&format!("a measurement to {station}"), LIMIT, || {
                newest = enterprise.round_trip(station).ok().flatten();
                newest.is_some_and(|seen| i128::from(seen.at_ns) >= since as i128)
            })?;
            let rank = order.iter().position(|one| *one == station_address(asn));
            row.extend(rank.map(|rank| rank + 1).zip(newest));
        }
        moment.push(
            <[_; 2]>::try_from(row).map_err(|row| Error::new("a ranking", format!("{row:?}")))?,
        );
    }
    <[_; 2]>::try_from(moment).map_err(|_| Error::new("two enterprises", "there are not"))
}

/// Asks for the addresses of both sites' stations, DINR_B's named first.
fn order(enterprise: &Enterprise<'_>) -> Result<Vec<String>, Error> {
    let [a, b] = SITES.map(|(asn, ..)| station_address(asn));
    enterprise.rank(&[&b, &a])
}

/// Which site is first, as a number.
fn first(enterprise: &Enterprise<'_>) -> Option<usize> {
    let order = order(enterprise).ok()?;
    SITES.iter().position(|(asn, ..)| order.first() == Some(&station_address(*asn)))
}

/// Waits until each enterprise has the right site first, and returns how long that took.
fn wait(enterprises: &[Enterprise<'_>; 2], wanted: [usize; 2]) -> Result<Duration, Error> {
    let begin = Instant::now();
    let so = || enterprises.iter().zip(wanted).all(|(one, site)| first(one) == Some(site));
    wait_until("the order that follows from the delays", LIMIT, so)?;
    Ok(begin.elapsed())
}

/// Shows the order before, while and after a link is congested, with what the stations measured.
pub(crate) fn show(
    screen: &mut Screen,
    internet: &Internet,
    enterprises: &mut [Enterprise<'_>; 2],
) -> Result<(), Error> {
    let lab = internet.lab().ok_or_else(|| Error::new("the lab", "there is none"))?;
    let begin = Instant::now();
    screen.line("Both sites and both enterprises measure to each other all the time: STAMP, 20 packets a second.");
    screen.line(
        "Each enterprise's oracle uses it as link latency ([[probe.measured]]); its file has 1 s.",
    );
    clock(screen, &mut enterprises[0])?;
    let took = wait(enterprises, [0, 1]);
    screen.check(took.is_ok(), "each enterprise's oracle has its near site first");
    let before = look(enterprises, SystemTime::now() - Duration::from_secs(5))?;

    let words = [&["link", LINK, "set"][..], &NARROW].concat();
    screen.line("");
    screen.name(&format!("$ nigh lab {}", words.join(" ")));
    screen.name(&format!(
        "ENT_A-testPC$ nigh probe run throughput dinr-a --duration {}s",
        LOAD.as_secs()
    ));
    lab.ask(&words)?;
    let load = enterprises[0].load("dinr-a", LOAD)?;
    let turned = wait(enterprises, [1, 1]);
    // The queue goes on filling for a while.
    let during = look(enterprises, SystemTime::now() + Duration::from_secs(3))?;
    let finished = load.finish(LOAD + LIMIT)?;
    let record: Value = serde_json::from_str(&finished.stdout).unwrap_or_default();
    let rate = record["figures"]["bytes_per_second"].as_f64().map(|bytes| bytes * 8.0 / 1e6);
    screen.line(&match rate {
        Some(rate) => {
            format!(
                "one TCP connection, {rate:.1} Mbit/s: packets wait in the queue before the link"
            )
        }
        None => format!("the load failed: {}{}", finished.stdout, finished.stderr),
    });
    let back = wait(enterprises, [0, 1]);
    let after = look(enterprises, SystemTime::now())?;
    lab.ask(&["link", LINK, "set", "rate=none"])?;
    screen.line("");
    table(screen, [&before, &during, &after]);
    let since = format!("{}s", begin.elapsed().as_secs() + 3);
    screen.name("ENT_A-testPC$ nigh probe show delay --to dinr-a --direction round-trip");
    enterprises[0].chart("dinr-a", &since)?.lines().for_each(|line| screen.line(line));
    screen.line("");
    let after_load = turned.as_ref().map_or_else(ToString::to_string, |took| {
        format!("{:.1} s after the load began", took.as_secs_f64())
    });
    screen.check(
        rate.is_some() && turned.is_ok(),
        &format!("{after_load} Enterprise_A's oracle has DINR_B first; Enterprise_B's order stays"),
    );
    screen.check(back.is_ok(), "and DINR_A again when it has ended");
    Ok(())
}

/// The stations' clock errors; on this machine they share one clock.
fn clock(screen: &Screen, enterprise: &mut Enterprise<'_>) -> Result<(), Error> {
    let status = enterprise.nigh().control(&json!({"do": "status"}))?;
    let line = match status["probe"]["clock_error_ns"].as_f64() {
        Some(error) => format!("The stations' clocks are right within {:.3} ms.", error / 1e6),
        None => "The stations' clocks have no known error here: one-way delay is half of the round trip."
            .to_owned(),
    };
    screen.line(&line);
    screen.line("");
    Ok(())
}

/// For each enterprise and site the rank, round trip with its error, and loss.
fn table(screen: &Screen, moments: [&Moment; 3]) {
    screen.faint(&format!(
        "{:<22}{:<26}{:<26}{}",
        "rank, round trip, loss", " before", " while it is loaded", " after"
    ));
    for (i, name) in NAMES.iter().enumerate() {
        for (k, (.., site)) in SITES.iter().enumerate() {
            let cells = moments.map(|moment| cell(moment[i][k]));
            screen.line(&format!("{name} {site}  {}", cells.join("  ")));
        }
    }
    screen.line("");
}

fn cell((rank, seen): (usize, RoundTrip)) -> String {
    let median = match seen.median {
        Some(median) => format!("{median:>7.2} ±{:.2} ms", seen.error),
        None => "all lost".to_owned(),
    };
    format!("{:<24}", format!("{rank}. {median} {:>2.0} %", seen.loss * 100.0))
}
