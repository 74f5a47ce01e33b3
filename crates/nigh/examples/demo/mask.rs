//! The mask at ISP_A: `nigh mask live` on the line to Enterprise_A, and a TAP device that shows its packets
//! without anybody in them.
//!
//! ENT_A-testPC pings from both of its addresses and over IPv6, asks for a name, and gets a page. tcpdump
//! records the line and the device; the recording of the line is there for the check and is removed then.

use crate::{
    ENTERPRISES,
    screen::{Screen, WIDTH},
};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::{
    fs,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};
use testbed::{
    Error, Namespace, Process,
    dinr::{CENTRAL4, Internet, Mesh, ON_THE_LINE, SERVICE4, SERVICE6},
    wait_until,
};

const LIMIT: Duration = Duration::from_secs(10);
const ISP_A: u32 = 4;
const CENTRAL: u32 = 11;
/// ISP_A's interface towards Enterprise_A, and the device.
const INTERFACE: &str = "ent-a";
const TAP: &str = "masked0";
/// It flips each bit of an address whatever becomes of the others. Under Crypto-PAn a bit mostly fares like the
/// one before it, so in one demo of some thousand an address would stay as it is.
const MAPPING: &str = "ipcrypt-pfx";
/// The PC's addresses: two of one network, and that of IPv6.
const PC: [&str; 3] = ["20.0.0.10", ON_THE_LINE[0], "2001:db8:20::10"];
/// What the PC asks for, in DNS and HTTP.
const NAME: &str = "anna.clinic.example";
const PAGE: &str = "/results/anna";
/// Pings from each address.
const PINGS: &str = "6";
/// How long the last acknowledgement is in flight, with much to spare.
const SETTLE: Duration = Duration::from_millis(300);
/// Patterns of the lines that are shown, as tcpdump writes them.
const SHOWN: [&str; 5] = [" 20.0.0.10 > ", " 20.0.0.11 > ", "IP6 ", " A? ", "GET "];

/// This step's packets: not those that stations and routers send all the time, which come and go
/// while recordings begin and end.
fn filter() -> String {
    format!("host {CENTRAL4} or host {SERVICE4} or host {SERVICE6}")
}

/// What ISP_A runs, but for the filter.
fn command() -> String {
    format!("nigh mask live {INTERFACE} --policy research --forget --mapping {MAPPING} --tap {TAP}")
}

/// Records an interface to a file, from when this returns. Each packet is written at once; tcpdump is not
/// asked to end, since it inherits that we leave SIGINT to a thread.
fn record(router: &Namespace, interface: &str, file: &str) -> Result<Process, Error> {
    let filter = if interface == TAP { String::new() } else { filter() };
    let to = ["-i", interface, "-w", file, &filter];
    let dump = router
        .spawn(&[&["tcpdump", "-Z", "root", "-n", "-U", "--immediate-mode"][..], &to].concat())?;
    wait_until("tcpdump", LIMIT, || dump.stderr().contains("listening"))
        .map_err(|error| Error::new(error.what, dump.stderr()))?;
    Ok(dump)
}

