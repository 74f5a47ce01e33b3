//! Who does not belong is refused and counted: wrong keys and certificates, no TLS, joins without the
//! secret, recorded joins, garbage, and those who never finish. The sessions that are there go on.

use crate::common::{LIMIT, key, listen, plain, read, to, write};
use psock::{
    Config, ConnectError, Limits, ListenerCounters, PathError, PresharedKey, PsockListener,
    PsockStream, Refusal, Security, SessionError,
    core::{
        driver::DriverName,
        frame::{Block, Frame, Join, Open, Purpose, Secret, SessionId, code},
    },
};
use ring::hmac;
use socket2::{Domain, Socket, Type};
use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
    time::Duration,
};
use testbed::wait_until;

/// Waits until a counter of a listener has a value.
fn counts(listener: &PsockListener, value: u64, counter: impl Fn(&ListenerCounters) -> u64) {
    let result = wait_until("a counter", LIMIT, || counter(&listener.counters()) == value);
    result.unwrap_or_else(|_| panic!("not {value}: {:?}", listener.counters()));
}

/// Why connecting to the listener fails.
fn refused(listener: &PsockListener, config: &Config) -> ConnectError {
    match PsockStream::connect(&to(&listener.local_addresses(), config)) {
        Ok(_) => panic!("an unknown peer has a session"),
        Err(error) => error,
    }
}

/// A session of an honest end still works.
fn works(listener: &PsockListener, config: &Config) {
    let one = PsockStream::connect(&to(&listener.local_addresses(), config)).unwrap();
    let (other, _) = listener.accept().unwrap();
    write(&one, 1, 10_000).unwrap();
    one.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&other, 1).unwrap(), 10_000);
}

#[test]
fn a_wrong_key_opens_nothing() {
    let listener = listen(&key());
    let other = Config::new(Security::Key(PresharedKey::from_bytes([8; 32])));
    let error = refused(&listener, &other);
    let tls = matches!(&error, ConnectError::NoPath { source: PathError::Tls(_), .. });
    assert!(tls, "{error}");
    counts(&listener, 1, |counters| counters.refused_tls + counters.broken);
    works(&listener, &key());
}

#[test]
fn plain_and_tls_do_not_meet() {
    let listener = listen(&key());
    let config = Config { connect_timeout: Duration::from_secs(2), ..plain() };
    refused(&listener, &config);
    counts(&listener, 1, |c| c.refused_tls + c.broken + c.refused_slow);
    works(&listener, &key());
    let open = listen(&plain());
    let error = refused(&open, &key());
    assert!(matches!(error, ConnectError::NoPath { .. }), "{error}");
    counts(&open, 1, |c| c.refused_protocol + c.broken);
    works(&open, &plain());
}

