//! The oracle in the driver beside a UDP echo that does nothing, in one run: `make bench-oracle`.
//!
//! A network of 1,000 routers with a million prefixes; requests with candidates drawn at random from
//! inside random prefixes, 1,024 different ones in turn, over a veth. Four arrangements:
//!
//! - `one core`: an in-kernel sender, the program, and a program that counts, all on core 0.
//! - `one core each side`: the NAPI thread of the program's end on core 0, that of the other end on
//!   core 1, where a program counts each reply and makes it the next request, so that frames circle
//!   and none is lost. The load of the first core shows whether the program is the limit.
//! - `echo over loopback`: the reader of the real server on core 0 that sends back what it gets, and
//!   its client, which does the same, on core 1: the null UDP echo of machine.md.
//! - `echo over the veth`: the same server in place of the program, and the same circle of frames.
//!
//! What is compared is the program with one core each side to the echo over loopback, which has one
//! core each side too; the other two ratios can be had from the same table.
//!
//! Prints a table and writes target/bench/oracle-xdp.json, an array of `{name, value, unit}`. Nothing
//! here fails for being slow.
#![forbid(unsafe_code)]

use datapath::{
    ask::{Asker, REQUESTS, Replies},
    mmsg,
    oracle::{AttachMode, OracleProgram, Settings},
};
use nix::{
    net::if_::if_nametoindex,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sched::{CpuSet, sched_setaffinity},
    sys::socket::{setsockopt, sockopt::RcvBufForce},
    unistd::Pid,
};
use oracle::{
    metric::{DEFAULT_COST, Metric},
    proxidor::xdp,
    tables::{Policy, Tables},
};
use splitmix::Random;
use std::{
    error::Error,
    fs,
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
    generate::{mesh, realistic_table},
};

