//! An adversary in the middle: it holds bytes up, hands them on in pieces of any size, lets connections
//! overtake each other, resets them, ends them as if the peer had, and lets new ones in late. Whatever it
//! does, both streams come out exact. Every run follows from its seed.

use crate::common::{LIMIT, key, listen, read, to, write};
use psock::{Config, DriverName, PsockStream};
use socket2::SockRef;
use splitmix::Random;
use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Connections that the adversary does away with on each path before it gives up.
const CUTS: u64 = 8;

/// A path that the adversary holds.
struct Middle {
    address: SocketAddr,
    state: Arc<State>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    /// It only cuts from now on.
    armed: AtomicBool,
    stopped: AtomicBool,
    cuts: AtomicU64,
}

impl Middle {
    /// A path to `to`.
    fn new(to: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            let mut random = Random::new(seed);
            let mut carriers = Vec::new();
            while let Ok((near, _)) = listener.accept() {
                if shared.stopped.load(Ordering::Relaxed) {
                    break;
                }
                // Late.
                thread::sleep(Duration::from_millis(random.below(20)));
                let Ok(far) = TcpStream::connect(to) else { continue };
                let life = random.below(600_000);
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (state, seed) = (Arc::clone(&shared), random.below(u64::MAX));
                    carriers.push(thread::spawn(move || carry(from, to, life, seed, &state)));
                }
            }
            for carrier in carriers {
                carrier.join().unwrap();
            }
        });
        Self { address, state, thread: Some(thread) }
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the adversary failed");
        }
    }
}

/// Carries one direction for so many bytes, then does away with the connection.
fn carry(mut from: TcpStream, mut to: TcpStream, life: u64, seed: u64, state: &State) {
    let mut random = Random::new(seed);
    let mut buffer = vec![0; 40_000];
    let mut left = life as usize;
    loop {
        let size = 1 + random.below(buffer.len() as u64) as usize;
        let Ok(count) = from.read(&mut buffer[..size]) else { break };
        if count == 0 {
            break;
        }
        if random.below(8) == 0 {
            thread::sleep(Duration::from_micros(random.below(3_000)));
        }
        if state.armed.load(Ordering::Relaxed) {
            if left < count && state.cuts.fetch_add(1, Ordering::Relaxed) < CUTS {
                // A part of it arrives; then a reset, or an end as if the peer wanted it.
                let _ = to.write_all(&buffer[..left]);
                if random.below(2) == 0 {
                    let _ = SockRef::from(&to).set_linger(Some(Duration::ZERO));
                    let _ = SockRef::from(&from).set_linger(Some(Duration::ZERO));
                }
                break;
            }
            left = left.saturating_sub(count);
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Both streams through an adversary on each of three paths.
fn run(seed: u64, driver: DriverName) {
    const LENGTH: u64 = 4_000_000;
    let config = Config { driver, connect_timeout: LIMIT, ..key() };
    let listener = listen(&config);
    let server = listener.local_addresses()[0];
    let middles: Vec<Middle> = (0..3).map(|path| Middle::new(server, seed * 10 + path)).collect();
    let paths: Vec<SocketAddr> = middles.iter().map(|middle| middle.address).collect();
    let one = PsockStream::connect(&to(&paths, &config)).unwrap();
    let (other, _) = listener.accept().unwrap();
    for middle in &middles {
        middle.state.armed.store(true, Ordering::Relaxed);
    }
    thread::scope(|scope| {
        for (stream, ours, theirs) in [(&one, seed, seed + 1), (&other, seed + 1, seed)] {
            scope.spawn(move || {
                write(stream, ours, LENGTH).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                assert_eq!(read(stream, theirs).unwrap(), LENGTH, "seed {seed}, {driver}");
            });
        }
    });
    let deaths: u64 = one.counters().connections.iter().map(|c| c.failures).sum();
    let cuts: u64 = middles.iter().map(|m| m.state.cuts.load(Ordering::Relaxed)).sum();
    assert!(cuts > 0 && deaths > 0, "seed {seed}: {cuts} cuts, {deaths} deaths");
    one.close().unwrap();
    other.close().unwrap();
}

#[test]
fn round_robin_is_exact_whatever_happens_to_its_connections() {
    for seed in [1, 2] {
        run(seed, DriverName::RoundRobin);
    }
}

#[test]
fn poll_all_is_exact_whatever_happens_to_its_connections() {
    for seed in [3, 4] {
        run(seed, DriverName::PollAll);
    }
}

#[test]
fn adaptive_is_exact_whatever_happens_to_its_connections() {
    for seed in [5, 6, 7] {
        run(seed, DriverName::Adaptive);
    }
}