/// A certificate authority with certificates for names, in files.
struct Authority {
    folder: tempfile::TempDir,
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = rcgen::CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let issuer = rcgen::CertifiedIssuer::self_signed(params, key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("authority.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    /// What an end with a certificate for `own` is configured with, which expects `peer`.
    fn security(&self, own: &str, peer: Option<&str>) -> Security {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec![own.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let file = |end: &str| self.folder.path().join(format!("{own}.{end}"));
        std::fs::write(file("pem"), certificate.pem()).unwrap();
        std::fs::write(file("key"), key.serialize_pem()).unwrap();
        private(&file("key"), 0o600);
        Security::Certificates {
            authority: self.folder.path().join("authority.pem"),
            certificate: file("pem"),
            key: file("key"),
            name: peer.map(str::to_owned),
        }
    }
}

fn private(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn certificates_of_one_authority_open_a_session() {
    let authority = Authority::new();
    let listener = listen(&Config::new(authority.security("127.0.0.1", None)));
    works(&listener, &Config::new(authority.security("client.example", None)));
    let named = authority.security("other.example", Some("127.0.0.1"));
    works(&listener, &Config::new(named));
}

#[test]
fn certificates_of_another_authority_or_name_open_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    let listener = listen(&Config::new(authority.security("127.0.0.1", Some("client.example"))));
    works(&listener, &Config::new(authority.security("client.example", None)));
    // Its own authority is another one; the listener's certificate means nothing to it.
    let error = refused(&listener, &Config::new(other.security("client.example", None)));
    assert!(matches!(&error, ConnectError::NoPath { source: PathError::Tls(_), .. }), "{error}");
    counts(&listener, 1, |counters| counters.refused_tls + counters.broken);
    // The right authority, but not whom the listener expects.
    let config = Config::new(authority.security("intruder.example", None));
    refused(&listener, &config);
    counts(&listener, 2, |counters| counters.refused_tls + counters.broken);
    // The right authority, but not whom the connecting end expects.
    let config = Config::new(authority.security("client.example", Some("server.example")));
    let error = refused(&listener, &config);
    assert!(matches!(&error, ConnectError::NoPath { source: PathError::Tls(_), .. }), "{error}");
    works(&listener, &Config::new(authority.security("client.example", None)));
}

#[test]
fn a_certificate_of_the_right_authority_is_needed_to_be_heard() {
    // The connecting end believes the listener, but shows a certificate of nobody.
    let (authority, other) = (Authority::new(), Authority::new());
    let listener = listen(&Config::new(authority.security("127.0.0.1", None)));
    let Security::Certificates { certificate, key, .. } = other.security("client.example", None)
    else {
        unreachable!()
    };
    let Security::Certificates { authority, .. } = authority.security("unused.example", None)
    else {
        unreachable!()
    };
    let security = Security::Certificates { authority, certificate, key, name: None };
    refused(&listener, &Config::new(security));
    counts(&listener, 1, |counters| counters.refused_tls);
}

#[test]
fn key_files_are_private_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    let key = PresharedKey::generate().unwrap();
    key.write(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(PresharedKey::from_file(&file).unwrap() == key);
    assert!(key.write(&file).is_err(), "a key was overwritten");
    assert_eq!(format!("{key:?}"), "PresharedKey(..)");
    for mode in [0o644, 0o604, 0o620] {
        private(&file, mode);
        let error = PresharedKey::from_file(&file).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }
    private(&file, 0o600);
    for (text, expected) in [
        ("", "0 characters"),
        ("1234", "4 characters"),
        (&"a".repeat(63), "63 characters"),
        (&"g".repeat(64), "character 1 "),
        (&"a".repeat(70_000), "more than 65536 bytes"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = PresharedKey::from_file(&file).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A connection on which a test says what it wants, plain.
struct Raw {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Raw {
    fn to(listener: &PsockListener) -> Self {
        Self::from([127, 0, 0, 1], listener)
    }

    /// From another address of this host.
    fn from(address: [u8; 4], listener: &PsockListener) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
        socket.connect(&listener.local_addresses()[0].into()).unwrap();
        let socket = TcpStream::from(socket);
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        Self { socket, buffer: Vec::new() }
    }

    fn say(&mut self, frame: &Frame<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame.emit(&mut bytes);
        // It may have been closed already; then what it answered is read.
        let _ = self.socket.write_all(&bytes);
        bytes
    }

    /// The next frame; none at the end.
    fn hear<T>(&mut self, take: impl Fn(Option<&Frame<'_>>) -> T) -> T {
        loop {
            if let Some((frame, length)) = Frame::parse(&self.buffer).unwrap() {
                let taken = take(Some(&frame));
                self.buffer.drain(..length);
                return taken;
            }
            let mut chunk = [0; 4096];
            match self.socket.read(&mut chunk) {
                Ok(0) | Err(_) => return take(None),
                Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
            }
        }
    }

    fn nonce(&mut self) -> [u8; 32] {
        self.hear(|frame| match frame {
            Some(Frame::Challenge(challenge)) => challenge.nonce,
            other => panic!("{other:?} instead of a challenge"),
        })
    }

    /// Opens a session of its own.
    fn open(&mut self) -> (SessionId, Secret) {
        self.nonce();
        let (driver, connections) = (DriverName::PollAll, 2);
        self.say(&Frame::Open(Open { driver, connections, window: 1 << 20, survive_ms: 60_000 }));
        self.hear(|frame| match frame {
            Some(Frame::Welcome(welcome)) => (welcome.session, welcome.secret),
            other => panic!("{other:?} instead of a welcome"),
        })
    }

    /// Why it was refused; none when it was not.
    fn refusal(&mut self) -> Option<u16> {
        self.hear(|frame| match frame {
            Some(Frame::Refuse(reason)) => Some(reason.code),
            Some(Frame::Joined) => None,
            other => panic!("{other:?} instead of an answer"),
        })
    }

    /// That nothing comes but the end.
    fn ends(&mut self) {
        while self.hear(|frame| frame.is_some()) {}
    }
}

/// A join with its proof.
fn join(session: SessionId, secret: Secret, nonce: &[u8; 32], connection: u32) -> Join {
    join_path(session, secret, nonce, connection, 0)
}

fn join_path(
    session: SessionId,
    secret: Secret,
    nonce: &[u8; 32],
    connection: u32,
    path: u16,
) -> Join {
    let purpose = Purpose::Data;
    let mut join = Join { session, purpose, connection, path, proof: [0; 32] };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.0);
    let proof = hmac::sign(&key, &join.signed(nonce));
    join.proof.copy_from_slice(proof.as_ref());
    join
}

#[test]
fn joining_needs_the_secret_and_cannot_be_replayed() {
    let listener = listen(&plain());
    let (session, secret) = Raw::to(&listener).open();
    // A session that is not there.
    let mut raw = Raw::to(&listener);
    let nonce = raw.nonce();
    raw.say(&Frame::Join(join(SessionId([0; 16]), secret, &nonce, 0)));
    assert_eq!(raw.refusal(), Some(code::SESSION));
    counts(&listener, 1, |counters| counters.refused_session);
    // Another secret.
    let mut raw = Raw::to(&listener);
    let nonce = raw.nonce();
    raw.say(&Frame::Join(join(session, Secret([0; 32]), &nonce, 0)));
    assert_eq!(raw.refusal(), Some(code::SESSION));
    counts(&listener, 1, |counters| counters.refused_proof);
    // The right one.
    let mut raw = Raw::to(&listener);
    let nonce = raw.nonce();
    let sent = raw.say(&Frame::Join(join(session, secret, &nonce, 0)));
    assert_eq!(raw.refusal(), None);
    counts(&listener, 1, |counters| counters.joined);
    // What was sent there, sent again elsewhere.
    let mut replay = Raw::to(&listener);
    replay.nonce();
    replay.socket.write_all(&sent).unwrap();
    assert_eq!(replay.refusal(), Some(code::SESSION));
    counts(&listener, 2, |counters| counters.refused_proof);
    // A proof for one path is none for another.
    let mut raw = Raw::to(&listener);
    let nonce = raw.nonce();
    let mut changed = join(session, secret, &nonce, 1);
    changed.path = 1;
    raw.say(&Frame::Join(changed));
    assert_eq!(raw.refusal(), Some(code::SESSION));
    counts(&listener, 3, |counters| counters.refused_proof);
}

#[test]
fn garbage_in_the_handshake_is_refused() {
    let listener = listen(&plain());
    let mut refused = 0;
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 100],
        &[0xff; 100],
        // A frame that is too long for its kind.
        &[2, 0xff, 0xff, 0xff],
        // An Open without its magic.
        &[2, 0, 0, 20, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0],
        // Bytes of a stream before there is a session.
        &[16, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 7],
    ] {
        let mut raw = Raw::to(&listener);
        raw.nonce();
        raw.socket.write_all(garbage).unwrap();
        raw.ends();
        refused += 1;
        counts(&listener, refused, |counters| counters.refused_protocol);
    }
    works(&listener, &plain());
    let listener = listen(&key());
    for (garbage, count) in [(&[0x16; 200][..], 1), (&[0; 200], 2), (b"GET / HTTP/1.1", 3)] {
        let mut raw = Raw::to(&listener);
        raw.socket.write_all(garbage).unwrap();
        counts(&listener, count, |counters| counters.refused_tls);
    }
    works(&listener, &key());
}

#[test]
fn who_speaks_otherwise_gets_the_reason_of_the_refusal() {
    let listener = listen(&plain());
    let (driver, connections) = (DriverName::PollAll, 2);
    let mut open = Vec::new();
    Frame::Open(Open { driver, connections, window: 1 << 20, survive_ms: 60_000 }).emit(&mut open);
    // Behind header and magic stand the version and the driver.
    let changed = |at: usize| {
        let mut bytes = open.clone();
        bytes[at] = 99;
        bytes
    };
    for (bytes, reason) in [
        (changed(8), code::VERSION),
        (changed(9), code::DRIVER),
        (changed(4), code::VIOLATION),
        (vec![16, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 7], code::VIOLATION),
    ] {
        let mut raw = Raw::to(&listener);
        raw.nonce();
        raw.socket.write_all(&bytes).unwrap();
        assert_eq!(raw.refusal(), Some(reason), "{bytes:?}");
    }
    counts(&listener, 4, |counters| counters.refused_protocol);
}

#[test]
fn the_numbers_of_paths_are_the_peers_but_not_how_many_are_remembered() {
    let listener = listen(&plain());
    let (session, secret) = Raw::to(&listener).open();
    let (stream, _) = listener.accept().unwrap();
    for number in 0..50 {
        let mut raw = Raw::to(&listener);
        let nonce = raw.nonce();
        let join = join_path(session, secret, &nonce, number, 1000 + number as u16);
        raw.say(&Frame::Join(join));
        assert_eq!(raw.refusal(), None, "{number}");
        drop(raw);
        let over = || {
            let counters = stream.counters();
            let deaths: u64 = counters.connections.iter().map(|one| one.failures).sum();
            deaths == u64::from(number) + 1
        };
        wait_until("the connection's end", LIMIT, over).unwrap();
    }
    // Two connections were agreed on, and each may have been replaced before its end was known.
    assert_eq!(stream.counters().connections.len(), 4);
}

#[test]
fn connections_that_join_at_once_are_no_more_than_agreed() {
    let listener = listen(&plain());
    let (session, secret) = Raw::to(&listener).open();
    let (stream, _) = listener.accept().unwrap();
    let mut all: Vec<Raw> = (0..8).map(|_| Raw::to(&listener)).collect();
    for (number, raw) in (0..).zip(&mut all) {
        let nonce = raw.nonce();
        let join = join_path(session, secret, &nonce, number, number as u16);
        raw.say(&Frame::Join(join));
    }
    let refusals = all.iter_mut().filter_map(Raw::refusal).collect::<Vec<_>>();
    assert_eq!(refusals, [code::LIMIT; 6]);
    counts(&listener, 2, |counters| counters.joined);
    let open = |stream: &PsockStream| stream.counters().connections.len();
    wait_until("both", LIMIT, || open(&stream) == 2).unwrap();
}

#[test]
fn a_path_to_somebody_else_is_no_end_of_the_session() {
    let (right, wrong) = (listen(&key()), listen(&key()));
    let addresses = [right.local_addresses()[0], wrong.local_addresses()[0]];
    let one = PsockStream::connect(&to(&addresses, &key())).unwrap();
    let (other, _) = right.accept().unwrap();
    let refused = || wrong.counters().refused_session >= 3;
    wait_until("refusals", LIMIT, refused).unwrap();
    write(&one, 1, 1_000_000).unwrap();
    one.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&other, 1).unwrap(), 1_000_000);
    other.close().unwrap();
    one.close().unwrap();
}

#[test]
fn the_path_that_gave_a_reason_is_reported_and_not_one_that_is_silent() {
    // It takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = [silent.local_addr().unwrap(), "127.0.0.1:1".parse().unwrap()];
    let after = |seconds| Config { connect_timeout: Duration::from_secs(seconds), ..key() };
    let error = PsockStream::connect(&to(&addresses, &after(8))).unwrap_err().to_string();
    assert!(error.starts_with("no path works; 127.0.0.1:1: Connection refused"), "{error}");
    let error = PsockStream::connect(&to(&addresses[..1], &after(1))).unwrap_err().to_string();
    assert!(error.ends_with(": no answer within 1 s"), "{error}");
}

#[test]
fn a_path_that_takes_connections_and_is_silent_keeps_nobody_from_the_others() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = listen(&plain());
    let addresses = [silent.local_addr().unwrap(), listener.local_addresses()[0]];
    let config = Config { connect_timeout: LIMIT, ..plain() };
    let one = PsockStream::connect(&to(&addresses, &config)).unwrap();
    assert_eq!(one.peer(), addresses[1]);
    let (other, _) = listener.accept().unwrap();
    write(&one, 4, 100_000).unwrap();
    one.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read(&other, 4).unwrap(), 100_000);
}

