//! Throughput and processor time of each variant, as section 4.2.1 of the paper.
//!
//! Variants are measured in turns, over several rounds, and the medians taken: what disturbs one disturbs the
//! others too. The machine's processors are shared by both ends and the gateway; so besides the time of
//! all of them for a gigabit stands what the variant takes more than forwarding alone in the same round.

use crate::{
    Failure,
    clients::{Connections, Counts, Load},
    median,
    processor::Work,
    stage::{CLIENTS, SERVERS, Stage},
    variants::{Running, Variant},
};
use std::{sync::atomic::Ordering, thread, time::Duration};
use testbed::Figures;

/// Connections of a client, as the paper's threads.
const CONNECTIONS: usize = 100;
/// Until the load has come up to speed, and how long it is measured then.
const WARM: Duration = Duration::from_millis(1_000);
const MEASURE: Duration = Duration::from_millis(2_000);
/// Rounds over all variants.
const ROUNDS: usize = 3;

/// What one variant did in one round.
#[derive(Clone, Copy, Debug)]
struct Sample {
    gigabits: f64,
    /// Files a second.
    files: f64,
    /// Processor seconds of the whole machine for a gigabit.
    busy: f64,
    /// Those of the gateway's program.
    program: f64,
    failed: f64,
}

fn sample(stage: &Stage, running: &mut Running<'_>, kind: Connections) -> Result<Sample, Failure> {
    let load = Load {
        clients: &CLIENTS,
        servers: &SERVERS,
        connections: CONNECTIONS,
        kind,
        every: Duration::ZERO,
    };
    load.run(&stage.clients, |counts: &Counts| {
        thread::sleep(WARM);
        let bytes = || counts.bytes.load(Ordering::Relaxed) as f64;
        let files = || counts.files.load(Ordering::Relaxed) as f64;
        let before = (bytes(), files(), running.seconds()?);
        let work = Work::begin()?;
        thread::sleep(MEASURE);
        let (seconds, busy) = work.until_now()?;
        let after = (bytes(), files(), running.seconds()?);
        let gigabits = (after.0 - before.0) * 8.0 / 1e9;
        Ok(Sample {
            gigabits: gigabits / seconds,
            files: (after.1 - before.1) / seconds,
            busy: busy / gigabits,
            program: (after.2 - before.2) / gigabits,
            failed: counts.failed.load(Ordering::Relaxed) as f64,
        })
    })
}

/// Measures all variants with connections that stay.
pub(crate) fn persistent(figures: &mut Figures) -> Result<(), Failure> {
    measure(figures, Connections::Persistent, "persistent connections")
}

/// Measures all variants with a connection for each file.
pub(crate) fn new(figures: &mut Figures) -> Result<(), Failure> {
    measure(figures, Connections::New, "a connection a file")
}

fn measure(figures: &mut Figures, kind: Connections, what: &str) -> Result<(), Failure> {
    let stage = Stage::build()?;
    println!("\nTwo clients with 100 connections each fetch 2 MB files from three servers, {what}");
    let wanted = Variant::ALL.into_iter().filter(|variant| variant.is_wanted());
    let mut samples: Vec<(Variant, Vec<Sample>)> =
        wanted.map(|variant| (variant, Vec::new())).collect();
    let mut skipped = Vec::new();
    for round in 0..ROUNDS {
        for (variant, samples) in &mut samples {
            if skipped.contains(variant) {
                continue;
            }
            match variant.start(&stage)? {
                Ok(mut running) => {
                    samples.push(sample(&stage, &mut running, kind)?);
                    let report = running.end()?;
                    if round + 1 == ROUNDS && !report.is_empty() {
                        println!("  {}: {}", variant.name(), report.lines().last().unwrap_or(""));
                    }
                }
                Err(why) => {
                    println!("  {}: skipped: {why}", variant.name());
                    skipped.push(*variant);
                }
            }
        }
    }
    report(figures, what, &samples);
    Ok(())
}

fn report(figures: &mut Figures, what: &str, samples: &[(Variant, Vec<Sample>)]) {
    let of =
        |samples: &[Sample], field: fn(&Sample) -> f64| median(samples.iter().map(field).collect());
    let samples_of = |wanted: Variant| {
        let found = samples.iter().find(|(variant, _)| *variant == wanted);
        found.map_or(&[][..], |(_, samples)| samples)
    };
    let plain = samples_of(Variant::Forwarding);
    for (variant, samples) in samples.iter().filter(|(_, samples)| !samples.is_empty()) {
        let name = format!("{what}: {}", variant.name());
        let gigabits = of(samples, |sample| sample.gigabits);
        figures.add(&name, gigabits, "Gbit/s", None);
        let files = of(samples, |sample| sample.files);
        figures.add(&format!("{name}: files"), files, "a second", None);
        let busy = of(samples, |sample| sample.busy * 1e3);
        figures.add(&format!("{name}: CPU, ends too"), busy, "ms a gigabit", None);
        if *variant != Variant::Forwarding && !plain.is_empty() {
            let rounds = || samples.iter().zip(plain);
            let more = median(rounds().map(|(one, plain)| (one.busy - plain.busy) * 1e3).collect());
            figures.add(&format!("{name}: more CPU than forwarding"), more, "ms a gigabit", None);
            let program = of(samples, |sample| sample.program * 1e3);
            figures.add(&format!("{name}: CPU of its program"), program, "ms a gigabit", None);
            let share =
                median(rounds().map(|(one, plain)| one.gigabits / plain.gigabits).collect());
            let goal = (variant.is_ours() && !variant.scans()).then_some("0.95");
            figures.add(&format!("{name}, of forwarding"), share, "times", goal);
        }
        for (peer, goal) in [(Variant::Nfqueue, Some("3")), (Variant::NfqueueMark, None)] {
            let theirs = samples_of(peer);
            if variant.is_ours() && !theirs.is_empty() {
                let share = gigabits / of(theirs, |sample| sample.gigabits);
                let goal = goal.filter(|_| !variant.scans());
                figures.add(&format!("{name}, of {}", peer.name()), share, "times", goal);
            }
        }
        let failed: f64 = samples.iter().map(|sample| sample.failed).sum();
        if failed > 0.0 {
            figures.add(&format!("{name}: requests that failed"), failed, "requests", None);
        }
    }
}
