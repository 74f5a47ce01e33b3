//! What a limit lets through: its rate is what is set to within 3 %.
//!
//! Connections send as fast as they can through a limit that all share, with links that carry
//! super-packets; what arrives is counted at the receiver's interface, so what is sent again counts too.
//! A rate counts frames with Ethernet's header, of which a super-packet has but one.

use crate::{
    Failure,
    http::{BULK, Bulk},
    median,
    stage::{CLIENTS, SERVERS, Stage, arrived},
    variants::Variant,
};
use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddrV4, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use testbed::Figures;

/// In Mbit/s.
const RATES: [u64; 3] = [1, 20, 200];
/// Connections that share a limit.
const CONNECTIONS: [usize; 2] = [1, 20];
/// Until the connections have found their windows.
const WARM: Duration = Duration::from_millis(3_000);
/// How long it is measured then: a burst of 64 KB is half a second of the lowest rate.
fn measured(rate: u64) -> Duration {
    Duration::from_secs(if rate == 1 { 20 } else { 6 })
}
/// Bytes of a full frame: its headers, TCP's with timestamps, and its payload.
const HEADERS: f64 = 66.0;
const PAYLOAD: f64 = 1448.0;
/// Of which the median counts.
const ROUNDS: usize = 3;
/// Longest time without a look at whether it is over.
const LOOK: Duration = Duration::from_millis(50);

/// Sends or receives until stopped.
fn client(kind: Bulk, stop: &AtomicBool) -> Result<(), Failure> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddrV4::new(CLIENTS[0], 0).into())?;
    socket.connect(&SocketAddrV4::new(SERVERS[0], BULK[kind as usize]).into())?;
    // What is still to be sent at the end is thrown away: the next gateway would not know it.
    socket.set_linger(Some(Duration::ZERO))?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(LOOK))?;
    let mut buffer = vec![0x6e; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        let done = match kind {
            Bulk::Down => stream.read(&mut buffer),
            Bulk::Up => stream.write(&buffer),
        };
        match done {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Mbit/s of full frames that arrive.
fn arriving(stage: &Stage, kind: Bulk, connections: usize, time: Duration) -> Result<f64, Failure> {
    let stop = AtomicBool::new(false);
    let receiver = match kind {
        Bulk::Down => &stage.clients,
        Bulk::Up => &stage.servers,
    };
    let frames = || -> Result<f64, Failure> {
        let (packets, bytes) = arrived(receiver, "eth0")?;
        Ok((bytes - packets * HEADERS) / PAYLOAD)
    };
    thread::scope(|scope| {
        let run = || stage.clients.enter(|| client(kind, &stop));
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(run)).collect();
        thread::sleep(WARM);
        let (before, begin) = (frames(), Instant::now());
        thread::sleep(time);
        let (after, took) = (frames(), begin.elapsed().as_secs_f64());
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a client died")??;
        }
        Ok((after? - before?) * (HEADERS + PAYLOAD) * 8.0 / 1e6 / took)
    })
}

/// Measures all rates in both directions.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Failure> {
    println!("\nConnections share a limit");
    let stage = Stage::build()?;
    // Reno fills the queue. BBR empties it every ten seconds and is wrong about the rate for a while:
    // a limit can only let through what is there.
    for end in [&stage.clients, &stage.servers] {
        end.check(&["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"])?;
    }
    let mut worst = 0.0_f64;
    for rate in RATES {
        for (kind, direction) in [(Bulk::Down, "to internal"), (Bulk::Up, "from internal")] {
            for connections in CONNECTIONS {
                let mut shares = Vec::new();
                for _ in 0..ROUNDS {
                    let running = Variant::Limit(rate).start(&stage)??;
                    let got = arriving(&stage, kind, connections, measured(rate))?;
                    running.end()?;
                    shares.push(got / rate as f64);
                }
                let share = median(shares);
                let name = format!("{rate} Mbit/s {direction}, {connections} connections");
                figures.add(&name, share, "of the rate", Some("0.97 to 1.03"));
                worst = worst.max((share - 1.0).abs());
            }
        }
    }
    figures.add("off the rate, at worst", worst * 100.0, "percent", Some("3"));
    Ok(())
}
