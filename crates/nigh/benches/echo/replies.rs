//! Replies a second: the kernel's own echo, then the responder, asked by `nigh blast --engine live`
//! from the other end of one veth. The generator is held to one core, and a veth's receiver runs where
//! it is woken, so that core does all the work: making, answering, matching. What the path itself can
//! carry is shown by a program that turns requests round without any question.
//!
//! The kernel is measured as it is everywhere, without any XDP program (live frames reach it because
//! its end has GRO on), and behind a program that passes everything.

use crate::{Figures, NIGH};
use serde_json::Value;
use std::{error::Error, path::Path, time::Duration};
use testbed::{End, Namespace, Nigh, Receiver, link};

const SERVICE: &str = "50.50.50.50";

/// Requests of one turn.
const COUNT: &str = "3000000";

/// Turns of each responder; the best counts, as disturbance only takes away.
const TURNS: usize = 3;

/// One turn: replies a second, and the share of requests that were answered.
fn turn(from: &Namespace) -> Result<(f64, f64), Box<dyn Error>> {
    let words = [
        "taskset",
        "--cpu-list",
        "1",
        NIGH,
        "blast",
        SERVICE,
        "--engine",
        "live",
        "--count",
        COUNT,
        "--rate",
        "max",
        "--allow",
        "50.0.0.0/8",
        "--json",
    ];
    let finished = from.run(&words, Duration::from_secs(120))?;
    let report: Value = serde_json::from_str(&finished.stdout)
        .map_err(|error| format!("{error}: {}{}", finished.stdout, finished.stderr))?;
    let number = |name: &str| report[name].as_f64().ok_or(format!("no `{name}` in {report}"));
    let (sent, received, rate) = (number("sent")?, number("received")?, number("rate")?);
    Ok((rate * received / sent, received / sent))
}

fn best(figures: &mut Figures, name: &str, from: &Namespace) -> Result<f64, Box<dyn Error>> {
    let mut best = (0.0, 0.0);
    for _ in 0..TURNS {
        let turn = turn(from)?;
        if turn.0 > best.0 {
            best = turn;
        }
    }
    figures.add(&format!("{name}: replies a second"), best.0, "replies a second", None);
    figures.add(&format!("{name}: share answered"), best.1 * 100.0, "percent", None);
    Ok(best.0)
}

/// Measures all of them.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    println!("\nReplies a second over one veth, {COUNT} requests of 60 bytes, best of {TURNS}");
    let (asker, site) = (Namespace::new("asker")?, Namespace::new("site")?);
    link(
        End::new(&asker, "eth0").address("192.0.2.1/24"),
        End::new(&site, "eth0").address("192.0.2.2/24"),
    )?;
    asker.check(&["ip", "route", "add", "default", "via", "192.0.2.2"])?;
    site.check(&["ip", "address", "add", &format!("{SERVICE}/32"), "dev", "lo"])?;

    let kernel = best(figures, "kernel's own echo", &asker)?;
    let receiver = Receiver::new(&site, "eth0")?;
    best(figures, "kernel's own echo behind an XDP program", &asker)?;
    drop(receiver);
    let index = site.enter(|| nix::net::if_::if_nametoindex("eth0"))?;
    let turn = site.enter(|| datapath::bench::Turn::attach(index))?;
    let limit = best(figures, "the path's limit: a bare turn-round in XDP", &asker)?;
    drop(turn);
    let sections = |rate: u64| {
        format!(
            "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"{SERVICE}\"]\nmode = \"native\"\n\
             [echo.limit]\nrate = {rate}\nburst = {rate}\n"
        )
    };
    let mut nigh = Nigh::start(&site, Path::new(NIGH), "bench", &sections(0))?;
    let ours = best(figures, "nigh, no limits", &asker)?;
    nigh.restart(&site, Path::new(NIGH), "bench", &sections(100_000_000))?;
    let limited = best(figures, "nigh, with limits", &asker)?;
    figures.add("nigh without limits, times the kernel", ours / kernel, "times", Some("10"));
    figures.add("nigh with limits, times the kernel", limited / kernel, "times", None);
    figures.add("the path's limit, times the kernel", limit / kernel, "times", None);
    figures.add(
        "nigh with limits, share of the path's limit",
        limited * 100.0 / limit,
        "percent",
        None,
    );
    Ok(())
}
