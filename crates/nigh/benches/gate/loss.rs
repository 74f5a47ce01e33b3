//! Transfer times where packets are lost and late (seed, section 4.2.3): a wire of the lab between the
//! gateway and the servers loses packets of both directions and delays them.
//!
//! Which packets are lost is chance, and with it the time of a transfer. So a thousand go on at once
//! and the mean counts: its own chance is about one in a hundred at the highest loss.

use crate::{
    Failure,
    clients::{Connections, Counts, Load},
    stage::{CLIENTS, SERVERS, Stage},
    ways::Way,
};
use std::{
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};
use testbed::Figures;

/// Bytes of a file. The seed's 300 MB would take an hour at the highest loss.
const FILE: usize = 200_000;
/// Of both directions, percent.
const LOSSES: [u32; 4] = [0, 1, 3, 5];
/// Of a round trip, milliseconds, and transfers at once of each of the two clients.
const DELAYS: [(u32, usize); 2] = [(0, 100), (100, 500)];
const WARM: Duration = Duration::from_millis(1_000);
const MEASURE: Duration = Duration::from_millis(2_500);
const ROUNDS: usize = 2;

/// What is compared; the first is what the others are measured by.
const WAYS: [Way; 3] = [Way::Forwarding, Way::Classify, Way::Hold];

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
        // As many transfers as there are connections are always under way.
        let files = (bytes() - before) as f64 / FILE as f64;
        Ok((connections * CLIENTS.len()) as f64 * begin.elapsed().as_secs_f64() / files)
    })
}

/// Measures all losses and delays.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Failure> {
    let stage = Stage::through_lab(FILE)?;
    let lab = stage.lab.as_ref().ok_or("no lab")?;
    for (delay, connections) in DELAYS {
        println!("\nTransfers of 200 KB through the lab, round trips of {delay} ms");
        for loss in LOSSES {
            let (one_way, lost) = (format!("delay={}us", delay * 500), format!("loss={loss}%"));
            lab.ask(&["link", "gate-servers", "set", &one_way, &lost])?;
            let wanted = WAYS.into_iter().filter(|way| way.is_wanted());
            let mut times: Vec<_> = wanted.map(|way| (way, Vec::new())).collect();
            for _ in 0..ROUNDS {
                for (way, times) in &mut times {
                    match way.start(&stage)? {
                        Ok(running) => {
                            times.push(transfer(&stage, connections)?);
                            running.end()?;
                        }
                        Err(why) => println!("  {}: skipped: {why}", way.name()),
                    }
                }
            }
            report(figures, &format!("{delay} ms, {loss} % lost"), &times);
        }
    }
    Ok(())
}

fn report(figures: &mut Figures, what: &str, times: &[(Way, Vec<f64>)]) {
    let plain = times.first().map_or(&[][..], |(_, times)| times);
    for (way, times) in times.iter().filter(|(_, times)| !times.is_empty()) {
        let name = format!("{what}: {}", way.name());
        figures.add(&name, mean(times), "seconds", None);
        if *way != Way::Forwarding {
            let goal = (*way == Way::Classify).then_some("1.02");
            let share = mean(times) / mean(plain);
            figures.add(&format!("{name}, of no gateway"), share, "times", goal);
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
