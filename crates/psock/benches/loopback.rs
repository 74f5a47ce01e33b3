//! How fast a session is over loopback, both ends on this machine: what the protocol costs.
//!
//! `cargo bench -p psock --bench loopback` prints a line for each number of connections, encrypted and
//! plain, with the processor time that both ends and their applications need for a gigabyte.

use psock::{Config, PresharedKey, PsockListener, PsockStream, Security};
use std::{
    io::{Read, Write},
    net::SocketAddr,
    thread,
    time::{Duration, Instant},
};

/// How long each line is measured.
const TIME: Duration = Duration::from_secs(3);

fn main() {
    println!("{:>12} {:>11} {:>8} {:>8}", "", "connections", "Gbit/s", "CPU s/GB");
    for connections in [1, 2, 4] {
        let key = PresharedKey::generate().expect("random bytes");
        for (name, security) in [("TLS 1.3", Security::Key(key)), ("plain", Security::Plain)] {
            let before = processor_time();
            let (bytes, seconds) = measure(connections, &Config::new(security));
            let rate = bytes * 8.0 / seconds / 1e9;
            let time = (processor_time() - before) / (bytes / 1e9);
            println!("{name:>12} {connections:>11} {rate:>8.2} {time:>8.2}");
        }
    }
}

/// Seconds of processor time that this process has used.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
    // utime and stime of proc(5), in hundredths of a second.
    [12, 13].iter().filter_map(|&at| fields.get(at)?.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Bytes over so many connections, and in how many seconds.
fn measure(connections: u16, config: &Config) -> (f64, f64) {
    let listener =
        PsockListener::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))], config).expect("a listener");
    let mut config = config.clone();
    config.connections_per_path = connections;
    config.paths = listener.local_addresses().into_iter().map(Into::into).collect();
    let reader = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a session");
        let mut buffer = vec![0; 1 << 20];
        let (begin, mut bytes) = (Instant::now(), 0);
        loop {
            match stream.read(&mut buffer).expect("the stream") {
                0 => return (bytes as f64, begin.elapsed().as_secs_f64()),
                count => bytes += count,
            }
        }
    });
    let mut stream = PsockStream::connect(&config).expect("a session");
    let (begin, bytes) = (Instant::now(), vec![7; 1 << 20]);
    while begin.elapsed() < TIME {
        stream.write_all(&bytes).expect("the stream");
    }
    stream.close().expect("the end");
    reader.join().expect("the reader")
}
