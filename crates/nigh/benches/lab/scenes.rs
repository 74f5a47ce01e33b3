//! The measured scenes.

use crate::{
    NIGH,
    ends::{Ends, Failure},
};
use std::{fmt::Write as _, net::Ipv4Addr, path::Path, time::Duration};
use testbed::Lab;

/// Two hosts with so many links, each of this delay, in a row between their nodes.
pub(crate) fn chain(links: u32, delay: Duration) -> Result<(Lab, Ends), Failure> {
    let mut scene = String::from("[lab]\nseed = 7\n");
    for node in 0..=links {
        writeln!(scene, "[[node]]\nname = \"n{node}\"")?;
    }
    for link in 0..links {
        let (from, nanos) = (link, delay.as_nanos());
        writeln!(
            scene,
            "[[link]]\nbetween = [\"n{from}\", \"n{}\"]\ndelay = \"{nanos}ns\"",
            link + 1
        )?;
    }
    for (name, node, address) in [("pc", 0, "10.0.0.10/24"), ("server", links, "10.0.1.10/24")] {
        write!(
            scene,
            "[[host]]\nname = \"{name}\"\nattach = \"n{node}\"\naddress = \"{address}\"\n"
        )?;
    }
    start(&scene, "pc", "server", Ipv4Addr::new(10, 0, 1, 10))
}

/// So many hosts, each at a node of its own, around one node in the middle.
pub(crate) fn star(hosts: u32, delay: Duration) -> Result<(Lab, Ends), Failure> {
    let mut scene = String::from("[lab]\nseed = 7\n[[node]]\nname = \"middle\"\n");
    for host in 0..hosts {
        write!(
            scene,
            "[[node]]\nname = \"n{host}\"\n\
             [[link]]\nbetween = [\"n{host}\", \"middle\"]\ndelay = \"{}ns\"\n\
             [[host]]\nname = \"h{host}\"\nattach = \"n{host}\"\naddress = \"10.0.{host}.10/24\"\n",
            delay.as_nanos()
        )?;
    }
    let last = hosts - 1;
    start(&scene, "h0", &format!("h{last}"), Ipv4Addr::new(10, 0, last as u8, 10))
}

fn start(scene: &str, left: &str, right: &str, to: Ipv4Addr) -> Result<(Lab, Ends), Failure> {
    let lab = Lab::start(Path::new(NIGH), scene)?;
    let ends = Ends { left: lab.namespace(left), right: lab.namespace(right), to };
    ends.tune()?;
    Ok((lab, ends))
}
