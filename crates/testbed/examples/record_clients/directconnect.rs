//! Direct Connect: EiskaltDC++'s daemons that share files through a hub that speaks ADC, and through a
//! scripted one that speaks NMDC.

use super::{Scene, cut::MUCH, lan::Lan};
use std::time::Duration;
use testbed::{
    Error, Namespace,
    clients::{Eiskalt, Script, Uhub, noise},
    wait_until,
};

const TRUTH: &[&str] = &["any *:* *:* directconnect plain"];

pub(crate) const SCENES: &[Scene] = &[
    Scene { name: "dc-adc", least: 10, truth: TRUTH, keep: MUCH, play: adc },
    Scene { name: "dc-nmdc", least: 10, truth: TRUTH, keep: MUCH, play: nmdc },
];

const DAEMONS: u16 = 4;

fn adc(lan: &mut Lan) -> Result<(), Error> {
    let hosts = lan.hosts(usize::from(DAEMONS) + 1)?;
    let _hub = Uhub::start(&hosts[0], "10.60.0.1")?;
    share(hosts, "adc://10.60.0.1:1511")
}

fn nmdc(lan: &mut Lan) -> Result<(), Error> {
    let hosts = lan.hosts(usize::from(DAEMONS) + 1)?;
    let _hub = Script::start(&hosts[0], "nmdc_hub.py", &["10.60.0.1", "411"])?;
    share(hosts, "dchub://10.60.0.1:411")
}

/// Each daemon on a host of its own shares a file, and fetches the lists and the files of the others.
fn share(hosts: &[Namespace], hub: &str) -> Result<(), Error> {
    let limit = Duration::from_secs(240);
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
