//! psock: a file from ENT_A-testPC to DINR_A, over each of two paths and over both.

use crate::{ENTERPRISES, screen::Screen};
use serde_json::Value;
use std::{fs, io::Read, path::Path, time::Duration};
use testbed::{
    Error,
    dinr::{Internet, Mesh, ON_THE_LINE, SITES, station_address},
};

const LIMIT: Duration = Duration::from_secs(40);
const PORT: u16 = 7000;
const BYTES: u64 = 20_000_000;
/// The links that limit the paths: their names, how they are for this step, and what they are called.
const LINKS: [(&str, &str, &str, &str); 2] = [
    ("isp-a>dinr-a", "rate=40Mbit", "queue=256KB", "through ISP_A"),
    ("ent-a>dinr-a", "rate=20Mbit", "queue=128KB", "over their own line"),
];

/// What came of one transfer.
struct Transfer {
    seconds: f64,
    /// Bytes that each connection brought.
    connections: Vec<f64>,
    whole: bool,
}

impl Transfer {
    fn rate(&self) -> f64 {
        megabits(BYTES as f64) / self.seconds
    }
}

fn megabits(bytes: f64) -> f64 {
    bytes * 8.0 / 1e6
}

/// The two paths: from the PC's address to the site's.
fn paths() -> [(String, String); 2] {
    let [pc, site] = [ENTERPRISES[0], SITES[0]].map(station_address);
    let [pc_too, site_too] = ON_THE_LINE.map(str::to_owned);
    [(pc, site), (pc_too, site_too)]
}

/// Sends a file over these paths.
fn send(
    internet: &Internet,
    mesh: &Mesh,
    binary: &Path,
    paths: &[(String, String)],
) -> Result<Transfer, Error> {
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let (binary, key) = (name(binary), name(&mesh.key()));
    let [from, to] = ["sent", "received"].map(|file| name(&mesh.folder().join(file)));
    let mut receive = vec![&*binary, "psock", "recv", &to, "--key", &key, "--quiet"];
    let listen: Vec<_> = paths.iter().map(|(_, site)| format!("{site}:{PORT}")).collect();
    receive.extend(listen.iter().flat_map(|address| ["--listen", address]));
    let receiver = internet.service(SITES[0]).spawn(&receive)?;
    let port = format!(":{PORT}");
    let sockets = ["ss", "-Hltn", "sport", "=", &port];
    testbed::wait_until("the receiver to listen", LIMIT, || {
        let listens = internet.service(SITES[0]).check(&sockets);
        listens.is_ok_and(|rows| rows.lines().count() >= paths.len())
    })?;
    let mut words = vec![&*binary, "psock", "send", &from, "--key", &key, "--quiet", "--json"];
    let paths: Vec<_> = paths.iter().map(|(pc, site)| format!("{pc}>{site}:{PORT}")).collect();
    words.extend(paths.iter().flat_map(|path| ["--path", path]));
    let sent = internet.host(ENTERPRISES[0]).run(&words, LIMIT)?;
    let received = receiver.finish(LIMIT)?;
    let report: Value = serde_json::from_str(&sent.stdout).map_err(|_| {
        Error::new("nigh psock send", format!("{}{}", sent.stderr, received.stderr))
    })?;
    let connections = report["connections"].as_array().into_iter().flatten();
    let same = fs::read(&from).ok().zip(fs::read(&to).ok()).is_some_and(|(from, to)| from == to);
    let _ = fs::remove_file(&to);
    Ok(Transfer {
        seconds: report["seconds"].as_f64().unwrap_or(f64::NAN),
        connections: connections
            .map(|one| one["bytes_acknowledged"].as_f64().unwrap_or(f64::NAN))
            .collect(),
        whole: same && received.success(),
    })
}

/// Shows both paths alone, and both together.
pub(crate) fn show(
    screen: &mut Screen,
    internet: &Internet,
    mesh: &Mesh,
    binary: &Path,
) -> Result<(), Error> {
    let lab = internet.lab().ok_or_else(|| Error::new("the lab", "there is none"))?;
    let unwritten = |error| Error::new("writing the file to send", error);
    let mut file = Vec::new();
    // Something that is at hand and not all alike: the program.
    let program = fs::File::open(binary).map_err(unwritten)?;
    program.take(BYTES).read_to_end(&mut file).map_err(unwritten)?;
    file.resize(BYTES as usize, 0);
    fs::write(mesh.folder().join("sent"), file).map_err(unwritten)?;
    for (link, rate, queue, _) in LINKS {
        lab.ask(&["link", link, "set", rate, queue])?;
    }
    let [through, line] = paths();
    let both = [through.clone(), line.clone()];
    let each = [send(internet, mesh, binary, &[through])?, send(internet, mesh, binary, &[line])?];
    let together = send(internet, mesh, binary, &both)?;
    for (link, ..) in LINKS {
        lab.ask(&["link", link, "set", "rate=none"])?;
    }
    screen.name("ENT_A-testPC$ nigh psock send FILE --key mesh.key \\");
    screen.name(&format!(
        "                --path '{}>{}:{PORT}' --path '{}>{}:{PORT}'",
        both[0].0, both[0].1, both[1].0, both[1].1
    ));
    screen.line("");
    for ((.., rate, _, name), alone) in LINKS.iter().zip(&each) {
        let name = format!("{name}, {rate}");
        screen.line(&format!("{name:<38} {:>6.1} Mbit/s", alone.rate()));
    }
    let shares: Vec<_> =
        together.connections.iter().map(|bytes| format!("{:.1}", bytes / 1e6)).collect();
    screen.line(&format!(
        "{:<38} {:>6.1} Mbit/s, {:.2} of the sum; {} MB",
        "both, as one stream",
        together.rate(),
        together.rate() / each.iter().map(Transfer::rate).sum::<f64>(),
        shares.join(" + ")
    ));
    screen.line("");
    let best = each.iter().map(Transfer::rate).fold(0.0, f64::max);
    screen.check(
        each.iter().chain([&together]).all(|transfer| transfer.whole),
        &format!("{} MB arrived three times, byte for byte", BYTES / 1_000_000),
    );
    screen
        .check(together.rate() > best, "both paths together are faster than the better one alone");
    Ok(())
}
