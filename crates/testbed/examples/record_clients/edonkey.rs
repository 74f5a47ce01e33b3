//! eDonkey: aMule's daemons that share files through the scripted server, plain and hidden.

use super::{Scene, lan::Lan};
use std::time::Duration;
use testbed::{
    Error,
    clients::{Amule, Ed2kServer, noise},
};

/// Everything is eDonkey, also what is between client and server.
const PLAIN: &[&str] = &["any * * edonkey plain"];
/// Connections to the server and packets over UDP stay readable.
const HIDDEN: &[&str] =
    &["tcp * *:4661 edonkey plain", "udp * * edonkey plain", "tcp * * edonkey hidden"];

pub(crate) const SCENES: &[Scene] = &[
    Scene { name: "ed2k-plain", truth: PLAIN, play: |lan| share(lan, false) },
    Scene { name: "ed2k-hidden", truth: HIDDEN, play: |lan| share(lan, true) },
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
    // One file after the other: two daemons that call each other at once try again only minutes later.
    for number in 0..DAEMONS {
        let name = format!("shared-{number}.avi");
        let link = server.wait_link(&name, limit)?;
        let others = || daemons.iter().zip(&hosts[1..]).enumerate().filter(|&(n, _)| n != number);
        others().try_for_each(|(_, (daemon, host))| daemon.fetch(host, &link))?;
        others().try_for_each(|(_, (daemon, _))| daemon.wait_complete(&name, limit))?;
    }
    Ok(())
}
