//! The steps that the paper showed: BGP tables, traceroutes, and which site answers whom.

use crate::{
    ENTERPRISES, MILLISECONDS,
    screen::{Screen, thousands},
};
use serde_json::{Value, json};
use std::time::Duration;
use testbed::{
    Error, Namespace,
    dinr::{self, Family, Internet, Ledger, Route, Site},
    wait_until,
};

/// A site's status, once it shows the announcement.
pub(crate) fn status(screen: &mut Screen, site: &mut Site<'_>) -> Result<(), Error> {
    let read = |site: &mut Site<'_>| {
        let echo = site.nigh().control(&json!({"do": "status"}))?["echo"].take();
        let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
        let upstream = &echo["anycast"]["upstreams"][0];
        Ok::<_, Error>((
            text(&echo["interfaces"][0]["mode"]),
            text(&upstream["session"]),
            text(&upstream["advertised"]),
        ))
    };
    let mut seen = read(site)?;
    let _ = wait_until("the announcement in the status", Duration::from_secs(5), || {
        read(site).is_ok_and(|now| {
            seen = now;
            seen.2 != "nothing"
        })
    });
    let (mode, session, advertised) = seen;
    screen.check(
        (mode.as_str(), session.as_str(), advertised.as_str()) == ("native", "Established", "all"),
        &format!("{}: {mode} XDP, session {session}, {advertised} announced", site.name()),
    );
    Ok(())
}

/// The tables of both enterprises and of ISP_Z.
pub(crate) fn tables(screen: &mut Screen, internet: &Internet) -> Result<(), Error> {
    for (asn, path) in ENTERPRISES.into_iter().zip(["4 12", "5 13"]) {
        let router = internet.router(asn);
        let routes = router.routes(Family::V4)?;
        table(screen, router.name, &routes);
        screen.line("");
        let best = router.best_path(dinr::PREFIX4);
        let best6 = router.best_path(dinr::PREFIX6);
        screen.check(
            best.as_deref() == Some(path) && best6 == best,
            &format!(
                "{}'s best path to {} is `{path}`, and to {} too",
                router.name,
                dinr::PREFIX4,
                dinr::PREFIX6
            ),
        );
        screen.line("");
    }
    let isp_z = internet.router(1);
    let routes = isp_z.routes(Family::V4)?;
    table(screen, isp_z.name, &routes);
    screen.line("");
    let mut service: Vec<&Route> = routes.iter().filter(|r| r.prefix == dinr::PREFIX4).collect();
    service.sort_by(|one, other| one.path.cmp(&other.path));
    let paths: Vec<_> = service.iter().map(|route| route.path.as_str()).collect();
    screen.check(
        paths == ["2 4 12", "3 5 13"] && service.iter().filter(|route| route.best).count() == 1,
        "ISP_Z has a route to both sites and uses one",
    );
    Ok(())
}

fn table(screen: &Screen, name: &str, routes: &[Route]) {
    screen.name(&format!("{name} BGP table"));
    screen.faint("   Network          Next Hop       LocPrf  Path");
    // BIRD lists prefixes in the order of its hash table.
    let mut sorted: Vec<&Route> = routes.iter().collect();
    let number = |route: &Route| {
        route.prefix.split('.').next().and_then(|first| first.parse::<u32>().ok()).unwrap_or(0)
    };
    sorted.sort_by_key(|route| (number(route), !route.best));
    let mut last = "";
    for route in sorted {
        let mark = if route.best { "*>" } else { "* " };
        let prefix = if route.prefix == last { "" } else { &route.prefix };
        let hop = if route.next_hop.is_empty() { "0.0.0.0" } else { &route.next_hop };
        let preference = route.local_pref.map(|value| value.to_string()).unwrap_or_default();
        let space = if route.path.is_empty() { "" } else { " " };
        screen.line(&format!(
            "{mark} {prefix:<16} {hop:<14} {preference:>6}  {}{space}{}",
            route.path, route.origin
        ));
        last = &route.prefix;
    }
}

/// The paper's three traceroutes, and the delay of each hop.
pub(crate) fn traces(screen: &mut Screen, internet: &Internet) -> Result<(), Error> {
    let [pc_a, pc_b] = ENTERPRISES.map(|asn| internet.host(asn));
    let traces = [
        ("ENT_A-testPC", pc_a, dinr::SERVICE4, vec!["20.0.0.1", "172.16.0.17", "172.16.0.30"]),
        ("ENT_B-testPC", pc_b, dinr::SERVICE4, vec!["21.0.0.1", "172.16.0.21", "172.16.0.34"]),
        (
            "ENT_B-testPC",
            pc_b,
            dinr::CENTRAL4,
            vec![
                "21.0.0.1",
                "172.16.0.21",
                "172.16.0.9",
                "172.16.0.5",
                "172.16.0.2",
                "172.16.0.14",
                "172.16.0.26",
            ],
        ),
    ];
    let mut early = Vec::new();
    for (name, pc, target, mut wanted) in traces {
        wanted.push(target);
        screen.name(&format!("{name}$ traceroute -I {target}"));
        let hops = trace(pc, target)?;
        for hop in &hops {
            screen.line(&format!("{} {}", hop.line, whose(&hop.address)));
        }
        screen.line("");
        let seen: Vec<_> = hops.iter().map(|hop| hop.address.as_str()).collect();
        let text = match target {
            dinr::CENTRAL4 => "through the whole internet: eight hops, the paper's",
            _ => "the near site: four hops, the paper's",
        };
        screen.check(seen == wanted, text);
        screen.line("");
        early.extend(too_early(&hops));
    }
    let found = match early.is_empty() {
        true => String::new(),
        false => format!(": not so at {}", early.join(", ")),
    };
    screen.check(
        early.is_empty(),
        &format!("each further AS adds {MILLISECONDS} ms one way, through the lab{found}"),
    );
    let [six_a, six_b] = [trace(pc_a, dinr::SERVICE6)?.len(), trace(pc_b, dinr::SERVICE6)?.len()];
    screen.check(
        (six_a, six_b) == (4, 4),
        &format!("{} is four hops from either PC too", dinr::SERVICE6),
    );
    Ok(())
}

