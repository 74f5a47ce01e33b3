//! What the BMP listener does with connections that are none of a router.

use oracle::feeds::{BmpConfig, Config, Feeds, News, State};
use std::net::{Ipv4Addr, SocketAddr};
use testbed::LIMIT;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::mpsc,
    time::timeout,
};

/// Initiation with nothing in it.
const INITIATION: [u8; 6] = [3, 0, 0, 0, 6, 4];

/// Connects from an address of loopback.
async fn connect(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(Ipv4Addr::from(from).into(), 0)).unwrap();
    socket.connect(to).await.unwrap()
}

/// Waits until the other side has closed the connection.
async fn closed(stream: &mut TcpStream) {
    let mut rest = [0; 16];
    // A reset is an end as well.
    let read = timeout(LIMIT, stream.read(&mut rest)).await.expect("the connection is closed");
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_peers_and_nonsense_are_turned_away_and_counted() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let bmp: BmpConfig = toml::from_str(&format!(
        "listen = [\"{address}\"]\n[[router]]\naddress = \"127.0.0.1\"\nrouter = \"10.8.0.1\"\n"
    ))
    .unwrap();
    let config = Config { bmp: Some(bmp), bgp_ls: Vec::new() };
    let (sender, mut news) = mpsc::channel(16);
    let feeds = Feeds::start(&config, sender).await.unwrap();
    let mut next = async || timeout(LIMIT, news.recv()).await.unwrap().unwrap().news;
    assert!(matches!(next().await, News::Waiting(_)));

    // An address that is not configured is not spoken with.
    closed(&mut connect([127, 0, 0, 2], address).await).await;
    assert_eq!(feeds.reports().unknown_peers(), 1);

    // Nonsense from the router's own address ends the connection, with the reason in the status.
    let mut nonsense = connect([127, 0, 0, 1], address).await;
    nonsense.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    closed(&mut nonsense).await;
    let status = feeds.reports().status().remove(0);
    assert_eq!((status.state, status.errors), (State::Waiting, 1));
    assert!(status.problem.unwrap().contains("version 71"), "the reason");

    // A session begins; a second connection replaces it; its own end leaves the feed stale.
    let mut first = connect([127, 0, 0, 1], address).await;
    first.write_all(&INITIATION).await.unwrap();
    assert_eq!(next().await, News::Up);
    let mut second = connect([127, 0, 0, 1], address).await;
    closed(&mut first).await;
    assert!(matches!(next().await, News::Down(why) if why.contains("another connection")));
    second.write_all(&INITIATION).await.unwrap();
    assert_eq!(next().await, News::Up);
    second.write_all(&[3, 0, 0xff, 0, 0, 0]).await.unwrap();
    closed(&mut second).await;
    assert!(matches!(next().await, News::Down(why) if why.contains("longer than the 131072")));
    let status = feeds.reports().status().remove(0);
    assert_eq!((status.state, status.sessions, status.errors), (State::Stale, 2, 3));
    feeds.stop().await;
}
