//! The demo: the ten-AS internet of the project's first paper, alive on this machine.
//!
//! `make demo` builds it. Real BIRD in ten routers, joined by wires of `nigh lab run` with 10 ms one way,
//! `nigh run` at the two DINR sites and at both enterprises, everything in network namespaces; nothing
//! leaves this machine. Step by step it shows what the paper saw, then how an oracle ranks by the BGP
//! tables, how others rank by what stations measure while a link is congested, how a gate limits the
//! BitTorrent that an oracle steers to near peers, how a line's packets are shown without anybody in them,
//! and what happens when a site is overrun, killed, brought back and drained, with the figures measured here
//! and now. What differs from what is expected is marked, and makes the exit code 1.
//!
//! It then stays up until Ctrl-C; with DEMO_ONCE=1 it ends. Either way, and wherever it is interrupted,
//! nothing of it stays behind but a page of the mask's check in target/demo.
#![forbid(unsafe_code)]

mod failover;
mod gate;
mod load;
mod mask;
mod oracle;
mod routing;
mod screen;
mod stations;
mod transfer;

use nix::sys::signal::{SigSet, Signal};
use screen::Screen;
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::{Duration, Instant},
};
use testbed::{
    Error, Forward,
    dinr::{self, Enterprise, Internet, Mesh, Oracle, Site},
    nigh::HTTP_PORT,
};

/// AS numbers of the two enterprises, and with them their PCs.
const ENTERPRISES: [u32; 2] = [20, 21];

/// The one-way delay of a link between two ASes: as in the paper, about 10 ms a hop.
const MILLISECONDS: u32 = 10;

/// Exit code after an interruption, as shells count it: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("demo: network namespaces need root: run `make demo`, which asks through sudo");
        return ExitCode::FAILURE;
    }
    let Some(binary) = binary() else {
        eprintln!("demo: there is no nigh beside this program: run `make demo`, which builds it");
        return ExitCode::FAILURE;
    };
    // What an interruption ends with: the result, once there is one.
    let code = Arc::new(AtomicU8::new(INTERRUPTED));
    watch_signals(Arc::clone(&code));
    let mut screen = Screen::new();
    let begin = Instant::now();
    if let Err(error) = show(&mut screen, &binary, &code) {
        screen.check(false, &format!("{error}"));
    }
    screen.end(begin.elapsed());
    ExitCode::from(screen.code())
}

/// The daemon, which cargo puts two folders above its examples.
fn binary() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let binary = own.parent()?.parent()?.join("nigh");
    binary.exists().then_some(binary)
}

/// On Ctrl-C and the like, takes everything down from a thread of its own and ends the process.
fn watch_signals(code: Arc<AtomicU8>) {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    // Threads that start later inherit the mask.
    let blocked = signals.thread_block();
    std::thread::spawn(move || {
        if blocked.and_then(|()| signals.wait()).is_err() {
            return;
        }
        // Whoever wants to report a failure now waits for this lock, for ever.
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "\n\n  Taking everything down ...");
        testbed::close();
        let _ = writeln!(out, "  Nothing of it is left.");
        std::process::exit(i32::from(code.load(Ordering::Relaxed)));
    });
}

