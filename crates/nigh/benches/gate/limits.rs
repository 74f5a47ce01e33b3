//! What a limit lets through: its rate is what is set to within 3 %.
//!
//! Connections send as fast as they can through a limit that all share, with links that carry
//! super-packets; what arrives is counted at the receiver. A rate counts frames with Ethernet's header, so
//! of 1514 bytes 1448 arrive as payload.

use crate::{
    Failure,
    http::{BULK, Bulk},
    stage::{CLIENTS, SERVERS, Stage},
    ways::Way,
};
use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddrV4, TcpStream},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};
use testbed::Figures;

/// In Mbit/s.
const RATES: [u64; 3] = [1, 20, 200];
/// Connections that share a limit.
const CONNECTIONS: [usize; 2] = [1, 20];
/// Until the connections have found their windows, and how long it is measured then.
const WARM: Duration = Duration::from_millis(3_000);
const MEASURE: Duration = Duration::from_millis(6_000);
/// The share of a full frame that is payload of TCP with timestamps.
const PAYLOAD: f64 = 1448.0 / 1514.0;
/// Longest time without a look at whether it is over.
const LOOK: Duration = Duration::from_millis(50);

/// Sends or receives until told to stop; what is received is counted.
fn client(kind: Bulk, got: &AtomicU64, stop: &AtomicBool) -> Result<(), Failure> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.bind(&SocketAddrV4::new(CLIENTS[0], 0).into())?;
    socket.connect(&SocketAddrV4::new(SERVERS[0], BULK[kind as usize]).into())?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(LOOK))?;
    let mut buffer = vec![0x6e; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        let done = match kind {
            Bulk::Down => stream.read(&mut buffer),
            Bulk::Up => stream.write(&buffer),
        };
        match (kind, done) {
            (Bulk::Down, Ok(length)) => drop(got.fetch_add(length as u64, Ordering::Relaxed)),
            (Bulk::Up, Ok(_)) => {}
            (_, Err(error)) if error.kind() == ErrorKind::WouldBlock => {}
            (_, Err(error)) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Mbit/s of payload that arrive.
fn arriving(stage: &Stage, kind: Bulk, connections: usize) -> Result<f64, Failure> {
    let (here, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let got = match kind {
        Bulk::Down => &here,
        Bulk::Up => &*stage.taken,
    };
    thread::scope(|scope| {
        let run = || stage.clients.enter(|| client(kind, &here, &stop));
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(run)).collect();
        thread::sleep(WARM);
        let (before, begin) = (got.load(Ordering::Relaxed), Instant::now());
        thread::sleep(MEASURE);
        let bytes = got.load(Ordering::Relaxed) - before;
        let rate = bytes as f64 * 8.0 / 1e6 / begin.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a client died")??;
        }
        Ok(rate)
    })
}

/// Measures all rates in both directions.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Failure> {
    println!("\nConnections share a limit");
    let stage = Stage::build()?;
    let mut worst = 0.0_f64;
    for rate in RATES {
        for (kind, way) in [(Bulk::Down, "to inside"), (Bulk::Up, "from inside")] {
            for connections in CONNECTIONS {
                let running = Way::Limit(rate).start(&stage)??;
                let share = arriving(&stage, kind, connections)? / PAYLOAD / rate as f64;
                running.end()?;
                let name = format!("{rate} Mbit/s {way}, {connections} connections");
                figures.add(&name, share, "of the rate", Some("0.97 to 1.03"));
                worst = worst.max((share - 1.0).abs());
            }
        }
    }
    figures.add("off the rate, at worst", worst * 100.0, "percent", Some("3"));
    Ok(())
}
