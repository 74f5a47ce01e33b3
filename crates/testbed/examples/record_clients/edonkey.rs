//! eDonkey: aMule's daemons that share files through the scripted server, plain and hidden.

use super::{Scene, cut::MUCH, lan::Lan};
use std::time::Duration;
use testbed::{
    Error,
    clients::{Amule, Ed2kServer, noise},
    wait_until,
};

/// Everything is eDonkey, also what is between client and server.
const PLAIN: &[&str] = &["any *:* *:* edonkey plain"];
/// Connections to the server and packets over UDP stay readable, but for those to a server's port for obfuscated ones, 12 above
/// its first.
const HIDDEN: &[&str] = &[
    "tcp *:* *:4661 edonkey plain",
    "udp *:* *:4673 edonkey hidden",
    "udp *:* *:* edonkey plain",
    "tcp *:* *:* edonkey hidden",
];

pub(crate) const SCENES: &[Scene] = &[
    Scene {
        name: "ed2k-plain",
        least: 17,
        truth: PLAIN,
        keep: MUCH,
        play: |lan| share(lan, false),
    },
    Scene {
        name: "ed2k-hidden",
        least: 17,
        truth: HIDDEN,
        keep: MUCH,
        play: |lan| share(lan, true),
    },
];

/// Daemons on five hosts; each offers a file, and each fetches the files of all others.
fn share(lan: &mut Lan, hidden: bool) -> Result<(), Error> {
    const DAEMONS: usize = 5;
    let hosts = lan.hosts(DAEMONS + 1)?;
    let limit = Duration::from_secs(240);
    let mut server = Ed2kServer::start(&hosts[0], "10.60.0.1", hidden)?;
    let mut daemons = Vec::new();
    for (number, host) in hosts[1..].iter().enumerate() {
        let name = format!("shared-{number}.avi");
        let content = noise(100 + number as u64, 300_000);
        let port = 4662 + 10 * u16::try_from(number).unwrap_or_default();
        daemons.push(Amule::start(host, "10.60.0.1", port, hidden, &[(&name, &content)])?);
    }
    for number in 0..DAEMONS {
        let link = server.wait_link(&format!("shared-{number}.avi"), limit)?;
        let others = daemons.iter().zip(&hosts[1..]).enumerate().filter(|&(n, _)| n != number);
        others.into_iter().try_for_each(|(_, (daemon, host))| daemon.fetch(host, &link))?;
    }
    // Hidden connections that two daemons open to each other at once fail, and are tried again only
    // minutes later: a recording needs what they say, not that all have everything.
    let _ = wait_until("all files at all daemons", Duration::from_secs(90), || {
        daemons.iter().all(|daemon| {
            (0..DAEMONS).all(|number| daemon.file(&format!("shared-{number}.avi")).exists())
        })
    });
    Ok(())
}