#[test]
fn a_congestion_control_that_is_none_is_refused_where_it_is_chosen() {
    let config = Config { congestion: Some("none-such".to_owned()), ..plain() };
    let error = PsockListener::bind(&[SocketAddr::from(([127, 0, 0, 1], 0))], &config).unwrap_err();
    assert!(error.to_string().contains("congestion control \"none-such\""), "{error}");
    let listener = listen(&plain());
    let error = refused(&listener, &config).to_string();
    assert!(error.contains("congestion control \"none-such\""), "{error}");
}

#[test]
fn garbage_on_the_control_connection_ends_the_session_with_an_error() {
    let listener = listen(&plain());
    // A kind that nobody knows, and a Goodbye with a body.
    for garbage in [[77, 0, 0, 0], [22, 0, 0, 1]] {
        let mut raw = Raw::to(&listener);
        raw.open();
        let (stream, _) = listener.accept().unwrap();
        raw.socket.write_all(&garbage).unwrap();
        let error = (&stream).read(&mut [0; 10]).unwrap_err();
        let error = error.get_ref().and_then(|e| e.downcast_ref::<SessionError>());
        assert!(matches!(error, Some(SessionError::Violation(_))), "{error:?}");
    }
}

#[test]
fn garbage_after_the_handshake_ends_the_session_with_an_error() {
    for garbage in [
        Frame::Block(Block { offset: 1 << 40, bytes: b"beyond the window" }),
        Frame::Joined,
        Frame::Finish(1 << 50),
    ] {
        let listener = listen(&plain());
        let (session, secret) = Raw::to(&listener).open();
        let (stream, _) = listener.accept().unwrap();
        let mut raw = Raw::to(&listener);
        let nonce = raw.nonce();
        raw.say(&Frame::Join(join(session, secret, &nonce, 0)));
        assert_eq!(raw.refusal(), None);
        raw.say(&garbage);
        if let Frame::Finish(_) = garbage {
            // The stream is announced to be longer than what came, then to end sooner.
            raw.say(&Frame::Finish(7));
        }
        let error = (&stream).read(&mut [0; 10]).unwrap_err();
        let error = error.get_ref().and_then(|e| e.downcast_ref::<SessionError>());
        assert!(matches!(error, Some(SessionError::Violation(_))), "{error:?}");
        raw.ends();
    }
}

