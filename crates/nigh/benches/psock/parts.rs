//! What is measured, scene by scene.

use crate::{
    Failure,
    child::{Transport, now},
    scenes::{EQUAL, FOUR, LOSSY, SWOLLEN, Stage, UNEQUAL},
    transfer::{Done, Length, Transfer},
};
use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};
use testbed::Figures;

/// Where the transfers that are measured go, and foreign ones.
const PORT: u16 = 7000;
const FOREIGN: u16 = 7001;
/// Seconds of a transfer, and those at its begin that do not count.
const SECONDS: f64 = 8.0;
const BEGIN: f64 = 2.0;
/// Times that each transfer is made, in turns with the others; the median counts.
const ROUNDS: usize = 3;

/// The drivers, as the figures call them.
const DRIVERS: [&str; 3] = ["round-robin", "poll-all", "adaptive"];

/// The median.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Medians by name, in Mbit/s that the receiving application read.
struct Rates(BTreeMap<String, Vec<f64>>);

impl Rates {
    /// Makes all transfers in turns: what disturbs one disturbs the others too.
    fn measure(
        stage: &Stage,
        transfers: &[(String, Transport, Vec<usize>)],
    ) -> Result<Self, Failure> {
        let mut rates = BTreeMap::<String, Vec<f64>>::new();
        for _ in 0..ROUNDS {
            for (name, transport, paths) in transfers {
                let length = Length::Seconds(SECONDS);
                let done = Transfer::start(stage, transport, paths, PORT, length)?.finish()?;
                let rate = done.megabits(BEGIN, SECONDS);
                rates.entry(name.clone()).or_default().push(rate);
            }
        }
        Ok(Self(rates))
    }

    fn of(&self, name: &str) -> f64 {
        self.0.get(name).cloned().map(median).unwrap_or_default()
    }

    fn add(
        &self,
        figures: &mut Figures,
        scene: &str,
        transfers: &[(String, Transport, Vec<usize>)],
    ) {
        for (name, ..) in transfers {
            figures.add(&format!("{scene}: {name}"), self.of(name), "Mbit/s", None);
        }
    }
}

/// TCP on each path alone, MPTCP over all, and psock over all by each driver.
fn everybody(stage: &Stage) -> Result<Vec<(String, Transport, Vec<usize>)>, Failure> {
    let all = (1..=stage.paths).collect::<Vec<_>>();
    let mut transfers = Vec::new();
    for n in &all {
        transfers.push((format!("TCP on path {n} alone"), Transport::Tcp, vec![*n]));
    }
    transfers.push(("MPTCP".to_owned(), Transport::Mptcp, all.clone()));
    for driver in DRIVERS {
        transfers.push((driver.to_owned(), stage.psock(driver, &[])?, all.clone()));
    }
    Ok(transfers)
}

/// The two paths of *Psock Parallel Socket Library* (CESNET, 2005): 155 and 620 Mbit/s.
pub(crate) fn unequal(figures: &mut Figures) -> Result<(), Failure> {
    println!("\n155 and 620 Mbit/s, 5 ms in each direction");
    let stage = Stage::start(&UNEQUAL)?;
    let transfers = everybody(&stage)?;
    let rates = Rates::measure(&stage, &transfers)?;
    rates.add(figures, "155+620", &transfers);
    let sum = rates.of("TCP on path 1 alone") + rates.of("TCP on path 2 alone");
    for driver in DRIVERS {
        let goal = (driver == "adaptive").then_some("0.98");
        let share = rates.of(driver) / sum;
        figures.add(&format!("155+620: {driver}, share of the sum of TCP"), share, "times", goal);
    }
    Ok(())
}

/// A path of 20 Mbit/s beside one of 620 on which 300 ms of packets can wait.
pub(crate) fn swollen(figures: &mut Figures) -> Result<(), Failure> {
    println!("\n620 Mbit/s, and 20 Mbit/s with a queue of 300 ms");
    let stage = Stage::start(&SWOLLEN)?;
    let transfers = everybody(&stage)?;
    let rates = Rates::measure(&stage, &transfers)?;
    rates.add(figures, "620+20", &transfers);
    let (adaptive, mptcp) = (rates.of("adaptive"), rates.of("MPTCP"));
    let best = rates.of("TCP on path 1 alone");
    figures.add("620+20: adaptive, times the best path alone", adaptive / best, "times", Some("1"));
    figures.add("620+20: adaptive, times MPTCP", adaptive / mptcp, "times", Some("1.4"));
    Ok(())
}

