//! As many questions as are answered: each reply is turned into the next request, so that a fixed
//! number of them is always in flight, and the server is never idle and never swamped.

use datapath::mmsg::Exchange;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use oracle::{candidate::Candidate, proxidor::Query};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    os::fd::AsFd,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// Sockets of a thread: the server's threads share them by their ports.
const SOCKETS: usize = 8;
/// Requests in flight for each socket.
const WINDOW: usize = 32;
/// Different requests.
const DIFFERENT: usize = 256;
/// After so long without any reply, those in flight count as lost.
const TIMEOUT: Duration = Duration::from_millis(50);

/// Random questions of `candidates` addresses each.
pub(crate) fn requests(candidates: usize) -> Vec<Vec<u8>> {
    let mut random = SmallRng::seed_from_u64(candidates as u64);
    let mut request = |_| {
        let asked: Vec<_> = (0..candidates)
            .map(|_| Candidate::V4(Ipv4Addr::from(random.random_range(0x0100_0000..0xe000_0000))))
            .collect();
        let mut bytes = Vec::new();
        let query =
            Query { identification: random.random(), candidates: &asked, ..Query::default() };
        query.emit(&mut bytes).expect("at most 363 candidates");
        bytes
    };
    (0..DIFFERENT).map(&mut request).collect()
}

/// Keeps the calling thread on a core.
pub(crate) fn pin(core: usize) {
    let mut set = CpuSet::new();
    let pinned = set.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    pinned.expect("two cores");
}

/// Replies a second from `server` to `threads` threads, the first on the last core; to be called in the
/// client's namespace.
pub(crate) fn replies_per_second(
    server: SocketAddr,
    candidates: usize,
    threads: usize,
    time: Duration,
) -> f64 {
    let requests = requests(candidates);
    let (begin, stop) = (Barrier::new(threads + 1), AtomicBool::new(false));
    thread::scope(|scope| {
        let asking: Vec<_> = (0..threads)
            .map(|thread| {
                let (requests, begin, stop) = (&requests, &begin, &stop);
                scope.spawn(move || {
                    pin(1 - thread % 2);
                    begin.wait();
                    ask(server, requests, stop)
                })
            })
            .collect();
        begin.wait();
        let from = Instant::now();
        thread::sleep(time);
        stop.store(true, Relaxed);
        let seconds = from.elapsed().as_secs_f64();
        asking.into_iter().map(|thread| thread.join().expect("it asked")).sum::<u64>() as f64
            / seconds
    })
}

/// Asks until it is stopped and counts the replies.
fn ask(server: SocketAddr, requests: &[Vec<u8>], stop: &AtomicBool) -> u64 {
    let sockets: Vec<_> = (0..SOCKETS)
        .map(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket"))
        .collect();
    let mut exchange = Exchange::new(2048);
    let (mut replies, mut next) = (0, 0);
    let mut turn = || {
        next = (next + 1) % requests.len();
        &requests[next]
    };
    let mut last = Instant::now() - TIMEOUT;
    while !stop.load(Relaxed) {
        if last.elapsed() >= TIMEOUT {
            last = Instant::now();
            for socket in &sockets {
                socket.set_nonblocking(true).expect("a socket");
                for _ in 0..WINDOW {
                    let _ = socket.send_to(turn(), server);
                }
            }
        }
        let mut idle = true;
        for socket in &sockets {
            let Ok(received) = exchange.receive(socket.as_fd()) else { continue };
            (idle, replies) = (false, replies + received as u64);
            exchange.answer(|_, _, _, request| {
                request.clear();
                request.extend_from_slice(turn());
            });
            exchange.send(socket.as_fd(), |_, _| {});
        }
        if idle {
            thread::yield_now();
        } else {
            last = Instant::now();
        }
    }
    replies
}
