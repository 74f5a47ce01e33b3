//! The oracle in the driver beside a UDP echo that does nothing, in one run: `make bench-oracle`.
//!
//! A network of 1,000 routers with a million prefixes; requests with candidates drawn at random from
//! inside random prefixes, 1,024 different ones in turn. They are live frames from an in-kernel sender
//! over a veth to the program and back to a program that counts, all on one core. The echo beside it
//! runs over loopback with the reader of the real server, on one core, and its client on another;
//! each sends back what it gets, so that the datagrams circle.
//!
//! Prints a table and writes target/bench/oracle-xdp.json, an array of `{name, value, unit}`. Nothing
//! here fails for being slow.
#![forbid(unsafe_code)]

use datapath::{
    ask::{Asker, REQUESTS},
    mmsg,
    oracle::{AttachMode, OracleProgram, Settings},
};
use nix::{
    net::if_::if_nametoindex,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use oracle::{
    metric::{DEFAULT_COST, Metric},
    tables::{Policy, Tables},
    xdp,
};
use std::{
    error::Error,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket},
    os::fd::AsFd as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use testbed::{End, Figures, Namespace, link};
use topo::{
    Change, ExternalPath, Feed, IpNet, Options,
    generate::{Random, mesh, realistic_table},
};

const ROUTERS: usize = 1000;
const ROUTES: usize = 1_000_000;
const COUNTS: [usize; 7] = [2, 10, 50, 100, 200, 300, 363];
/// The best of so many turns counts: what else runs on the machine can only make one longer.
const TURNS: usize = 5;
const FRAMES: u32 = 300_000;
/// How long the echo runs in a turn.
const ECHO: Duration = Duration::from_millis(800);
/// Datagrams that circle.
const CIRCLING: usize = 256;
const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 8899);

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut figures = Figures::new("oracle-xdp");
    let network = mesh(1, ROUTERS, 50, realistic_table(1, ROUTES, 0));
    let mut builder = network.builder(Options::default());
    let metrics = vec![Metric::compile("default", DEFAULT_COST)?];
    let policy = Arc::new(Policy { metrics, ..Policy::default() });
    let tables = Tables::build(builder.view(), Arc::clone(&policy), None);

    let program = OracleProgram::load()?;
    let settings = Settings { services: vec![SERVICE], ..Settings::default() };
    program.configure(&settings)?;
    let clock = Instant::now();
    let published = xdp::publish(&program, &tables)?;
    let first = clock.elapsed();
    for (name, value, unit) in [
        ("routes in the driver's tables", published.routes as f64, "routes"),
        ("groups of prefixes", tables.view.groups.len() as f64, "groups"),
        ("rows in the driver", published.rows as f64, "rows"),
        (
            "rows left to the sockets",
            (published.wide_rows + published.unplaced_rows) as f64,
            "rows",
        ),
        ("memory of a copy, of two", published.bytes as f64 / 1e6, "MB"),
        ("publishing all tables for the first time", first.as_secs_f64() * 1e3, "ms"),
    ] {
        figures.add(name, value, unit, None);
    }
    let prefix = "203.0.113.0/24".parse()?;
    let path = ExternalPath { as_distance: 1, as_number: 0 };
    builder.apply(Feed::OPERATOR, Change::Route { prefix, exit: network.exits[0], path })?;
    let tables = Tables::build(builder.view(), policy, Some(&tables));
    xdp::publish(&program, &tables)?;
    let clock = Instant::now();
    xdp::publish(&program, &tables)?;
    let again = clock.elapsed().as_secs_f64() * 1e3;
    figures.add("publishing after the change of a route", again, "ms", Some("far under 1,000"));

    let (asker, site) = (Namespace::new("asker")?, Namespace::new("site")?);
    link(End::new(&asker, "eth0"), End::new(&site, "eth0"))?;
    let index = site.enter(|| if_nametoindex("eth0"))?;
    let attachment = site.enter(|| program.attach(index, AttachMode::Native))?;
    let index = asker.enter(|| if_nametoindex("eth0"))?;
    let mut random = Random::new(7);
    let prefixes: Vec<IpNet> = tables.view.table.iter().map(|(prefix, _)| prefix).collect();
    let client = match network.source {
        IpNet::V4(prefix) => {
            SocketAddrV4::new(prefix.hosts().next().unwrap_or(prefix.addr()), 40_000)
        }
        IpNet::V6(_) => return Err("the network's clients have no IPv4".into()),
    };
    for count in COUNTS {
        let frames: Vec<_> =
            (0..REQUESTS).map(|_| frame(client, &mut random, &prefixes, count)).collect();
        let (rate, share) = asker.enter(|| replies(index, &frames))?;
        let mut echo: f64 = 0.0;
        for _ in 0..TURNS.min(3) {
            echo = echo.max(circle(16 + 4 * count)?);
        }
        let goal = (count == 100).then_some("4");
        figures.add(&format!("{count} candidates: in the driver"), rate, "replies a second", None);
        figures.add(&format!("{count} candidates: answered"), share, "percent", None);
        figures.add(&format!("{count} candidates: null UDP echo"), echo, "replies a second", None);
        figures.add(&format!("{count} candidates: times the echo"), rate / echo, "times", goal);
    }
    drop(attachment);
    let ledger = program.ledger()?;
    if ledger.answered != ledger.received() {
        return Err(format!("not every request was answered in the driver: {ledger:?}").into());
    }
    figures.write()?;
    Ok(())
}

