//! Streams over loopback: what is written is what is read, whichever way it is asked for.

use psock::{
    AsyncPsockListener, AsyncPsockStream, Config, PresharedKey, PsockListener, PsockStream,
    Security,
};
use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr},
    thread,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Both ends' choices, with one key.
fn key() -> Config {
    Config::new(Security::Key(PresharedKey::from_bytes([7; 32])))
}

fn any() -> [SocketAddr; 1] {
    ["127.0.0.1:0".parse().unwrap()]
}

/// The configuration of an end that connects to `listener`.
fn to(addresses: &[SocketAddr], config: &Config) -> Config {
    Config { paths: addresses.iter().map(|&address| address.into()).collect(), ..config.clone() }
}

#[test]
fn a_blocking_echo_returns_every_byte() {
    let listener = PsockListener::bind(&any(), &key()).unwrap();
    let config = to(&listener.local_addresses(), &key());
    let echo = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        std::io::copy(&mut &stream, &mut &stream).unwrap();
        stream.close().unwrap();
    });
    let stream = PsockStream::connect(&config).unwrap();
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n * 7 / 3) as u8).collect();
    let mut back = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            (&stream).write_all(&bytes).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        (&stream).read_to_end(&mut back).unwrap();
    });
    assert!(back == bytes, "{} of {} bytes came back", back.len(), bytes.len());
    stream.close().unwrap();
    echo.join().unwrap();
}

#[tokio::test]
async fn an_echo_in_tokio_returns_every_byte() {
    let listener = AsyncPsockListener::bind(&any(), &key()).await.unwrap();
    let config = to(&listener.local_addresses(), &key());
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        stream.close().await.unwrap();
    });
    let mut stream = AsyncPsockStream::connect(&config).await.unwrap();
    stream.write_all(b"there and back again").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).await.unwrap();
    assert_eq!(back, b"there and back again");
    echo.await.unwrap();
}
