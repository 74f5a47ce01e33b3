//! `bpf/include/parse.h` and crate `wire` read the same frames by the same rules.
//!
//! Every frame of a capture goes through the responder and through `testbed::classify`: as it was
//! captured, with one and with two VLAN tags, cut short at every length, and with each byte of its
//! headers changed. Verdicts must agree for each, drops by reason in sum.

use std::{collections::HashMap, net::IpAddr, path::Path};

use datapath::echo::{DropReason, EchoProgram, Limit, Settings, Verdict};
use testbed::classify::{Class, Reason, classify};

/// The frames of a capture in pcap's classic form, little-endian, microseconds, Ethernet.
fn capture(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/echo").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(bytes[..4], [0xd4, 0xc3, 0xb2, 0xa1], "{name} is no capture");
    assert_eq!(bytes[20], 1, "{name} is not of Ethernet frames");
    let (mut frames, mut rest) = (Vec::new(), &bytes[24..]);
    while let Some((header, data)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize;
        frames.push(data[..length].to_vec());
        rest = &data[length..];
    }
    frames
}

fn tagged(frame: &[u8], tags: &[[u8; 4]]) -> Vec<u8> {
    [&frame[..12], &tags.concat(), &frame[12..]].concat()
}

fn reason(reason: Reason) -> DropReason {
    match reason {
        Reason::BadLength => DropReason::BadLength,
        Reason::BadCode => DropReason::BadCode,
        Reason::NotUnicast => DropReason::NotUnicast,
        Reason::BogonSource => DropReason::BogonSource,
        Reason::BadChecksumIp => DropReason::BadChecksumIp,
        Reason::BadChecksumIcmp => DropReason::BadChecksumIcmp,
    }
}

#[test]
fn program_and_wire_agree_on_a_capture() {
    testbed::need_root();
    let addresses: Vec<IpAddr> = ["192.0.2.2", "2001:db8::2"].map(|a| a.parse().unwrap()).into();
    let mut settings = Settings { addresses: addresses.clone(), ..Settings::default() };
    settings.source.limit = Limit::NONE;
    let program = EchoProgram::load().unwrap();
    program.configure(&settings).unwrap();

    let mut expected: HashMap<DropReason, u64> = HashMap::new();
    let mut seen: HashMap<Class, u64> = HashMap::new();
    let mut check = |frame: &[u8]| {
        let class = classify(frame, |address| addresses.contains(&address));
        *seen.entry(class).or_default() += 1;
        let right = match class {
            Class::Other | Class::Kernel => Verdict::Pass,
            Class::Request => Verdict::Tx,
            Class::Refused(why) => {
                *expected.entry(reason(why)).or_default() += 1;
                Verdict::Drop
            }
        };
        let (verdict, _) = program.run(None, frame).unwrap();
        assert_eq!(verdict, right, "{class:?}: {frame:02x?}");
    };

    let frames = capture("link.pcap");
    assert!(frames.len() > 50);
    for frame in &frames {
        let outer = [0x88, 0xa8, 0x20, 0x64];
        let inner = [0x81, 0x00, 0x00, 0x07];
        for tags in [&[][..], &[inner], &[outer, inner], &[inner, inner, inner]] {
            let frame = tagged(frame, tags);
            check(&frame);
            // The kernel runs programs on whole Ethernet headers only.
            for length in 14..frame.len().min(110) {
                check(&frame[..length]);
            }
            // 0x20 and 0xdf make sources of 192.0.2.0/24 and 2001:db8::/32 multicast.
            for at in 0..frame.len().min(90) {
                for flip in [0x01, 0x80, 0x20, 0xdf] {
                    let mut changed = frame.clone();
                    changed[at] ^= flip;
                    check(&changed);
                }
            }
        }
    }

    let ledger = program.ledger().unwrap();
    for reason in DropReason::ALL {
        let counted: u64 = ledger.rows.iter().map(|row| row.counters.dropped(reason)).sum();
        let right = expected.get(&reason).copied().unwrap_or(0);
        assert_eq!(counted, right, "{reason:?}");
    }
    // All that can be distinguished was there.
    for class in [Class::Other, Class::Kernel, Class::Request] {
        assert!(seen[&class] > 100, "{seen:?}");
    }
    for reason in [
        Reason::BadLength,
        Reason::BadCode,
        Reason::NotUnicast,
        Reason::BogonSource,
        Reason::BadChecksumIp,
        Reason::BadChecksumIcmp,
    ] {
        assert!(seen.contains_key(&Class::Refused(reason)), "{reason:?} is in no frame: {seen:?}");
    }
}
