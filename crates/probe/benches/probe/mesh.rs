//! A mesh of a hundred stations on this machine: each is a process of its own and measures to all others,
//! ten packets a second to each, over loopback in a namespace.

use probe::{
    delay::{Config, Delays, News, Session},
    interval::MaximumError,
    stamp::{
        reflector::{Rate, SessionConfig},
        sender::{Event, Settings},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    error::Error,
    io::{BufRead, BufReader, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};
use testbed::{Figures, Namespace};

/// The word by which this program is started as a station.
pub(crate) const STATION: &str = "station";

const INTERVAL: Duration = Duration::from_millis(100);
/// After so long without a reply a packet is lost.
const LIMIT: Duration = Duration::from_secs(2);
const PORT: u16 = 862;

/// The report of a station at its end.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Tally {
    sent: u64,
    missed: u64,
    arrived: u64,
    lost: u64,
    kernel_sent: u64,
    kernel_left: u64,
    peak_kib: u64,
    busy_ms: u64,
}

fn address(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 1, high, low).into()
}

/// A station of so many: says that it is ready, then measures from one line of input to the next.
pub(crate) fn station(number: u16, count: u16, gather_ms: u64) -> Result<(), Box<dyn Error>> {
    let reported = Arc::new(Mutex::new(Tally::default()));
    let tally = Arc::clone(&reported);
    let report = move |_, news| {
        let mut reported = tally.lock().unwrap_or_else(PoisonError::into_inner);
        match news {
            News::Packet(Event::Arrived(sample)) => {
                reported.arrived += 1;
                reported.kernel_sent += u64::from(sample.kernel_sent);
                reported.kernel_left += u64::from(sample.kernel_left);
            }
            News::Packet(Event::Lost { .. }) => reported.lost += 1,
            News::Missed(many) => reported.missed += many,
            _ => {}
        }
    };
    let config = Config {
        sender: SocketAddr::new(address(number), 0),
        reflector: Some(SocketAddr::new(address(number), PORT)),
        gather: Duration::from_millis(gather_ms),
        ..Config::default()
    };
    let delays = Delays::start(&config, |_| MaximumError::known(1_000_000), report)?;
    let others: Vec<u16> = (0..count).filter(|other| *other != number).collect();
    for other in &others {
        delays.permit(SocketAddr::new(address(*other), PORT));
        let admitted = delays.admit(SessionConfig {
            address: address(*other),
            port: None,
            ssid: Some(1),
            key: None,
            extensions: true,
            rate: Rate { per_second: 20, burst: 100 },
        });
        admitted.blocking_recv()?;
    }
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let sessions: Vec<_> = others
        .iter()
        .enumerate()
        .map(|(index, other)| {
            delays.open(Session {
                to: SocketAddr::new(address(*other), PORT),
                from: None,
                interval: INTERVAL,
                // Evenly over the interval, and no two stations alike.
                phase: INTERVAL * (index as u32 * 100 + u32::from(number))
                    / (u32::from(count) * 100),
                count: None,
                settings: Settings {
                    ssid: 1,
                    ssid_needed: true,
                    limit: LIMIT,
                    ..Settings::default()
                },
            })
        })
        .collect();
    std::io::stdin().read_line(&mut line)?;
    for session in sessions {
        delays.close(session);
    }
    thread::sleep(LIMIT + Duration::from_secs(1));
    let counters = delays.counters();
    let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
    reported.sent = counters.sent;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|rest| rest.split_whitespace().next());
    reported.peak_kib = peak.ok_or("no VmHWM")?.parse()?;
    let clock = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID;
    reported.busy_ms = Duration::from(nix::time::clock_gettime(clock)?).as_millis() as u64;
    println!("{}", serde_json::to_string(&*reported)?);
    Ok(())
}

/// The stations, which are ended when this is dropped.
struct Stations(Vec<Child>);

impl Drop for Stations {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A number from the environment.
fn number(name: &str, default: u64) -> Result<u64, Box<dyn Error>> {
    std::env::var(name).map_or(Ok(default), |text| Ok(text.parse()?))
}

pub(crate) fn measure(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    let count = number("MESH_STATIONS", 100)?;
    let seconds = number("MESH_SECONDS", 10)?;
    let gather_ms = number("MESH_GATHER_MS", 20)?.to_string();
    let pairs = count * (count - 1);
    println!("\na mesh of {count} stations: {pairs} pairs, ten packets a second each, {seconds} s");
    let mesh = Namespace::new("mesh")?;
    let program = std::env::current_exe()?;
    let start = |number: u64| {
        Command::new(&program)
            .args([STATION, &number.to_string(), &count.to_string(), &gather_ms])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    };
    let children: Result<Vec<_>, _> = mesh.enter(|| (0..count).map(start).collect());
    let mut stations = Stations(children?);
    let mut outputs = Vec::new();
    for child in &mut stations.0 {
        let mut output = BufReader::new(child.stdout.take().ok_or("it is piped")?);
        let mut line = String::new();
        output.read_line(&mut line)?;
        outputs.push(output);
    }
    let mut go = || -> Result<(), Box<dyn Error>> {
        for child in &mut stations.0 {
            child.stdin.as_mut().ok_or("it is piped")?.write_all(b"\n")?;
        }
        Ok(())
    };
    let begin = Instant::now();
    go()?;
    thread::sleep(Duration::from_secs(seconds));
    go()?;
    let took = begin.elapsed().as_secs_f64();
    let mut all = Tally::default();
    for output in &mut outputs {
        let mut line = String::new();
        output.read_line(&mut line)?;
        let reported: Tally = serde_json::from_str(&line)?;
        all.sent += reported.sent;
        all.missed += reported.missed;
        all.arrived += reported.arrived;
        all.lost += reported.lost;
        all.kernel_sent += reported.kernel_sent;
        all.kernel_left += reported.kernel_left;
        all.peak_kib = all.peak_kib.max(reported.peak_kib);
        all.busy_ms += reported.busy_ms;
    }
    let share = |part: u64| part as f64 * 100.0 / all.arrived.max(1) as f64;
    figures.add("mesh: test packets", all.sent as f64 / took, "packets a second", None);
    figures.add("mesh: slots missed", all.missed as f64, "packets", Some("0"));
    figures.add("mesh: packets lost", all.lost as f64, "packets", None);
    figures.add("mesh: with the kernel's time of sending", share(all.kernel_sent), "percent", None);
    figures.add("mesh: with the reflector's kernel's", share(all.kernel_left), "percent", None);
    let memory = all.peak_kib as f64 / 1024.0;
    figures.add("mesh: memory of the largest station", memory, "MiB", Some("at most 76 (80 MB)"));
    let cores = all.busy_ms as f64 / 1e3 / took;
    figures.add("mesh: processor time of all stations", cores, "cores", None);
    Ok(())
}
