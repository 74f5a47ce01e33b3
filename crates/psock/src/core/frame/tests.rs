//! Every frame as it is written, read back; cut anywhere it waits for more; what is wrong is refused
//! where it is wrong.

use super::*;
use proptest::prelude::*;

fn written(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.emit(&mut bytes);
    bytes
}

fn refused(bytes: &[u8]) -> FrameError {
    Frame::parse(bytes).expect_err("a refusal")
}

fn all() -> Vec<Frame<'static>> {
    let join = Join {
        session: SessionId([3; 16]),
        purpose: Purpose::Data,
        connection: 7,
        path: 2,
        proof: [4; 32],
    };
    let addresses = ["192.0.2.1:7000", "[2001:db8::1]:7000"];
    vec![
        Frame::Challenge(Challenge { lowest: 1, highest: 3, nonce: [1; 32] }),
        Frame::Open(Open {
            driver: DriverName::Adaptive,
            connections: 4,
            window: 1 << 25,
            survive_ms: 60_000,
        }),
        Frame::Welcome(Welcome {
            session: SessionId([3; 16]),
            secret: Secret([9; 32]),
            driver: DriverName::PollAll,
            connections: 4,
            window: 1 << 20,
            survive_ms: 60_000,
        }),
        Frame::Join(join),
        Frame::Join(Join { purpose: Purpose::Control, ..join }),
        Frame::Joined,
        Frame::Refuse(Reason { code: code::SESSION, text: "no such session" }),
        Frame::Block(Block { offset: MAX_OFFSET, bytes: b"bytes" }),
        Frame::Acknowledge(Acknowledge { in_order: 1, limit: 2, received: 3, ended: true }),
        Frame::Finish(12),
        Frame::Reset(Reason { code: 4_711, text: "" }),
        Frame::Ping(u64::MAX),
        Frame::Pong(0),
        Frame::Goodbye,
        Frame::Addresses(addresses.iter().map(|a| a.parse().expect("an address")).collect()),
        Frame::Skipped(0xff),
    ]
}

#[test]
fn frames_are_read_back_and_every_shorter_piece_waits() {
    for frame in all() {
        let bytes = written(&frame);
        assert_eq!(Frame::parse(&bytes), Ok(Some((frame.clone(), bytes.len()))));
        for cut in 0..bytes.len() {
            assert_eq!(Frame::parse(&bytes[..cut]), Ok(None), "{frame:?} up to {cut}");
        }
    }
}

#[test]
fn the_header_of_a_block_is_that_of_its_frame() {
    let bytes = vec![5; 16_372];
    let frame = written(&Frame::Block(Block { offset: 99, bytes: &bytes }));
    assert_eq!(frame.len(), 16_384);
    assert_eq!(frame[..BLOCK_HEADER_LEN], block_header(99, bytes.len()));
}

#[test]
fn a_body_that_is_too_long_is_refused_before_it_comes() {
    let length =
        |kind, length| FrameError { offset: 1, fault: FrameFault::Length { kind, length } };
    assert_eq!(refused(&[16, 1, 0, 9]), length(16, 65_545));
    assert_eq!(refused(&[16, 0, 0, 8]), length(16, 8));
    assert_eq!(refused(&[17, 0, 0, 24]), length(17, 24));
    assert_eq!(refused(&[6, 0, 1, 2]), length(6, 258));
    assert_eq!(refused(&[0x90, 0xff, 0xff, 0xff]), length(0x90, 0xff_ffff));
}

#[test]
fn kinds_of_later_versions_are_skipped_or_refused() {
    assert_eq!(Frame::parse(&[0x90, 0, 0, 2, 1, 2, 3]), Ok(Some((Frame::Skipped(0x90), 6))));
    assert_eq!(refused(&[0x7f, 0, 0, 0]), FrameError { offset: 0, fault: FrameFault::Kind(0x7f) });
    assert_eq!(refused(&[0, 0, 0, 0]), FrameError { offset: 0, fault: FrameFault::Kind(0) });
}

#[test]
fn what_is_wrong_is_refused_where_it_is_wrong() {
    let open = written(&all()[1]);
    let changed = |at: usize, byte: u8| {
        let mut bytes = open.clone();
        bytes[at] = byte;
        refused(&bytes)
    };
    assert_eq!(changed(4, 0), FrameError { offset: 4, fault: FrameFault::Magic });
    assert_eq!(changed(8, 2), FrameError { offset: 8, fault: FrameFault::Version(2) });
    assert_eq!(changed(9, 3), FrameError { offset: 9, fault: FrameFault::Driver(3) });
    let beyond = FrameFault::Offset(0xff << 56 | 1 << 25);
    assert_eq!(changed(12, 0xff), FrameError { offset: 12, fault: beyond });

    let mut join = written(&all()[3]);
    join[25] = 2;
    assert_eq!(refused(&join), FrameError { offset: 25, fault: FrameFault::Purpose(2) });
    let mut ack = written(&all()[8]);
    ack[28] = 0x81;
    assert_eq!(refused(&ack), FrameError { offset: 28, fault: FrameFault::Flags(0x81) });
    let text = [6, 0, 0, 5, 0, 1, b'a', 0xff, b'b'];
    assert_eq!(refused(&text), FrameError { offset: 7, fault: FrameFault::Text });
    let family = [0x80, 0, 0, 7, 5, 1, 2, 3, 4, 5, 6];
    assert_eq!(refused(&family), FrameError { offset: 4, fault: FrameFault::Family(5) });
    let mut many = vec![0x80, 0, 1, 0xc7];
    many.extend([4, 192, 0, 2, 1, 0, 80].repeat(65));
    let fault = FrameFault::Length { kind: 0x80, length: 455 };
    assert_eq!(refused(&many), FrameError { offset: 452, fault });
}