/// A request for candidates of random prefixes, as a frame without a UDP checksum.
fn frame(client: SocketAddrV4, random: &mut Random, prefixes: &[IpNet], count: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let length = 16 + 4 * count as u16;
    let mut head = vec![0x45, 0];
    head.extend((28 + length).to_be_bytes());
    head.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    head.extend(client.ip().octets());
    head.extend(SERVICE.ip().octets());
    let sum = wire::checksum::checksum(&head).to_be_bytes();
    head[10..12].copy_from_slice(&sum);
    frame.extend(head);
    frame.extend(client.port().to_be_bytes());
    frame.extend(SERVICE.port().to_be_bytes());
    frame.extend((8 + length).to_be_bytes());
    frame.extend([0; 14]);
    frame.extend([1, 0]);
    frame.extend((length - 12).to_be_bytes());
    for _ in 0..count {
        let any = random.bits() as u32;
        let candidate = match random.pick(prefixes) {
            Some(IpNet::V4(prefix)) => {
                u32::from(prefix.network()) | any & u32::from(prefix.hostmask())
            }
            _ => any,
        };
        frame.extend(candidate.to_be_bytes());
    }
    frame
}

/// Replies a second of the best turn, and what share of the requests of all turns was answered.
fn replies(interface: u32, frames: &[Vec<u8>]) -> Result<(f64, f64), Box<dyn Error + Send + Sync>> {
    pin(0)?;
    let asker = Asker::attach(interface, SERVICE, frames)?;
    asker.send(10_000)?;
    let (mut best, before) = (0.0_f64, settled(&asker));
    for _ in 0..TURNS {
        let begin = settled(&asker);
        let clock = Instant::now();
        asker.send(FRAMES)?;
        let elapsed = clock.elapsed();
        // All but the last batch came while the call was going on, for it is the same core.
        best = best.max((asker.answered() - begin) as f64 / elapsed.as_secs_f64());
    }
    let answered = settled(&asker) - before;
    Ok((best, answered as f64 * 100.0 / (f64::from(FRAMES) * TURNS as f64)))
}

/// The replies when no more come.
fn settled(asker: &Asker) -> u64 {
    let mut seen = asker.answered();
    loop {
        thread::sleep(Duration::from_millis(20));
        let now = asker.answered();
        if now == seen {
            return now;
        }
        seen = now;
    }
}

/// Replies a second of an echo of datagrams of this length.
fn circle(length: usize) -> Result<f64, Box<dyn Error + Send + Sync>> {
    let server = UdpSocket::bind("127.0.0.1:0")?;
    let client = UdpSocket::bind("127.0.0.1:0")?;
    let address = server.local_addr()?;
    let stop = Arc::new(AtomicBool::new(false));
    let received = Arc::new(AtomicU64::new(0));
    for _ in 0..CIRCLING {
        client.send_to(&vec![0; length], address)?;
    }
    let turn = |socket: UdpSocket, core, counter: Option<&Arc<AtomicU64>>| {
        let (stop, counter) = (Arc::clone(&stop), counter.cloned());
        thread::spawn(move || pass_back(&socket, core, &stop, counter.as_deref()))
    };
    let threads = [turn(server, 0, None), turn(client, 1, Some(&received))];
    thread::sleep(Duration::from_millis(100));
    let (begin, clock) = (received.load(Ordering::Relaxed), Instant::now());
    thread::sleep(ECHO);
    let rate = (received.load(Ordering::Relaxed) - begin) as f64 / clock.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a thread of the echo panicked")??;
    }
    Ok(rate)
}

/// Sends back whatever comes.
fn pass_back(
    socket: &UdpSocket,
    core: usize,
    stop: &AtomicBool,
    counter: Option<&AtomicU64>,
) -> std::io::Result<()> {
    pin(core)?;
    socket.set_nonblocking(true)?;
    let mut exchange = mmsg::Exchange::new(2048);
    while !stop.load(Ordering::Relaxed) {
        match exchange.receive(socket.as_fd()) {
            Ok(count) => {
                if let Some(counter) = counter {
                    counter.fetch_add(count as u64, Ordering::Relaxed);
                }
                exchange.answer(|_, datagram, _: SocketAddr, reply| {
                    reply.clear();
                    reply.extend_from_slice(datagram);
                });
                exchange.send(socket.as_fd(), |_, _| ());
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let mut wait = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
                poll(&mut wait, PollTimeout::from(50_u8))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Keeps the thread on one core.
fn pin(core: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &set)
}