/// The packets of a recording, each a line of tcpdump.
fn lines(router: &Namespace, file: &str) -> Result<Vec<String>, Error> {
    let text = router.check(&["tcpdump", "-Z", "root", "-n", "-t", "-r", file])?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// A question for the address of [`NAME`], or the answer to it (RFC 1035 section 4).
fn dns(is_answer: bool) -> Vec<u8> {
    let flags = if is_answer { 0x81 } else { 0x01 };
    let mut message = vec![0x13, 0x37, flags, 0, 0, 1, 0, u8::from(is_answer), 0, 0, 0, 0];
    for label in NAME.split('.') {
        message.push(label.len() as u8);
        message.extend(label.bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    if is_answer {
        // The question's name, an address, for a minute.
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 11, 0, 0, 10]);
    }
    message
}

/// What the PC does while its line is watched.
fn talk(internet: &Internet) -> Result<(), Error> {
    let (pc, central) = (internet.host(ENTERPRISES[0]), internet.host(CENTRAL));
    for (from, to) in PC.into_iter().zip([SERVICE4, CENTRAL4, SERVICE6]) {
        pc.check(&["ping", "-n", "-q", "-c", PINGS, "-i", "0.05", "-I", from, to])?;
    }
    let conversation = || -> io::Result<()> {
        let server: IpAddr = CENTRAL4.parse().map_err(io::Error::other)?;
        let [names, pages] = [53, 80].map(|port| SocketAddr::new(server, port));
        let mut buffer = [0; 1024];

        let server = central.enter(|| UdpSocket::bind(names))?;
        let client = pc.enter(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
        for socket in [&server, &client] {
            socket.set_read_timeout(Some(LIMIT))?;
        }
        client.send_to(&dns(false), names)?;
        let (_, asker) = server.recv_from(&mut buffer)?;
        server.send_to(&dns(true), asker)?;
        client.recv(&mut buffer)?;

        let listener = central.enter(|| TcpListener::bind(pages))?;
        let mut client = pc.enter(|| TcpStream::connect_timeout(&pages, LIMIT))?;
        let (mut server, _) = listener.accept()?;
        for stream in [&server, &client] {
            stream.set_read_timeout(Some(LIMIT))?;
        }
        let request = format!("GET {PAGE} HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
        client.write_all(request.as_bytes())?;
        server.read_exact(&mut vec![0; request.len()])?;
        server.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nAnna is well again.\n")?;
        drop(server);
        client.read_to_end(&mut Vec::new()).map(drop)
    };
    conversation().map_err(|error| Error::new("a question and a page", error))?;
    thread::sleep(SETTLE);
    Ok(())
}

/// A line of tcpdump in the screen's width: addresses and the end; and how much of the packet is gone.
fn shorten(line: &str) -> String {
    const ROOM: usize = WIDTH - 8;
    let line = match line.split_once(" bytes missing!") {
        Some((before, rest)) => {
            let mut words = before.split(' ');
            let (family, gone) = (words.next(), words.next_back());
            let rest = rest.trim_start();
            format!(
                "{} {rest} ({} bytes gone)",
                family.unwrap_or_default(),
                gone.unwrap_or_default()
            )
        }
        None => line.to_owned(),
    };
    let Some((whom, what)) = line.split_once(": ").filter(|_| line.len() > ROOM) else {
        return line;
    };
    let tails = what.match_indices(", ").map(|(at, _)| format!("{whom}: ...{}", &what[at + 1..]));
    let fits = |line: &String| line.len() <= ROOM;
    tails.into_iter().find(fits).unwrap_or_else(|| format!("{whom}:"))
}

/// The source of a packet without ports, from its line. tcpdump 4.99.5 (Debian 13) writes `total length 84 >
/// length 28` before the addresses of one whose payload was removed.
fn source(line: &str) -> Option<Ipv4Addr> {
    line.rsplit_once(" > ")?.0.rsplit(' ').next()?.parse().ok()
}

/// How many bits the first two of these packets' sources share.
fn shared(lines: &[&String]) -> Option<u32> {
    let sources: Option<Vec<_>> = lines.iter().take(2).map(|line| source(line)).collect();
    let [one, two] = sources?[..] else { return None };
    Some((one.to_bits() ^ two.to_bits()).leading_zeros())
}

/// The outcome: the packets of the line and of the device, and nigh's summary.
struct Watched {
    wire: Vec<String>,
    tap: Vec<String>,
    summary: Value,
}

/// Masks the line and records it while the PC talks.
fn watch(internet: &Internet, binary: &str, [wire, tap]: [&str; 2]) -> Result<Watched, Error> {
    let router = &internet.router(ISP_A).namespace;
    let filter = filter();
    let command = command();
    let mut words = vec![binary];
    words.extend(command.split(' ').skip(1));
    words.extend(["--filter", &filter, "--json"]);
    let mut nigh = router.spawn(&words)?;
    // From this line on no packet goes by unseen.
    wait_until("nigh mask live", LIMIT, || {
        nigh.stderr().contains("SIGINT ends it") || nigh.ended().is_some()
    })?;
    if nigh.ended().is_some() {
        return Err(Error::new("nigh mask live", nigh.stderr().trim()));
    }
    let at_tap = record(router, TAP, tap)?;
    let at_wire = record(router, INTERFACE, wire)?;
    talk(internet)?;
    drop(at_wire);
    let on_wire = lines(router, wire)?;
    // If it does not, the expectations fail.
    let _ = wait_until("the tap", LIMIT / 5, || {
        lines(router, tap).is_ok_and(|lines| lines.len() >= on_wire.len())
    });
    drop(at_tap);
    nigh.signal(Signal::SIGINT)?;
    let finished = nigh.finish(LIMIT)?;
    let summary = serde_json::from_str(&finished.stdout)
        .map_err(|_| Error::new("nigh mask live", finished.stderr))?;
    Ok(Watched { wire: on_wire, tap: lines(router, tap)?, summary })
}

/// Where the check's page is left: beside the program's folder.
fn page(binary: &Path) -> Result<PathBuf, Error> {
    let target = binary.ancestors().nth(2).unwrap_or(Path::new("target"));
    let folder = target.join("demo");
    fs::create_dir_all(&folder)
        .map_err(|error| Error::new(format!("making {}", folder.display()), error))?;
    Ok(folder.join("mask-check.html"))
}

/// Shows packets on the line and on the device, and what the check finds.
pub(crate) fn show(
    screen: &mut Screen,
    internet: &Internet,
    mesh: &Mesh,
    binary: &Path,
) -> Result<(), Error> {
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let [wire, tap] = ["wire.pcap", "tap.pcap"].map(|file| name(&mesh.folder().join(file)));
    screen.name(&format!("ISP_A$ {} \\", command()));
    screen.name(&format!("           --filter '{}'", filter()));
    let program = name(binary);
    let seen = match watch(internet, &program, [&wire, &tap]) {
        Ok(seen) => seen,
        // The mask asks more of the kernel than the rest.
        Err(error) => {
            screen.check(false, &format!("{error}"));
            return Ok(());
        }
    };
    screen.faint(&format!("wire: tcpdump -n -i {INTERFACE}      tap: tcpdump -n -i {TAP}"));
    let pairs: Vec<_> = SHOWN
        .iter()
        .filter_map(|mark| seen.wire.iter().zip(&seen.tap).find(|(wire, _)| wire.contains(mark)))
        .collect();
    for (wire, tap) in &pairs {
        screen.line("");
        screen.line(&format!("wire  {}", shorten(wire)));
        screen.line(&format!("tap   {}", shorten(tap)));
    }
    screen.line("");
    let page = page(binary)?;
    let words = [&program, "mask", "check", &tap, "--against", &wire, "--html", &name(&page)];
    let checked = internet.router(ISP_A).namespace.run(&words, LIMIT)?;
    for file in [&wire, &tap] {
        let _ = fs::remove_file(file);
    }
    screen.name("ISP_A$ nigh mask check tap.pcap --against wire.pcap --html mask-check.html");
    for line in checked.stdout.lines().take(5) {
        screen.line(line);
    }
    screen.line(&format!("...   all of it: {}", page.display()));
    screen.line("");
    expect(screen, &seen, &pairs);
    screen.check(
        checked.success() && checked.stdout.contains("nothing was found"),
        "the check finds nothing of the original, as bytes, text, hexadecimal, reversed or shifted",
    );
    Ok(())
}

fn expect(screen: &mut Screen, seen: &Watched, pairs: &[(&String, &String)]) {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let summary = &seen.summary;
    let masked = count(&summary["masked"]);
    let lost: u64 =
        ["lost_ring", "lost_unread", "lost_key"].map(|name| count(&summary[name])).iter().sum();
    screen.check(
        masked > 0 && lost == 0 && masked == seen.wire.len() as u64,
        &format!("all {masked} packets were masked in the kernel, {lost} were lost"),
    );
    screen.check(
        pairs.len() == SHOWN.len() && seen.tap.len() == seen.wire.len(),
        &format!("tcpdump read {} packets from {TAP}, as many as from the line", seen.tap.len()),
    );
    let addresses = [&PC[..], &[CENTRAL4, SERVICE4, SERVICE6]].concat();
    let all = [&addresses[..], &[NAME, PAGE]].concat();
    let stands = |lines: &[String], what: &str| lines.iter().any(|line| line.contains(what));
    screen.check(
        all.iter().all(|what| stands(&seen.wire, what) && !stands(&seen.tap, what)),
        &format!(
            "{} addresses, a name and a page are on the line, and none of them on {TAP}",
            addresses.len()
        ),
    );
    let (wire, tap): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
    let (before, after) = (shared(&wire), shared(&tap));
    screen.check(
        before.is_some() && before == after,
        &format!(
            "{} and {} have other addresses there, and still share a prefix: {} bits",
            PC[0],
            PC[1],
            after.map_or("no".to_owned(), |bits| bits.to_string())
        ),
    );
}
