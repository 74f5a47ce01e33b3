//! How far timestamps are from the truth: the kernel's and userspace's, of the same packets.
//!
//! Over a veth, where the driver at the one end hands the packet to the other in the same call, so that it
//! takes no time: whatever one-way delay is measured is error. The kernel's is from its time of sending to
//! its time of receiving; userspace's is from a reading of the clock right before the system call that sends
//! to one right after that which receives, by a thread that does nothing else.

use datapath::{
    clock::unix_ns,
    stamping::{Incoming, Outgoing, StampedSocket},
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    collections::HashMap,
    error::Error,
    net::SocketAddr,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};
use testbed::Figures;

const PACKETS: u32 = 5000;
const PAUSE: Duration = Duration::from_micros(500);

/// Receives until it is stopped: number, the kernel's time, userspace's.
fn receive(socket: &StampedSocket, stop: &AtomicBool) -> Vec<(u32, i64, i64)> {
    let mut incoming = Incoming::new(100);
    let mut came = Vec::new();
    while !stop.load(Relaxed) {
        let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut fds, PollTimeout::from(100_u8));
        let many = socket.receive(&mut incoming).unwrap_or(0);
        let user_ns = unix_ns().cast_signed();
        if many == 0 {
            continue;
        }
        for datagram in incoming.datagrams() {
            if let (Some(number), Some(at_ns)) = (datagram.bytes.first_chunk(), datagram.at_ns) {
                came.push((u32::from_be_bytes(*number), at_ns as i64, user_ns));
            }
        }
    }
    came
}

pub(crate) fn measure(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    println!("\nerror of a one-way delay over a link that takes no time, {PACKETS} packets");
    let (left, right) = testbed::pair()?;
    // Without it a packet is stamped on arrival, not when it is taken from the ring.
    for namespace in [&left, &right] {
        namespace.check(&["ethtool", "-K", "eth0", "gro", "off"])?;
    }
    let to: SocketAddr = "192.0.2.2:862".parse()?;
    let receiver = right.enter(|| StampedSocket::bind(to))?;
    let mut sender = left.enter(|| StampedSocket::bind("192.0.2.1:0".parse().expect("valid")))?;
    let stop = AtomicBool::new(false);
    let mut given = HashMap::new();
    let mut left_at = HashMap::new();
    let came = thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, &stop));
        let (mut out, mut stamps) = (Outgoing::default(), Incoming::new(100));
        for number in 0..PACKETS {
            out.add(|bytes| {
                bytes.clear();
                bytes.extend(number.to_be_bytes());
                bytes.resize(44, 0);
                Some((to, None, 0))
            });
            given.insert(number, unix_ns().cast_signed());
            sender.send(&mut out, |_, _| {});
            thread::sleep(PAUSE);
            let _ = sender.sent(&mut stamps, |number, at_ns| {
                left_at.insert(number, at_ns as i64);
            });
        }
        thread::sleep(Duration::from_millis(100));
        stop.store(true, Relaxed);
        receiving.join().expect("it received")
    });
    let mut errors = [Vec::new(), Vec::new()];
    for (number, kernel, user) in came {
        if let (Some(given), Some(left)) = (given.get(&number), left_at.get(&number)) {
            errors[0].push((user - given).abs());
            errors[1].push((kernel - left).abs());
        }
    }
    let mut p99 = [0.0; 2];
    for ((name, errors), p99) in ["userspace", "kernel"].iter().zip(&mut errors).zip(&mut p99) {
        errors.sort_unstable();
        if errors.len() < PACKETS as usize * 9 / 10 {
            return Err(format!("{} of {PACKETS} packets have all times", errors.len()).into());
        }
        let part = |percent: usize| errors[errors.len() * percent / 100] as f64 / 1e3;
        figures.add(&format!("{name} timestamps, p50"), part(50), "microseconds", None);
        figures.add(&format!("{name} timestamps, p99"), part(99), "microseconds", None);
        *p99 = part(99);
    }
    figures.add("userspace to kernel, p99", p99[0] / p99[1], "times", Some("at least 40"));
    Ok(())
}
