//! Direct Connect: EiskaltDC++'s daemons that share files through a hub that speaks ADC.

use super::{Scene, cut::MUCH, lan::Lan};
use std::time::Duration;
use testbed::{
    Error,
    clients::{Eiskalt, Uhub, noise},
    wait_until,
};

pub(crate) const SCENES: &[Scene] = &[Scene {
    name: "dc-adc",
    least: 10,
    truth: &["any *:* *:* directconnect plain"],
    keep: MUCH,
    play: share,
}];

/// Daemons on four hosts; each shares a file, and each fetches the lists and the files of the others.
fn share(lan: &mut Lan) -> Result<(), Error> {
    const DAEMONS: u16 = 4;
    let hosts = lan.hosts(usize::from(DAEMONS) + 1)?;
    let limit = Duration::from_secs(240);
    let hub = "adc://10.60.0.1:1511";
    let _hub = Uhub::start(&hosts[0], "10.60.0.1")?;
    let mut daemons = Vec::new();
    for (number, host) in (2..).zip(&hosts[1..]) {
        let (nick, name) = (format!("nick{number}"), format!("shared-{number}.avi"));
        let address = format!("10.60.0.{number}");
        let content = noise(number.into(), 200_000);
        let share: &[(&str, &[u8])] = &[(&name, &content)];
        daemons.push(Eiskalt::start(host, &nick, &address, 4000 + 10 * number, hub, share)?);
    }
    for (own, (daemon, host)) in (2..).zip(daemons.iter().zip(&hosts[1..])) {
        for other in (2..2 + DAEMONS).filter(|&other| other != own) {
            let nick = format!("nick{other}");
            daemon.wait_user(host, &nick, limit)?;
            let name = format!("shared-{other}.avi");
            daemon.fetch(host, &nick, &name, limit)?;
            wait_until("a shared file", limit, || daemon.file(&name).exists())?;
        }
    }
    Ok(())
}
