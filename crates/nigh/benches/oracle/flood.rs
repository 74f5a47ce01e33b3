//! Regulated clients beside a flood from another network (*The P2P-Oracle Server*, sections 5.4 and 6.1: there they got
//! barely any answer while it lasted).
//!
//! Each network has its token bucket, which is charged before a request is queued (by a filter on the
//! sockets) or in the driver. The rate is set so that the regulated clients stay below it.

use crate::{
    sockets::{load, ready},
    stage::{OTHER, SERVER, Stage, write},
};
use clap::Parser;
use oracle::client::{self, Command};
use std::{error::Error, time::Duration};
use testbed::{Figures, Namespace};
use topo::generate;

/// Requests a second for each network.
const RATE: u32 = 20_000;
const FLOOD: Duration = Duration::from_secs(4);

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

fn flood(from: &Namespace) -> Result<client::flood::Report, Box<dyn Error + Send + Sync>> {
    let (server, seconds) = (OTHER.to_string(), format!("{}s", FLOOD.as_secs()));
    let own = "130.149.0.0/16";
    let words = ["flood", "flood", "--server", &server, "--duration", &seconds, "--allow", own];
    let Command::Flood(args) = Line::try_parse_from(words)?.command else {
        return Err("not a flood".into());
    };
    Ok(from.enter(|| client::flood::flood(&args))?)
}

/// Regulated clients for so long: their replies a second.
fn regulated(from: &Namespace, seconds: f64) -> Result<f64, Box<dyn Error>> {
    let words = format!(
        "--server {SERVER} --clients 50 --delay 5ms --timeout 50ms --count 1000000 --duration \
         {}ms --sync-start",
        seconds * 1e3
    );
    Ok(load(from, &words)?.replies_per_second)
}

/// Measures both methods of charging.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let stage = Stage::build()?;
    let folder = tempfile::tempdir()?;
    let file = write(&generate::hubs(), folder.path(), "network")?;
    for (name, interfaces) in
        [("sockets", ""), ("driver", "interfaces = [\"here\", \"there\"]\nmode = \"native\"\n")]
    {
        println!("\n50 regulated clients beside a flood from another network: {name}");
        let more = format!("{interfaces}[oracle.limit]\nrate = {RATE}\nburst = {RATE}");
        let _oracle = stage.oracle(&file, &more)?;
        ready(&stage.client)?;
        let before = regulated(&stage.client, 2.0)?;
        let (during, sent) = std::thread::scope(|scope| {
            let flooding = scope.spawn(|| flood(&stage.unknown));
            // Well within the flood: from when it has run for a second.
            std::thread::sleep(Duration::from_secs(1));
            let during = regulated(&stage.client, 2.0);
            let sent = flooding.join().map_err(|_| "the flood died")?;
            Ok::<_, Box<dyn Error>>((during?, sent.map_err(|error| error.to_string())?))
        })?;
        let after = regulated(&stage.client, 1.0)?;
        let what = format!("{name}: regulated clients");
        figures.add(&format!("{what} before"), before, "replies a second", None);
        let rate = sent.sent as f64 / sent.seconds;
        figures.add(&format!("{name}: flood"), rate, "requests a second", None);
        figures.add(&format!("{what} during"), during, "replies a second", None);
        let share = |value: f64| value * 100.0 / before;
        figures.add(&format!("{what} keep"), share(during), "percent", Some("90"));
        figures.add(
            &format!("{what} in the first second after it"),
            share(after),
            "percent",
            Some("back to full"),
        );
    }
    Ok(())
}
