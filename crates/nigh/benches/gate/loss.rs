//! Transfer times with loss and delay (the paper, section 4.2.3): a wire of the lab between the
//! gateway and the servers loses packets of both directions and delays them.
//!
//! Which packets are lost is chance, and with it the time of a transfer. So many go on at once, and the
//! mean counts; how far rounds differ is written beside it.

use crate::{
    Failure,
    clients::{Connections, Counts, Load},
    stage::{CLIENTS, SERVERS, Stage},
    variants::Variant,
};
use std::{
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};
use testbed::Figures;

/// Bytes of a file. The paper's 300 MB would take an hour at the highest loss.
const FILE: usize = 200_000;
/// Of both directions, percent.
const LOSSES: [u32; 4] = [0, 1, 3, 5];
const WARM: Duration = Duration::from_millis(800);
const MEASURE: Duration = Duration::from_millis(1_800);
/// In turns: forwards, backwards.
const ROUNDS: usize = 3;

/// What is compared, if it is wanted; shares are of forwarding.
const VARIANTS: [Variant; 3] = [Variant::Forwarding, Variant::Classify, Variant::Hold];

/// Mean seconds of a transfer with a connection of its own.
fn transfer(stage: &Stage, connections: usize) -> Result<f64, Failure> {
    let load = Load {
        clients: &CLIENTS,
        servers: &SERVERS,
        connections,
        kind: Connections::New,
        every: Duration::ZERO,
    };
    load.run(&stage.clients, |counts: &Counts| {
        thread::sleep(WARM);
        let bytes = || counts.bytes.load(Ordering::Relaxed);
        let (before, begin) = (bytes(), Instant::now());
        thread::sleep(MEASURE);
        // As many transfers as there are connections are always running.
        let files = (bytes() - before) as f64 / FILE as f64;
        Ok((connections * CLIENTS.len()) as f64 * begin.elapsed().as_secs_f64() / files)
    })
}

/// Measures all losses with ends that are near.
pub(crate) fn near(figures: &mut Figures) -> Result<(), Failure> {
    measure(figures, 0, 20)
}

/// Measures all losses with ends that are far.
pub(crate) fn far(figures: &mut Figures) -> Result<(), Failure> {
    measure(figures, 100, 100)
}

/// With round trips of so many milliseconds, and transfers at once of each of the two clients.
fn measure(figures: &mut Figures, delay: u32, connections: usize) -> Result<(), Failure> {
    let stage = Stage::through_lab(FILE)?;
    let lab = stage.lab.as_ref().ok_or("no lab")?;
    println!("\nTransfers of 200 KB through the lab, round trips of {delay} ms");
    for loss in LOSSES {
        let (one_way, lost) = (format!("delay={}us", delay * 500), format!("loss={loss}%"));
        lab.ask(&["link", "gate-servers", "set", &one_way, &lost])?;
        let wanted = VARIANTS.into_iter().filter(|variant| variant.is_wanted());
        let mut times: Vec<_> = wanted.map(|variant| (variant, Vec::new())).collect();
        for _ in 0..ROUNDS {
            for (variant, times) in &mut times {
                match variant.start(&stage)? {
                    Ok(running) => {
                        times.push(transfer(&stage, connections)?);
                        running.end()?;
                    }
                    Err(why) => println!("  {}: skipped: {why}", variant.name()),
                }
            }
            times.reverse();
        }
        times.sort_by_key(|(variant, _)| VARIANTS.iter().position(|one| one == variant));
        report(figures, &format!("{delay} ms, {loss} % lost"), &times);
    }
    Ok(())
}

fn report(figures: &mut Figures, what: &str, times: &[(Variant, Vec<f64>)]) {
    let plain = times.iter().find(|(variant, _)| *variant == Variant::Forwarding);
    for (variant, times) in times.iter().filter(|(_, times)| !times.is_empty()) {
        let name = format!("{what}: {}", variant.name());
        figures.add(&name, mean(times), "seconds", None);
        // A mean is as uncertain as its rounds differ: the half of what lies between the extremes.
        let (least, most) = times
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), time| (least.min(*time), most.max(*time)));
        figures.add(&format!("{name}: between rounds"), (most - least) / 2.0, "seconds", None);
        if let Some((_, plain)) = plain.filter(|(plain, _)| plain != variant) {
            let goal = (*variant == Variant::Classify).then_some("1.02");
            let share = mean(times) / mean(plain);
            figures.add(&format!("{name}, of no gateway"), share, "times", goal);
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
