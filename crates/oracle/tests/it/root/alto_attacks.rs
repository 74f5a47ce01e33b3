//! Attacks on ALTO's server from a namespace of their own, beside which curl in another still gets its answers.

use crate::alto_streams::{
    client::tls_over,
    fake::{Fake, Served},
};
use axum::{body::Body, http::Request};
use config::Size;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use oracle::alto::limits::Limits;
use std::{
    error::Error,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use testbed::{End, Namespace, link, wait_until};
use tokio::{net::TcpSocket, runtime, sync::oneshot};

/// Where the server listens towards the good client, and towards the attack.
const GOOD: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const BAD: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// Longest wait for a step of an attack.
const LIMIT: Duration = Duration::from_secs(60);
/// How often the good client asks beside an attack.
const QUESTIONS: usize = 10;

/// A node with the server, a good client, and an attacker with many addresses.
struct Network {
    good: Namespace,
    bad: Namespace,
    served: Served,
}

impl Network {
    fn new(limits: Limits) -> Network {
        let [node, good, bad] = ["node", "good", "bad"].map(|label| Namespace::new(label).unwrap());
        link(
            End::new(&node, "eth0").address("192.0.2.1/24"),
            End::new(&good, "eth0").address("192.0.2.2/24"),
        )
        .unwrap();
        let attacker = attackers(12)
            .fold(End::new(&bad, "eth0"), |end, address| end.address(&format!("{address}/24")));
        link(End::new(&node, "eth1").address("198.51.100.1/24"), attacker).unwrap();
        let served = node.enter(|| Served::at(Ipv4Addr::UNSPECIFIED, limits));
        let mut fake = Fake::new();
        fake.large = 256 << 10;
        served.publish(fake);
        Network { good, bad, served }
    }

    fn port(&self) -> u16 {
        self.served.server.addresses()[0].port()
    }

    /// The good client asks, and gets its answers.
    fn ask(&self) {
        let certificate = self.served.folder.path().join("alto.crt");
        let port = self.port();
        for http in ["--http2", "--http1.1"] {
            let answer = self
                .good
                .check(&[
                    "curl",
                    "--silent",
                    "--show-error",
                    "--fail",
                    http,
                    "--cacert",
                    certificate.to_str().unwrap(),
                    "--resolve",
                    &format!("localhost:{port}:{GOOD}"),
                    &format!("https://localhost:{port}/net"),
                ])
                .unwrap();
            assert_eq!(answer, Fake::new().network_map.to_string());
        }
    }

    /// Runs an attack on a thread in the attacker's namespace as long as `beside` runs.
    fn beside<F: Future<Output = ()>>(
        &self,
        attack: impl FnOnce(Attack) -> F + Send + 'static,
        beside: impl FnOnce(&Attack),
    ) {
        let shared = Attack {
            server: (BAD, self.port()).into(),
            trusted: self.served.trusted().into(),
            done: Arc::default(),
        };
        let (end, ended) = oneshot::channel::<()>();
        std::thread::scope(|scope| {
            let attacker = shared.clone();
            let bad = &self.bad;
            scope.spawn(move || {
                bad.enter(move || {
                    let runtime =
                        runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(async {
                        tokio::select! {
                            () = attack(attacker) => {}
                            _ = ended => {}
                        }
                    });
                });
            });
            beside(&shared);
            drop(end);
        });
    }
}

/// The first of the attacker's addresses.
fn attackers(count: u8) -> impl Iterator<Item = Ipv4Addr> {
    (0..count).map(|host| Ipv4Addr::new(198, 51, 100, 10 + host))
}

/// What an attack knows, and how often it did what it does.
#[derive(Clone)]
struct Attack {
    server: SocketAddr,
    trusted: Arc<[u8]>,
    done: Arc<AtomicUsize>,
}

impl Attack {
    /// A connection over HTTP/2 from an address, on which the server may send as many bytes of each answer.
    async fn connect(
        &self,
        from: Ipv4Addr,
        window: u32,
    ) -> Result<(SendRequest<Body>, impl Future + use<>), Box<dyn Error>> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((IpAddr::from(from), 0).into())?;
        let stream = socket.connect(self.server).await?;
        let stream = tls_over(stream, &self.trusted, "h2", true, None).await?;
        let connection = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(connection)
    }

    fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }
}

/// Memory of this process, the server's and the attack's, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// 64 connections with 64 requests each, whose client takes nothing.
#[test]
fn windows_of_0_from_64_connections() {
    let timeout = Duration::from_secs(3);
    let network = Network::new(Limits { timeout, memory: Size(64 << 20), ..Limits::default() });
    let before = resident();
    let attack = |attack: Attack| async move {
        let mut held = Vec::new();
        for _ in 0..64 {
            let (mut sender, connection) =
                attack.connect(attackers(1).next().unwrap(), 0).await.expect("a connection");
            tokio::spawn(async move {
                connection.await;
            });
            for _ in 0..64 {
                let request = Request::get("https://localhost/large").body(Body::empty()).unwrap();
                let Ok(()) = sender.ready().await else { break };
                held.push(tokio::spawn(sender.send_request(request)));
                attack.count();
            }
        }
        std::future::pending().await
    };
    network.beside(attack, |attack| {
        wait_until("the attack to be complete", LIMIT, || attack.done() == 4096).unwrap();
        for _ in 0..QUESTIONS {
            network.ask();
        }
        // The source's share, and two answers that are made at once.
        let memory = network.served.server.figures().memory_bytes;
        assert!(memory <= (8 << 20) + 2 * (256 << 10), "{memory} bytes");
        let grown = resident() - before;
        println!("{before} KiB before the attack, {grown} KiB more beside it");
        assert!(grown < 256 << 10, "{grown} KiB, where 1 GiB of answers is asked for");
        let given_up = || network.served.server.figures().memory_bytes == 0;
        wait_until("answers to be given up", LIMIT, given_up).unwrap();
        let served = &network.served;
        assert!(served.refused("memory") > 3000 && served.refused("slow") > 0);
    });
}

/// Connections on which nothing is asked, more than there are places, each opened again at once when it ends.
#[test]
fn idle_connections_from_many_addresses() {
    for (addresses, each) in [(8, 64), (12, 50)] {
        let network = Network::new(Limits::default());
        let attack = move |attack: Attack| async move {
            for address in attackers(addresses) {
                for _ in 0..each {
                    let attack = attack.clone();
                    tokio::spawn(async move {
                        loop {
                            let Ok((_sender, connection)) = attack.connect(address, 65_535).await
                            else {
                                continue;
                            };
                            attack.count();
                            connection.await;
                        }
                    });
                }
            }
            std::future::pending().await
        };
        network.beside(attack, |attack| {
            wait_until("all places to be taken", LIMIT, || {
                network.served.server.figures().connections_open >= 512 && attack.done() >= 512
            })
            .unwrap();
            for _ in 0..QUESTIONS {
                network.ask();
            }
        });
        let evicted = network.served.refused("evicted");
        println!("{addresses} addresses: {evicted} connections evicted");
        assert!(evicted >= 2 * QUESTIONS as u64);
    }
}