/// One packet of a thousand is lost on each of two equal paths.
pub(crate) fn lossy(figures: &mut Figures) -> Result<(), Failure> {
    println!("\nTwice 310 Mbit/s with 0.1 % loss");
    let stage = Stage::start(&LOSSY)?;
    let mut transfers = everybody(&stage)?;
    for (name, options) in [
        ("adaptive, 4 connections on each path", [("connections", "4")]),
        ("adaptive, BBR", [("congestion", "bbr")]),
    ] {
        transfers.push((name.to_owned(), stage.psock("adaptive", &options)?, vec![1, 2]));
    }
    let rates = Rates::measure(&stage, &transfers)?;
    rates.add(figures, "loss", &transfers);
    let sum = rates.of("TCP on path 1 alone") + rates.of("TCP on path 2 alone");
    let share = rates.of("adaptive") / sum;
    figures.add("loss: adaptive, share of the sum of TCP", share, "times", None);
    Ok(())
}

/// The experiment of *Psock Parallel Socket Library*: for the middle third of 15 seconds a
/// foreign TCP stream shares path 1.
pub(crate) fn crossed(figures: &mut Figures) -> Result<(), Failure> {
    const THIRD: f64 = 5.0;
    println!("\nTwice 310 Mbit/s; a foreign TCP stream on path 1 from 5 to 10 s");
    let stage = Stage::start(&EQUAL)?;
    for (name, transport, paths) in everybody(&stage)?.into_iter().filter(|(_, _, p)| p.len() > 1) {
        let length = Length::Seconds(3.0 * THIRD);
        let transfer = Transfer::start(&stage, &transport, &paths, PORT, length)?;
        thread::sleep(Duration::from_secs_f64(THIRD));
        let length = Length::Seconds(THIRD);
        let foreign = Transfer::start(&stage, &Transport::Tcp, &[1], FOREIGN, length)?.finish()?;
        let done = transfer.finish()?;
        let begin = foreign.received.begin - done.received.begin;
        let parts = [
            ("before", BEGIN, begin),
            ("beside the foreign stream", begin, begin + THIRD),
            ("after", begin + THIRD, 3.0 * THIRD),
        ];
        for (part, from, to) in parts {
            let rate = done.megabits(from, to);
            figures.add(&format!("foreign: {name}, {part}"), rate, "Mbit/s", None);
        }
        let rate = foreign.megabits(0.0, THIRD);
        figures.add(&format!("foreign: the foreign stream beside {name}"), rate, "Mbit/s", None);
    }
    Ok(())
}

/// One of two equal paths is cut in the middle and stays so.
pub(crate) fn cut(figures: &mut Figures) -> Result<(), Failure> {
    const CUTS: usize = 5;
    println!("\nTwice 310 Mbit/s, of which one is cut in the middle");
    let stage = Stage::start(&EQUAL)?;
    let transport = stage.psock("adaptive", &[])?;
    let (mut pauses, mut usual) = (Vec::new(), Vec::new());
    for round in 0..CUTS {
        let length = Length::Seconds(5.0);
        let transfer = Transfer::start(&stage, &transport, &[1, 2], PORT, length)?;
        thread::sleep(Duration::from_secs_f64(2.5));
        // Not the same path each time.
        let path = 1 + round % 2;
        let time = now();
        stage.set(path, false)?;
        let done = transfer.finish();
        stage.set(path, true)?;
        let done = done?;
        usual.push(done.longest_pause(done.received.begin + 1.0, time));
        pauses.push(done.longest_pause(time, f64::INFINITY));
    }
    let longest = pauses.iter().copied().fold(0.0, f64::max);
    let title = "cut: adaptive, longest pause of delivery";
    figures.add(&format!("{title}, median of {CUTS}"), median(pauses), "seconds", Some("0.2"));
    figures.add(&format!("{title}, longest of {CUTS}"), longest, "seconds", Some("0.2"));
    figures.add(&format!("{title} before the cut"), median(usual), "seconds", None);
    Ok(())
}

/// 10 GB through four paths, of which two are cut and returned.
pub(crate) fn four(figures: &mut Figures) -> Result<(), Failure> {
    const BYTES: u64 = 10_000_000_000;
    println!("\n10 GB over four paths, of which two are cut for a while");
    let stage = Stage::start(&FOUR)?;
    let transport = stage.psock("adaptive", &[])?;
    let begin = Instant::now();
    let length = Length::Bytes(BYTES, 300.0);
    let transfer = Transfer::start(&stage, &transport, &[1, 2, 3, 4], PORT, length)?;
    for (percent, path, up) in [(15, 2, false), (40, 3, false), (55, 2, true), (70, 3, true)] {
        transfer.wait_read(BYTES / 100 * percent)?;
        stage.set(path, up)?;
    }
    let Done { received, .. } = &transfer.finish()?;
    let seconds = begin.elapsed().as_secs_f64();
    let longest = received.pauses.iter().map(|pause| pause.1).fold(0.0, f64::max);
    figures.add(
        "10 GB: bytes whose SHA-256 is the sender's",
        received.bytes as f64,
        "bytes",
        Some("10^10"),
    );
    figures.add("10 GB: in all", seconds, "seconds", None);
    figures.add("10 GB: mean", received.bytes as f64 * 8.0 / 1e6 / seconds, "Mbit/s", None);
    figures.add("10 GB: longest pause of delivery", longest, "seconds", None);
    Ok(())
}
