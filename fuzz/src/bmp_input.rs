//! Any bytes from a router over BMP, cut anywhere, after a session has begun and a peer is up.
//!
//! The first byte chooses the size of the pieces, what is done with routes from inside the AS and how
//! the session begins; a byte of 0xfe where a message should begin is a new connection.

use bgp::bmp::{Internal, Rib, RouteChange, Session, Settings, Status};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Initiation with nothing in it.
const INITIATION: [u8; 6] = [3, 0, 0, 0, 6, 4];

/// An OPEN of AS 64500 with IPv4 and IPv6, ADD-PATH in both directions for both, four octets.
const OPEN: [u8; 59] = [
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 59, 1, 4,
    0xfb, 0xf4, 0, 180, 192, 0, 2, 1, 30, 2, 28, 1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1, 65, 4, 0, 0,
    0xfb, 0xf4, 69, 8, 0, 1, 1, 3, 0, 2, 1, 3,
];

/// Peer Up of 198.51.100.1, AS 64501, in the Adj-RIB-In before policy.
fn peer_up() -> Vec<u8> {
    let mut bytes = vec![3, 0, 0, 0, 0, 3];
    bytes.extend([0; 22]);
    bytes.extend([198, 51, 100, 1, 0, 0, 0xfb, 0xf5, 192, 0, 2, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([0; 20]);
    bytes.extend(OPEN);
    bytes.extend(OPEN);
    bytes[4] = bytes.len() as u8;
    bytes
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    let internal = if first & 1 == 0 { Internal::Ignore } else { Internal::NextHop };
    let settings = Settings { message: 8192, peers: 4, internal };
    let size = if first & 2 == 0 { usize::MAX } else { 7 };
    let mut now = Instant::now();
    let mut rib = Rib::new(32);
    let mut session = begin(settings, first, &mut rib, now);
    let mut view = BTreeMap::new();
    for piece in rest.chunks(size.min(rest.len()).max(1)) {
        if piece[0] == 0xfe && !session.in_message() {
            session = begin(settings, first, &mut rib, now);
        }
        now += Duration::from_secs(1);
        let open = session.receive(piece, &mut rib, now) == Ok(Status::Open);
        take(&mut rib, &mut view);
        let size = rib.size();
        assert!(size.routes <= 32 && size.stale <= 32 && session.peers() <= 4);
        assert!(size.prefixes <= size.routes + size.stale);
        if !open {
            session = begin(settings, first, &mut rib, now);
        }
    }
    // When all is reported again, nothing is left of what was there before.
    rib.begin(now);
    rib.settle(std::iter::empty(), now + Duration::from_secs(3600));
    take(&mut rib, &mut view);
    assert_eq!((rib.size(), view.len()), (Default::default(), 0));
}

fn begin(settings: Settings, first: u8, rib: &mut Rib, now: Instant) -> Session {
    let mut session = Session::new(settings);
    if first & 4 == 0 {
        session.receive(&INITIATION, rib, now).expect("a session begins");
        session.receive(&peer_up(), rib, now).expect("a peer comes up");
    }
    session
}

/// Takes the changes as someone does who knows nothing else: each must say something new.
fn take(rib: &mut Rib, view: &mut BTreeMap<String, bgp::bmp::Path>) {
    for RouteChange { prefix, exit, path } in rib.take_changes() {
        let key = format!("{prefix} {exit:?}");
        match path {
            Some(path) => assert_ne!(view.insert(key, path), Some(path)),
            None => assert!(view.remove(&key).is_some()),
        }
    }
}