/// One hop of a traceroute.
struct Hop {
    address: String,
    /// The shortest round trip in milliseconds.
    least: f64,
    line: String,
}

fn trace(pc: &Namespace, target: &str) -> Result<Vec<Hop>, Error> {
    let answer = pc.check(&["traceroute", "-I", "-n", "-w", "2", target])?;
    let hop = |line: &str| Hop {
        address: line.split_whitespace().nth(1).unwrap_or_default().to_owned(),
        least: line
            .split_whitespace()
            .skip(2)
            .filter_map(|word| word.parse().ok())
            .fold(f64::INFINITY, f64::min),
        line: columns(line),
    };
    Ok(answer.lines().skip(1).map(hop).collect())
}

/// The hops of a trace that answered sooner than the wires up to there let them: the first router is
/// before all wires, and the host at the end behind the last. How much later they are is this machine's
/// affair.
fn too_early(hops: &[Hop]) -> Vec<String> {
    let is_early = |(index, hop): &(usize, &Hop)| {
        let wires = (*index).min(hops.len().saturating_sub(2)) as f64;
        hop.least < wires * f64::from(2 * MILLISECONDS)
    };
    hops.iter().enumerate().filter(is_early).map(|(_, hop)| hop.address.clone()).collect()
}

/// A line of traceroute with its columns aligned: number, address, three round-trip times.
fn columns(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().filter(|word| *word != "ms").collect();
    let [number, address, times @ ..] = words.as_slice() else { return line.to_owned() };
    let times: String = times.iter().map(|time| format!("{time:>9} ms")).collect();
    format!("{number:>2}  {address:<14}{times:<38}")
}

/// Which router or host an address of a traceroute belongs to.
fn whose(address: &str) -> &'static str {
    match address {
        "20.0.0.1" => "Enterprise_A",
        "21.0.0.1" => "Enterprise_B",
        "172.16.0.2" => "ISP_X",
        "172.16.0.5" => "ISP_Z",
        "172.16.0.9" => "ISP_Y",
        "172.16.0.14" | "172.16.0.17" => "ISP_A",
        "172.16.0.21" => "ISP_B",
        "172.16.0.26" => "Central",
        "172.16.0.30" => "DINR_A",
        "172.16.0.34" => "DINR_B",
        dinr::SERVICE4 => "the service",
        dinr::CENTRAL4 => "the central service",
        _ => "",
    }
}

/// Pings from both PCs, and the sites' ledgers for them.
pub(crate) fn answers(
    screen: &mut Screen,
    internet: &Internet,
    site_a: &Site<'_>,
    site_b: &Site<'_>,
) -> Result<(), Error> {
    const COUNT: u64 = 10;
    let mut rows = Vec::new();
    for (name, asn) in ["ENT_A-testPC", "ENT_B-testPC"].into_iter().zip(ENTERPRISES) {
        let before = [site_a.ledger()?, site_b.ledger()?];
        let answer = internet
            .host(asn)
            .run(
                &["ping", "-n", "-c", &COUNT.to_string(), "-i", "0.05", dinr::SERVICE4],
                Duration::from_secs(20),
            )?
            .stdout;
        let after = [site_a.ledger()?.since(&before[0]), site_b.ledger()?.since(&before[1])];
        screen.name(&format!("{name}$ ping -c {COUNT} {}", dinr::SERVICE4));
        for line in
            answer.lines().filter(|line| line.contains("transmitted") || line.contains("rtt"))
        {
            screen.line(line);
        }
        screen.line("");
        rows.push((name, after));
    }
    screen.faint("asked by          DINR_A received   answered   DINR_B received   answered");
    for (name, [a, b]) in &rows {
        screen.line(&format!(
            "{name:<16} {:>16} {:>10} {:>17} {:>10}",
            thousands(a.received),
            thousands(a.answered),
            thousands(b.received),
            thousands(b.answered)
        ));
    }
    screen.line("");
    let all = |ledger: &Ledger| ledger.received == COUNT && ledger.answered == COUNT;
    let near = rows
        .iter()
        .enumerate()
        .all(|(i, (_, ledgers))| all(&ledgers[i]) && ledgers[1 - i] == Ledger::default());
    screen.check(near, "each PC was answered by its near site, every time, and by no other");
    Ok(())
}