#[test]
fn who_does_not_finish_the_handshake_is_given_up() {
    let limits = Limits { handshake_time: Duration::from_millis(300), ..Limits::default() };
    let listener = listen(&Config { limits, ..plain() });
    let mut slow = [Raw::to(&listener), Raw::to(&listener)];
    // One says nothing, one a part of its wish.
    let _ = slow[1].socket.write_all(&[2, 0, 0]);
    counts(&listener, 2, |counters| counters.refused_slow);
    for raw in &mut slow {
        raw.ends();
    }
}

#[test]
fn handshakes_of_one_source_are_bounded() {
    let limits = Limits { handshakes_per_source: 3, handshake_time: LIMIT, ..Limits::default() };
    let listener = listen(&Config { limits, ..plain() });
    let mut waiting: Vec<Raw> = (0..3).map(|_| Raw::to(&listener)).collect();
    for raw in &mut waiting {
        raw.nonce();
    }
    Raw::to(&listener).ends();
    counts(&listener, 1, |counters| counters.refused_handshakes);
    // Truncated: their places are free again.
    waiting[0].socket.write_all(&[2, 0, 0]).unwrap();
    drop(waiting);
    counts(&listener, 3, |counters| counters.broken);
    works(&listener, &plain());
    assert_eq!(listener.counters().opened, 1);
}