const ROUTERS: usize = 1000;
const ROUTES: usize = 1_000_000;
const COUNTS: [usize; 7] = [2, 10, 50, 100, 200, 300, 363];
/// The best of so many turns counts: what else runs on the machine can only make one longer.
const TURNS: usize = 5;
const FRAMES: u32 = 300_000;
/// How long datagrams circle in a turn.
const TURN: Duration = Duration::from_millis(800);
/// Datagrams that circle over loopback.
const CIRCLING: usize = 256;
/// Frames that circle over the veth, whose rings hold 256.
const FRAMES_CIRCLING: u32 = 192;
const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 8899);
/// Where the echo is, to which the program passes what comes.
const ECHO_SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 8900);
/// Third and fourth byte of a ranking, and of a request that is sent back.
const RANKED: [u8; 2] = [0x80, 0];
const SENT_BACK: [u8; 2] = [0, 0];

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
        ("rows left to the sockets", (published.wide_rows + published.skipped_rows) as f64, "rows"),
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

    let client = match network.source {
        IpNet::V4(prefix) => {
            SocketAddrV4::new(prefix.hosts().next().unwrap_or(prefix.addr()), 40_000)
        }
        IpNet::V6(_) => return Err("the network's clients have no IPv4".into()),
    };
    let veth = Veth::new(*client.ip())?;
    let index = veth.site.enter(|| if_nametoindex(veth.site_interface.as_str()))?;
    let attachment = veth.site.enter(|| program.attach(index, AttachMode::Native))?;
    let mut random = Random::new(7);
    let prefixes: Vec<IpNet> = tables.view.table.iter().map(|(prefix, _)| prefix).collect();
    for count in COUNTS {
        let frames: Vec<_> =
            (0..REQUESTS).map(|_| frame(client, &mut random, &prefixes, count)).collect();
        let (alone, share) = veth.on_one_core(&frames)?;
        let (ranked, busy) = veth.circle(SERVICE, &frames, RANKED, TURNS)?;
        let (veth_echo, _) = veth.echo(&frames)?;
        let mut echo: f64 = 0.0;
        for _ in 0..TURNS.min(3) {
            echo = echo.max(circle(16 + 4 * count)?);
        }
        let goal = (count == 100).then_some("4");
        let mut add = |name: &str, value, unit, goal| {
            figures.add(&format!("{count} candidates: {name}"), value, unit, goal);
        };
        add("one core, generator and counting included", alone, "replies a second", None);
        add("of these answered", share, "percent", None);
        add("one core each side", ranked, "replies a second", None);
        add("the driver's core was busy", busy[0], "percent", None);
        add("the client's core was busy", busy[1], "percent", None);
        add("echo over loopback, one core each side", echo, "replies a second", None);
        add("echo over the veth, one core each side", veth_echo, "replies a second", None);
        add("one core each side, to the echo over loopback", ranked / echo, "times", goal);
        add("one core each side, to the echo over the veth", ranked / veth_echo, "times", None);
        add("one core, to the echo over loopback", alone / echo, "times", None);
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

/// Two namespaces with a veth between them.
struct Veth {
    asker: Namespace,
    site: Namespace,
    asker_interface: String,
    site_interface: String,
}

type Rates = Result<(f64, [f64; 2]), Box<dyn Error + Send + Sync>>;

impl Veth {
    /// The names of the interfaces identify their NAPI threads.
    fn new(client: Ipv4Addr) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let (asker, site) = (Namespace::new("asker")?, Namespace::new("site")?);
        let id = std::process::id();
        let (asker_interface, site_interface) = (format!("a{id}"), format!("s{id}"));
        let [asker_mac, site_mac] = ["02:00:00:00:00:02", "02:00:00:00:00:01"];
        link(
            End::new(&asker, &asker_interface).mac(asker_mac),
            End::new(&site, &site_interface).mac(site_mac).address(&format!("{}/32", SERVICE.ip())),
        )?;
        let client = client.to_string();
        site.check(&["ip", "route", "add", &client, "dev", &site_interface])?;
        let neighbour = ["ip", "neigh", "add", &client, "lladdr", asker_mac, "nud", "permanent"];
        site.check(&[&neighbour[..], &["dev", &site_interface]].concat())?;
        Ok(Self { asker, site, asker_interface, site_interface })
    }

    fn asker(
        &self,
        service: SocketAddrV4,
        frames: &[Vec<u8>],
        replies: Replies,
    ) -> Result<Asker, Box<dyn Error + Send + Sync>> {
        let index = if_nametoindex(self.asker_interface.as_str())?;
        Ok(Asker::attach(index, service, frames, replies)?)
    }

    /// Replies a second of the best turn, and what share of the requests of all turns was answered,
    /// everything on core 0.
    fn on_one_core(&self, frames: &[Vec<u8>]) -> Result<(f64, f64), Box<dyn Error + Send + Sync>> {
        self.thread_napi(false)?;
        self.asker.enter(|| {
            pin(Pid::from_raw(0), 0)?;
            let asker = self.asker(SERVICE, frames, Replies { flags: RANKED, again: false })?;
            asker.send(10_000)?;
            let (mut best, before) = (0.0_f64, settled(&asker));
            for _ in 0..TURNS {
                let begin = settled(&asker);
                let clock = Instant::now();
                asker.send(FRAMES)?;
                let elapsed = clock.elapsed();
                // All but the last batch came while the call was going on: it is the same core.
                best = best.max((asker.answered() - begin) as f64 / elapsed.as_secs_f64());
            }
            let answered = settled(&asker) - before;
            Ok((best, answered as f64 * 100.0 / (f64::from(FRAMES) * TURNS as f64)))
        })
    }

    /// Replies a second of the best turn with a core for each end, and how busy the NAPI threads of
    /// the site and of the asker then were, in percent.
    fn circle(
        &self,
        service: SocketAddrV4,
        frames: &[Vec<u8>],
        flags: [u8; 2],
        turns: usize,
    ) -> Rates {
        self.thread_napi(true)?;
        self.asker.enter(|| {
            let asker = self.asker(service, frames, Replies { flags, again: true })?;
            let threads = [(&self.site_interface, 0), (&self.asker_interface, 1)].map(
                |(interface, core)| -> Result<_, Box<dyn Error + Send + Sync>> {
                    let threads = napi_threads(interface)?;
                    for thread in &threads {
                        pin(*thread, core)?;
                    }
                    Ok(threads)
                },
            );
            let [site, client] = threads;
            let threads = [site?, client?];
            asker.send(FRAMES_CIRCLING)?;
            thread::sleep(Duration::from_millis(100));
            let mut best = (0.0_f64, [0.0; 2]);
            for _ in 0..turns {
                let before = [ran(&threads[0])?, ran(&threads[1])?];
                let (begin, clock) = (asker.answered(), Instant::now());
                thread::sleep(TURN);
                let (end, elapsed) = (asker.answered(), clock.elapsed());
                let rate = (end - begin) as f64 / elapsed.as_secs_f64();
                if rate > best.0 {
                    let busy = |side: usize| -> Result<f64, Box<dyn Error + Send + Sync>> {
                        let ran = ran(&threads[side])? - before[side];
                        Ok(ran.as_secs_f64() * 100.0 / elapsed.as_secs_f64())
                    };
                    best = (rate, [busy(0)?, busy(1)?]);
                }
            }
            Ok(best)
        })
    }

    /// The same with a server that sends back what it gets in place of the program.
    fn echo(&self, frames: &[Vec<u8>]) -> Rates {
        let socket = self.site.enter(|| UdpSocket::bind(ECHO_SERVICE))?;
        setsockopt(&socket, RcvBufForce, &(8 << 20))?;
        let mut frames = frames.to_vec();
        for frame in &mut frames {
            frame[36..38].copy_from_slice(&ECHO_SERVICE.port().to_be_bytes());
        }
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let server = scope.spawn(|| pass_back(&socket, 0, &stop, None));
            let rates = self.circle(ECHO_SERVICE, &frames, SENT_BACK, TURNS);
            stop.store(true, Ordering::Relaxed);
            server.join().map_err(|_| "the echo panicked")??;
            rates
        })
    }

    /// Whether each end is polled by a thread of its own, or by the core that sends to it.
    fn thread_napi(&self, threaded: bool) -> Result<(), Box<dyn Error + Send + Sync>> {
        for (namespace, interface) in
            [(&self.site, &self.site_interface), (&self.asker, &self.asker_interface)]
        {
            let set = format!("echo {} > /sys/class/net/{interface}/threaded", u8::from(threaded));
            // This command sees the namespace's /sys.
            namespace.check(&["ip", "netns", "exec", namespace.name(), "sh", "-c", &set])?;
        }
        Ok(())
    }
}

/// The kernel's threads that poll an interface.
fn napi_threads(interface: &str) -> Result<Vec<Pid>, Box<dyn Error + Send + Sync>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.starts_with(&format!("napi/{interface}-"))
            && let Some(pid) = entry.file_name().to_str().and_then(|pid| pid.parse().ok())
        {
            threads.push(Pid::from_raw(pid));
        }
    }
    if threads.is_empty() {
        return Err(format!("no thread polls {interface}").into());
    }
    Ok(threads)
}

/// How long threads have run.
fn ran(threads: &[Pid]) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    let mut sum = Duration::ZERO;
    for thread in threads {
        let line = fs::read_to_string(format!("/proc/{thread}/schedstat"))?;
        let nanoseconds = line.split(' ').next().ok_or("an empty schedstat")?;
        sum += Duration::from_nanos(nanoseconds.parse()?);
    }
    Ok(sum)
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
    thread::sleep(TURN);
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
    pin(Pid::from_raw(0), core)?;
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

/// Keeps a thread, 0 for this one, on one core.
fn pin(thread: Pid, core: usize) -> nix::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    sched_setaffinity(thread, &set)
}
