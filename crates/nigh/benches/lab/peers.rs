//! Other programs that carry real packets through a simulated network.

use crate::ends::{Ends, Failure};
use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use testbed::{End, Namespace, link, wait_until};

/// Why a peer is not measured.
type Skipped = String;

/// A running rattan; it removes its namespaces when it is asked to end.
pub(crate) struct Rattan {
    child: Child,
    _folder: TempDir,
}

impl Drop for Rattan {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let ended = || matches!(self.child.try_wait(), Ok(Some(_)));
        if wait_until("rattan's end", Duration::from_secs(5), ended).is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Rattan between two namespaces of its own, with a delay in each direction.
pub(crate) fn rattan(delay: Duration) -> Result<Result<(Rattan, Ends), Skipped>, Failure> {
    if Command::new("rattan").arg("--version").output().is_err() {
        return Ok(Err("there is no rattan (`scripts/setup bench-lab` builds 0.1.1)".to_owned()));
    }
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("rattan.toml");
    let delay = delay.as_millis();
    std::fs::write(
        &config,
        format!(
            "[env]\nmode = \"Isolated\"\n\
             [cells.up]\ntype = \"Delay\"\ndelay = \"{delay}ms\"\n\
             [cells.down]\ntype = \"Delay\"\ndelay = \"{delay}ms\"\n\
             [links]\nleft = \"up\"\nup = \"right\"\nright = \"down\"\ndown = \"left\"\n\
             [commands]\nleft = [\"sleep\", \"600\"]\nright = [\"sleep\", \"600\"]\n"
        ),
    )?;
    let before = namespaces_there()?;
    let log = std::fs::File::create(folder.path().join("log"))?;
    let child = Command::new("rattan")
        .args(["run", "-c"])
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    let rattan = Rattan { child, _folder: folder };
    let (mut left, mut right, mut to) = (None, None, None);
    let up = wait_until("rattan", Duration::from_secs(20), || {
        let there = namespaces_there().unwrap_or_default();
        let new = |side: &str| there.difference(&before).find(|name| name.contains(side)).cloned();
        (left, right) = (new("left"), new("right"));
        to = right.as_deref().and_then(address);
        matches!((&left, to), (Some(left), Some(to)) if knows(left, to) && answers(left, to))
    });
    match (left, right, to) {
        (Some(left), Some(right), Some(to)) if up.is_ok() => {
            let ends = Ends { left, right, to };
            ends.tune()?;
            Ok(Ok((rattan, ends)))
        }
        _ => {
            let log = std::fs::read_to_string(rattan._folder.path().join("log"))?;
            Ok(Err(format!("it carried nothing within 20 s: {}", log.trim())))
        }
    }
}

/// Namespaces of `ip netns`.
fn namespaces_there() -> std::io::Result<BTreeSet<String>> {
    let names = std::fs::read_dir("/run/netns")?;
    Ok(names.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// The first address of a namespace that is in rattan's range of links, 10.2.1.0/24.
fn address(namespace: &str) -> Option<Ipv4Addr> {
    let list = ["netns", "exec", namespace, "ip", "-4", "-o", "address"];
    let output = Command::new("ip").args(list).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut words = text.split_whitespace().filter_map(|word| word.split('/').next()?.parse().ok());
    words.find(|address: &Ipv4Addr| address.octets()[..3] == [10, 2, 1])
}

/// Whether rattan has set the other side's MAC address in a namespace. A packet before that would
/// make the kernel ask for it, and rattan end because somebody was faster.
fn knows(namespace: &str, address: Ipv4Addr) -> bool {
    let show = ["-n", namespace, "neighbour", "show", &address.to_string(), "nud", "permanent"];
    Command::new("ip").args(show).output().is_ok_and(|output| !output.stdout.is_empty())
}

fn answers(from: &str, to: Ipv4Addr) -> bool {
    let ping = ["netns", "exec", from, "ping", "-c", "1", "-W", "1", &to.to_string()];
    Command::new("ip").args(ping).output().is_ok_and(|output| output.status.success())
}

/// Two namespaces with so many others as routers in a row between them.
pub(crate) fn namespaces(routers: u8) -> Result<(Vec<Namespace>, Ends), Failure> {
    let all = (0..routers + 2).map(|n| Namespace::new(&format!("chain{n}")));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    for (n, pair) in all.windows(2).enumerate() {
        link(
            End::new(&pair[0], "right").address(&format!("10.1.{n}.1/24")),
            End::new(&pair[1], "left").address(&format!("10.1.{n}.2/24")),
        )?;
    }
    for (n, namespace) in all.iter().enumerate() {
        namespace.sysctl(&[("ipv4.ip_forward", "1")])?;
        let default = |via: String| {
            namespace.check(&["ip", "route", "add", "default", "via", &via]).map(drop)
        };
        if n < all.len() - 1 {
            default(format!("10.1.{n}.2"))?;
        }
        if n > 0 {
            let via = format!("10.1.{}.1", n - 1);
            if n == all.len() - 1 {
                default(via)?;
            } else if n > 1 {
                namespace.check(&["ip", "route", "add", "10.1.0.0/24", "via", &via])?;
            }
        }
    }
    let to = Ipv4Addr::new(10, 1, routers, 2);
    let ends =
        Ends { left: all[0].name().to_owned(), right: all[all.len() - 1].name().to_owned(), to };
    ends.tune()?;
    Ok((all, ends))
}