#[test]
fn handshakes_of_many_sources_keep_no_other_out() {
    let limits = Limits { handshakes: 8, handshakes_per_source: 4, ..Limits::default() };
    let limits = Limits { handshake_time: LIMIT, ..limits };
    let listener = listen(&Config { limits, ..plain() });
    let idle = |host: u8| {
        let mut raw = Raw::from([127, 0, 0, host], &listener);
        raw.nonce();
        raw
    };
    let mut two: Vec<Raw> = [2, 2, 2, 2, 3, 3, 3, 3].map(idle).into();
    works(&listener, &plain());
    // The first one has given way.
    two.remove(0).ends();
    counts(&listener, 1, |counters| counters.refused_handshakes);
    drop(two);
    counts(&listener, 7, |counters| counters.broken);
    // Who has a session gets in where all others have one place each, and a stranger does not.
    let stream = PsockStream::connect(&to(&listener.local_addresses(), &plain())).unwrap();
    let (other, _) = listener.accept().unwrap();
    let _many = [2, 3, 4, 5, 6, 7, 8, 9].map(idle);
    Raw::from([127, 0, 0, 20], &listener).ends();
    counts(&listener, 2, |counters| counters.refused_handshakes);
    works(&listener, &plain());
    drop((stream, other));
}

#[test]
fn sessions_that_come_at_once_are_no_more_than_may_wait() {
    let limits = Limits { backlog: 2, ..Limits::default() };
    let listener = listen(&Config { limits, ..plain() });
    let config = to(&listener.local_addresses(), &plain());
    let opened = std::thread::scope(|scope| {
        let connect = || PsockStream::connect(&config).ok();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(connect)).collect();
        all.into_iter().filter_map(|one| one.join().unwrap()).count()
    });
    assert_eq!(opened, 2);
    counts(&listener, 6, |counters| counters.refused_limit);
    assert_eq!(listener.counters().opened, 2);
}

#[test]
fn sessions_and_their_connections_are_bounded() {
    let limits = Limits { sessions_per_source: 1, connections: 2, ..Limits::default() };
    let listener = listen(&Config { limits, ..key() });
    let many = Config { connections_per_path: 5, ..key() };
    let one = PsockStream::connect(&to(&listener.local_addresses(), &many)).unwrap();
    let (other, _) = listener.accept().unwrap();
    wait_until("both connections", LIMIT, || other.counters().connections.len() == 2).unwrap();
    assert_eq!(one.counters().connections.len(), 2);
    let error = refused(&listener, &key());
    let expected = matches!(&error, ConnectError::Refused { reason: Refusal::Limit, .. });
    assert!(expected, "{error}");
    counts(&listener, 1, |counters| counters.refused_limit);
    write(&one, 2, 100_000).unwrap();
    one.close().unwrap();
    assert_eq!(read(&other, 2).unwrap(), 100_000);
    other.close().unwrap();
    // The place is free again when nothing of the session is left.
    let mut again = None;
    wait_until("a place", LIMIT, || {
        again = PsockStream::connect(&to(&listener.local_addresses(), &key())).ok();
        again.is_some()
    })
    .unwrap();
}
