//! Replies a second: the kernel's own echo, then the responder, asked by `nigh blast --engine live`
//! from the other end of one veth. The generator is held to one core, and a veth's receiver runs where
//! it is woken, so that core does all the work: making, answering, matching. What the path itself can
//! carry is shown by a program that turns requests round without any question.
//!
//! The kernel is measured as it is everywhere, without any XDP program (live frames reach it because
//! its end has GRO on), and behind a program that passes everything.

use crate::NIGH;
use serde_json::{Value, json};
use std::{error::Error, path::Path, time::Duration};
use testbed::{Figures, Namespace, Nigh, Receiver};

const SERVICE: &str = "50.50.50.50";

/// Requests of one turn.
const COUNT: &str = "2000000";

/// Rounds; in each every responder has a turn, so that what disturbs one disturbs the others too. The
/// best turn counts, as disturbance only slows.
const ROUNDS: usize = 5;

/// The best turn of one responder.
#[derive(Default)]
struct Best {
    name: &'static str,
    /// Replies a second.
    rate: f64,
    /// Of the requests, how many were answered, in percent.
    share: f64,
}

impl Best {
    fn of(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    /// Asks as fast as it goes, once.
    fn turn(&mut self, from: &Namespace) -> Result<(), Box<dyn Error>> {
        let words = format!(
            "taskset --cpu-list 1 {NIGH} blast {SERVICE} --engine live --count {COUNT} --rate max \
             --allow 50.0.0.0/8 --json"
        );
        let words: Vec<_> = words.split_whitespace().collect();
        let finished = from.run(&words, Duration::from_secs(120))?;
        let report: Value = serde_json::from_str(&finished.stdout)
            .map_err(|error| format!("{error}: {}{}", finished.stdout, finished.stderr))?;
        let number = |name: &str| report[name].as_f64().ok_or(format!("no `{name}` in {report}"));
        let (sent, received, rate) =
            (number("sent")?, number("received")?, number("packets_per_second")?);
        if rate * received / sent > self.rate {
            (self.rate, self.share) = (rate * received / sent, received * 100.0 / sent);
        }
        Ok(())
    }
}

/// Measures all of them.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    println!("\nReplies a second over one veth, {COUNT} requests of 60 bytes, best of {ROUNDS}");
    let (asker, site) = testbed::pair()?;
    asker.check(&["ip", "route", "add", "default", "via", "192.0.2.2"])?;
    site.check(&["ip", "address", "add", &format!("{SERVICE}/32"), "dev", "lo"])?;
    let index = site.enter(|| nix::net::if_::if_nametoindex("eth0"))?;
    let sections = format!(
        "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"{SERVICE}\"]\nmode = \"native\"\n\
         [echo.limit]\nrate = 0\n"
    );

    let mut kernel = Best::of("kernel's own echo");
    let mut behind = Best::of("kernel's own echo behind an XDP program");
    let mut bare = Best::of("the path's limit: a bare turn-round in XDP");
    let mut unlimited = Best::of("nigh, no limits");
    let mut limited = Best::of("nigh, with limits");
    for _ in 0..ROUNDS {
        kernel.turn(&asker)?;
        let receiver = Receiver::new(&site, "eth0")?;
        behind.turn(&asker)?;
        drop(receiver);
        let turn_round = site.enter(|| datapath::bench::Turn::attach(index))?;
        bare.turn(&asker)?;
        drop(turn_round);
        let nigh = Nigh::start(&site, Path::new(NIGH), "bench", &sections)?;
        unlimited.turn(&asker)?;
        let limit = json!({"do": "limit", "rate": 100_000_000, "burst": 100_000_000});
        nigh.control(&json!({"do": "echo", "request": limit}))?;
        limited.turn(&asker)?;
    }
    for best in [&kernel, &behind, &bare, &unlimited, &limited] {
        let name = best.name;
        figures.add(&format!("{name}: replies a second"), best.rate, "replies a second", None);
        figures.add(&format!("{name}: share answered"), best.share, "percent", None);
    }
    for (name, value, unit, goal) in [
        (
            "nigh without limits, times the kernel",
            unlimited.rate / kernel.rate,
            "times",
            Some("10"),
        ),
        ("nigh with limits, times the kernel", limited.rate / kernel.rate, "times", Some("10")),
        ("the path's limit, times the kernel", bare.rate / kernel.rate, "times", None),
        ("nigh, share of the path's limit", limited.rate * 100.0 / bare.rate, "percent", None),
    ] {
        figures.add(name, value, unit, goal);
    }
    Ok(())
}