#[test]
fn what_is_too_long_to_be_said_is_cut() {
    let long = "ü".repeat(200);
    let bytes = written(&Frame::Reset(Reason { code: 1, text: &long }));
    let parsed = Frame::parse(&bytes);
    assert_eq!(parsed, Ok(Some((Frame::Reset(Reason { code: 1, text: &long[..254] }), 260))));
    let bytes = written(&Frame::Addresses(vec!["[::1]:1".parse().expect("an address"); 100]));
    assert_eq!(bytes.len(), HEADER_LEN + MAX_ADDRESSES * 19);
}

#[test]
fn a_proof_covers_everything_that_a_join_says() {
    let Frame::Join(join) = all()[3] else { panic!("a join") };
    let signed = join.signed(&[1; 32]);
    let others = [
        Join { session: SessionId([0; 16]), ..join }.signed(&[1; 32]),
        Join { purpose: Purpose::Control, ..join }.signed(&[1; 32]),
        Join { connection: 8, ..join }.signed(&[1; 32]),
        Join { path: 3, ..join }.signed(&[1; 32]),
        join.signed(&[2; 32]),
    ];
    assert!(others.iter().all(|other| *other != signed && other.len() == signed.len()));
    assert_eq!(Join { proof: [0; 32], ..join }.signed(&[1; 32]), signed);
}

proptest! {
    #[test]
    fn any_bytes_are_a_frame_that_is_written_the_same_or_refused(
        kind in prop_oneof![0u8..24, 0x7f..0x82u8],
        body in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut bytes = vec![kind, 0, 0, body.len() as u8];
        bytes.extend(body);
        if let Ok(Some((frame, length))) = Frame::parse(&bytes) {
            prop_assert_eq!(length, bytes.len());
            if !matches!(frame, Frame::Skipped(_)) {
                prop_assert_eq!(written(&frame), bytes);
            }
        }
    }
}

/// The page that has the wire format.
const MANUAL: &str = include_str!("../../../../../docs/psock.md");

/// The octets of a body by its description, `magic (4), versions (1, 1)`; none if they vary.
fn octets(body: &str) -> Option<usize> {
    let groups = body.split('(').skip(1).filter_map(|rest| rest.split(')').next());
    // `1: 0 control, 1 data` is one octet with two values.
    let sizes = groups.flat_map(|group| group.split(':').next().unwrap_or_default().split(','));
    sizes.map(|size| size.trim().parse::<usize>().ok()).sum()
}

#[test]
fn the_manual_has_every_frame_with_its_octets() {
    let (_, table) =
        MANUAL.split_once("| kind | name | body (octets) |\n|---|---|---|\n").expect("a table");
    let mut listed = Vec::new();
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, kinds, names, body, _] = cells[..] else { panic!("{row}") };
        for (kind, name) in kinds.split(", ").zip(names.split(", ")) {
            listed.push((kind.parse::<u8>().expect("a number"), name.to_owned(), octets(body)));
        }
    }
    let mut frames: Vec<(u8, String, usize)> = Vec::new();
    for frame in all().iter().filter(|frame| !matches!(frame, Frame::Skipped(_))) {
        let bytes = written(frame);
        let name = format!("{frame:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
        frames.push((bytes[0], name, bytes.len() - HEADER_LEN));
    }
    frames.dedup();
    assert_eq!(listed.len(), frames.len());
    for ((kind, name, octets), (number, frame, length)) in listed.into_iter().zip(frames) {
        assert_eq!((kind, &name), (number, &frame));
        assert!(octets.is_none_or(|octets| octets == length), "{name}: {octets:?}, {length}");
    }
}

#[test]
fn the_manual_has_every_driver_and_every_code() {
    let drivers = DriverName::ALL.map(|driver| format!("{} {driver}", driver.code()));
    assert!(MANUAL.contains(&format!("Drivers are {}.", drivers.join(", "))), "{drivers:?}");
    let (_, codes) = MANUAL.split_once("Codes are ").expect("the codes");
    let codes = codes.split("; others").next().unwrap_or_default().split(", ");
    let listed: Vec<&str> = codes.filter(|part| part.starts_with(char::is_numeric)).collect();
    let expected = [
        (code::VERSION, "version"),
        (code::DRIVER, "driver"),
        (code::SESSION, "session"),
        (code::LIMIT, "limit"),
        (code::STOPPING, "stopping"),
        (code::VIOLATION, "violation"),
        (code::ABORTED, "aborted"),
        (code::PATHS, "paths"),
    ];
    assert_eq!(listed.len(), expected.len(), "{listed:?}");
    for (listed, (code, name)) in listed.iter().zip(expected) {
        assert!(listed.starts_with(&format!("{code} {name}")), "{listed}: {code} {name}");
    }
}
