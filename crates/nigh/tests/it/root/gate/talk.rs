//! Connections through the gate that stay open and send when asked.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};
use testbed::Namespace;

/// Port of the echo, over TCP and over UDP.
pub(crate) const PORT: u16 = 7;
/// How long an answer over UDP may take until it is called lost.
const ANSWER: Duration = Duration::from_secs(20);
/// How long a server's first words are waited for.
const SILENCE: Duration = Duration::from_secs(5);

/// A TCP connection whose other end sends back what it gets.
pub(crate) struct Talk {
    stream: TcpStream,
    _echo: JoinHandle<()>,
}

impl Talk {
    /// Opens it between two namespaces.
    pub(crate) fn open(from: &Namespace, to: &Namespace, address: &str) -> Self {
        let listener = to.enter(|| TcpListener::bind((address, PORT))).unwrap();
        let echo = std::thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = stream.read(&mut bytes) {
                if stream.write_all(&bytes[..length]).is_err() {
                    return;
                }
            }
        });
        let stream = from.enter(|| TcpStream::connect((address, PORT))).unwrap();
        stream.set_read_timeout(Some(super::site::LIMIT)).unwrap();
        Self { stream, _echo: echo }
    }

    /// Says something and hears it again.
    pub(crate) fn send(&mut self, what: &[u8]) {
        self.stream.write_all(what).unwrap();
        let mut heard = vec![0; what.len()];
        self.stream.read_exact(&mut heard).unwrap();
        assert_eq!(heard, what);
    }
}

/// A server that greets everybody and then listens; it ends with the test.
pub(crate) fn greet(to: &Namespace, at: (&str, u16), greeting: &'static [u8]) -> JoinHandle<()> {
    let listener = to.enter(|| TcpListener::bind(at)).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Who is refused is gone, which is no matter here.
            let _ = stream.write_all(greeting).and_then(|()| stream.read_to_end(&mut Vec::new()));
        }
    })
}

/// A server's first bytes to a new connection; nothing where the connection is refused.
pub(crate) fn greeting(server: (&str, u16)) -> Vec<u8> {
    let mut greeting = [0; 64];
    let heard = TcpStream::connect(server).and_then(|mut stream| {
        stream.set_read_timeout(Some(SILENCE))?;
        stream.read(&mut greeting)
    });
    greeting[..heard.unwrap_or_default()].to_vec()
}

/// A flow of UDP in which each packet waits for the answer to the one before it.
pub(crate) struct Pings {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    lost: JoinHandle<u64>,
}

impl Pings {
    /// Begins it between two namespaces.
    pub(crate) fn start(from: &Namespace, to: &Namespace, address: &str) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let echo = to.enter(|| UdpSocket::bind((address, PORT))).unwrap();
        echo.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let over = Arc::<AtomicBool>::default();
        let echo_ends = Arc::clone(&over);
        std::thread::spawn(move || {
            let mut bytes = [0; 64];
            while !echo_ends.load(Ordering::Relaxed) {
                if let Ok((length, who)) = echo.recv_from(&mut bytes) {
                    echo.send_to(&bytes[..length], who).unwrap();
                }
            }
        });
        let socket = from.enter(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
        socket.connect((address, PORT)).unwrap();
        socket.set_read_timeout(Some(ANSWER)).unwrap();
        let (ends, counts) = (Arc::clone(&stop), Arc::clone(&answered));
        let lost = std::thread::spawn(move || {
            let mut lost = 0;
            for number in 0_u64.. {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                socket.send(&number.to_be_bytes()).unwrap();
                let mut heard = [0; 8];
                match socket.recv(&mut heard) {
                    Ok(_) => assert_eq!(u64::from_be_bytes(heard), number),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => lost += 1,
                    Err(error) => panic!("{error}"),
                }
                counts.fetch_add(1, Ordering::Relaxed);
            }
            // The echo ends after the last answer.
            over.store(true, Ordering::Relaxed);
            lost
        });
        Self { stop, answered, lost }
    }

    /// How many were answered or lost.
    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Stops it, and returns how many were lost.
    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.lost.join().unwrap()
    }
}
