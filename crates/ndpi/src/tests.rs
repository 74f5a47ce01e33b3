//! Packets put together by hand, shown to the library.

use super::*;

/// An IPv4 packet with a TCP header and this payload.
fn tcp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let total = (40 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    packet.extend(ports.0.to_be_bytes());
    packet.extend(ports.1.to_be_bytes());
    packet.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    packet.extend(payload);
    packet
}

fn handshake() -> Vec<u8> {
    let mut payload = b"\x13BitTorrent protocol".to_vec();
    payload.extend([0; 8 + 20 + 20]);
    payload
}

#[test]
fn what_a_flow_carries_has_the_library_s_names() {
    let mut detector = Detector::open().unwrap();
    assert!(detector.count() > 250, "{}", detector.count());
    let mut flow = Flow::new();
    let known =
        detector.packet(&mut flow, &mut tcp((50_000, 50_001), &handshake()), 1_000).unwrap();
    assert_eq!(detector.name(known.app), Some("BitTorrent"));
    // It was read in the handshake; the library remembers it before it is asked, hence the cache.
    assert_eq!((known.master, known.confidence), (None, Confidence::Cache));

    let request = b"GET /a HTTP/1.1\r\nHost: www.example.org\r\n\r\n";
    let mut flow = Flow::new();
    let known = detector.packet(&mut flow, &mut tcp((40_000, 80), request), 1_000).unwrap();
    assert_eq!(detector.name(known.app), Some("HTTP"));
    assert_eq!((known.category, known.confidence), (Category::Web, Confidence::Content));
    assert_eq!(flow.host().as_deref(), Some("www.example.org"));
}

#[test]
fn a_port_alone_is_no_protocol() {
    let mut detector = Detector::open().unwrap();
    let mut flow = Flow::new();
    let noise: Vec<u8> =
        (0..200u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let _ = detector.packet(&mut flow, &mut tcp((50_000, 6881), &noise), 1_000);
    assert_eq!(detector.give_up(&mut flow), None);
    assert_eq!(detector.give_up(&mut Flow::new()), None);
}

#[test]
fn names_of_hosts_belong_to_applications() {
    let mut detector = Detector::open().unwrap();
    let known = detector.host("rr1---sn-abc.googlevideo.com").unwrap();
    assert_eq!(detector.name(known.app), Some("YouTube"));
    assert_eq!(detector.host("www.example.org"), None);
    assert_eq!(detector.host(""), None);
}

#[test]
fn flows_outlive_their_detector_and_go_to_others_and_to_other_threads() {
    let mut flow = Flow::new();
    {
        let mut detector = Detector::open().unwrap();
        let _ = detector.packet(&mut flow, &mut tcp((50_000, 50_001), b"GET /"), 1_000);
    }
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                let mut detector = Detector::open().unwrap();
                let mut flow = Flow::new();
                for at in 0..100 {
                    flow = Flow::new();
                    let mut packet = tcp((50_000 + at, 50_001), &handshake());
                    assert!(detector.packet(&mut flow, &mut packet, 1_000).is_some());
                }
                flow
            })
        })
        .collect();
    let mut detector = Detector::open().unwrap();
    let _ = detector.packet(&mut flow, &mut tcp((50_000, 50_001), b" HTTP/1.1\r\n\r\n"), 1_001);
    for thread in threads {
        let mut flow = thread.join().unwrap();
        assert!(detector.packet(&mut flow, &mut tcp((50_000, 50_001), &[0; 5]), 1_002).is_some());
    }
}

#[test]
fn cut_and_empty_packets_are_borne() {
    let mut detector = Detector::open().unwrap();
    let whole = tcp((50_000, 50_001), &handshake());
    for length in 0..whole.len() {
        let mut flow = Flow::new();
        let _ = detector.packet(&mut flow, &mut whole[..length].to_vec(), 1_000);
        let _ = detector.give_up(&mut flow);
    }
}