fn show(screen: &mut Screen, binary: &Path, code: &AtomicU8) -> Result<(), Error> {
    screen.title();

    screen.step("Ten routers, five hosts, one nigh at each site");
    let begin = Instant::now();
    let internet = Internet::through_lab(binary, MILLISECONDS)?;
    let built = begin.elapsed();
    internet.converge(Duration::from_secs(30))?;
    screen.line(&format!(
        "16 namespaces, 5 links, 10 wires through the lab and 10 BIRDs in {:.1} s; routing converged {:.1} s later",
        built.as_secs_f64(),
        (begin.elapsed() - built).as_secs_f64()
    ));
    let begin = Instant::now();
    let [asn_a, asn_b] = dinr::SITES;
    let mesh = Mesh::new()?;
    let mut site_a = Site::start_with(&internet, asn_a, binary, &mesh.sections(asn_a))?;
    let mut site_b = Site::start_with(&internet, asn_b, binary, &mesh.sections(asn_b))?;
    for ((enterprise, site), path) in
        ENTERPRISES.into_iter().zip([&site_a, &site_b]).zip(["4 12", "5 13"])
    {
        for prefix in [dinr::PREFIX4, dinr::PREFIX6] {
            site.wait_for_path(&internet, enterprise, prefix, path, Duration::from_secs(20))?;
        }
    }
    screen.line(&format!(
        "`nigh run` at both sites; {} and {} reached both enterprises {:.1} s after the start",
        dinr::PREFIX4,
        dinr::PREFIX6,
        begin.elapsed().as_secs_f64()
    ));
    for site in [&mut site_a, &mut site_b] {
        routing::status(screen, site)?;
    }
    let mut enterprises = stations::start(&internet, &mesh, binary)?;

    screen.step("What the routers know (`show ip bgp`, as in the paper)");
    routing::tables(screen, &internet)?;

    screen.step(
        "What each PC reaches (ICMP traceroute; the lab adds 10 ms one way between two ASes)",
    );
    routing::traces(screen, &internet)?;

    screen.step("Who answered whom (`ping` and the sites' ledgers)");
    routing::answers(screen, &internet, &site_a, &site_b)?;

    screen.step("Too many requests: the limit, and a million packets without it");
    load::limit(screen, &internet, &site_a)?;
    load::lift(screen, [&site_a, &site_b])?;
    load::many(screen, &internet, &site_a, binary)?;

    screen.step("The oracle of ISP_A: which of these is near?");
    let oracle = oracle::show(screen, &internet, binary)?;

    screen.step("Stations measure, and a congested link ranks last");
    stations::show(screen, &internet, &mut enterprises)?;

    screen.step("One stream over two paths");
    transfer::show(screen, &internet, &mesh, binary)?;

    screen.step("The gate of Enterprise_B: BitTorrent from near peers, rate-limited");
    gate::show(screen, &internet, &enterprises, binary)?;

    screen.step("The mask at ISP_A: an anonymized tap");
    mask::show(screen, &internet, &mesh, binary)?;

    screen.step("kill -9 of DINR_A while ENT_A-testPC pings 500 times a second");
    failover::kill(screen, &internet, &mut site_a)?;

    screen.step("DINR_A comes back");
    failover::back(screen, &internet, &mut site_a)?;

    screen.step("DINR_A is drained for maintenance: no ping may be lost");
    failover::drain(screen, &internet, &site_a)?;

    screen.summary();
    code.store(screen.code(), Ordering::Relaxed);
    if std::env::var_os("DEMO_ONCE").is_none_or(|value| value != "1") {
        stay(screen, &internet, &mut [site_a, site_b], &oracle, &mut enterprises)?;
    }
    Ok(())
}

/// Leaves everything running until a signal ends the process.
fn stay(
    screen: &Screen,
    internet: &Internet,
    sites: &mut [Site<'_>; 2],
    oracle: &Oracle,
    enterprises: &mut [Enterprise<'_>; 2],
) -> Result<(), Error> {
    let mut pages = Vec::new();
    for (i, asn) in dinr::SITES.into_iter().enumerate() {
        let port = HTTP_PORT + i as u16;
        pages.push(Forward::start(None, port, internet.service(asn), HTTP_PORT)?);
    }
    sites[0].nigh().control(&serde_json::json!({"do": "undrain"}))?;
    screen.line("Everything stays up, with both sites in service. Look around:");
    screen.line("");
    for (page, name) in pages.iter().zip(["DINR_A", "DINR_B"]) {
        screen.line(&format!("  status page of {name}   http://{}/", page.address()));
    }
    let pc = internet.host(ENTERPRISES[0]).name();
    screen.line(&format!(
        "  ping from a PC          sudo ip netns exec {pc} ping {}",
        dinr::SERVICE4
    ));
    if let Some(lab) = internet.lab() {
        screen.line(&format!(
            "  slow a link down        sudo target/release/nigh lab link isp-a-dinr-a --lab {} set delay=50ms",
            lab.pid()
        ));
    }
    let socket = sites[0].nigh().socket();
    screen.line(&format!(
        "  query a site            sudo target/release/nigh status --socket {}",
        socket.display()
    ));
    screen.line(&format!(
        "  control the oracle      sudo target/release/nigh oracle console --socket {}",
        oracle.socket().display()
    ));
    screen.line(&format!(
        "  what a station measures sudo target/release/nigh probe show delay --direction round-trip --archive {}",
        enterprises[0].nigh().state().join("probe").display()
    ));
    screen.line("");
    screen.line("Ctrl-C takes everything down.");
    loop {
        std::thread::park();
    }
}
