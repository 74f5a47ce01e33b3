//! Warts, byte by byte.

use super::*;

fn record(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    [&[0x12, 0x05], &kind.to_be_bytes()[..], &length.to_be_bytes(), body].concat()
}

/// Flags, the length of the parameters, the parameters.
fn parameters(flags: &[usize], parameters: &[u8]) -> Vec<u8> {
    let bytes = flags.iter().max().map_or(1, |most| most.div_ceil(7));
    let mut field = vec![0x80; bytes];
    *field.last_mut().unwrap() = 0;
    for flag in flags {
        field[(flag - 1) / 7] |= 1 << ((flag - 1) % 7);
    }
    let length = u16::try_from(parameters.len()).unwrap();
    field.extend(length.to_be_bytes());
    field.extend(parameters);
    field
}

fn address(address: [u8; 4]) -> Vec<u8> {
    [&[4, 1], &address[..]].concat()
}

/// A hop: TTL, round trip in microseconds, type and code, address.
fn hop(ttl: u8, rtt: u32, icmp: [u8; 2], address: &[u8]) -> Vec<u8> {
    let body =
        [&[ttl, 60], &rtt.to_be_bytes()[..], &icmp, &[0, 8, 0, 0, 0, 0, 0, 0, 0, 0], address];
    parameters(&[2, 3, 6, 7, 17, 18], &body.concat())
}

fn trace(hops: &[Vec<u8>]) -> Vec<u8> {
    // List, start, stop reason, source, destination, the router next to the source.
    let body = [
        &[0, 0, 0, 1][..],
        &[0; 8],
        &[1],
        &address([192, 0, 2, 7]),
        &address([203, 0, 113, 9]),
        &[0, 0, 0, 0],
        &address([192, 0, 2, 1]),
    ];
    let mut trace = parameters(&[1, 5, 6, 26, 27, 28, 30], &body.concat());
    trace.extend(u16::try_from(hops.len()).unwrap().to_be_bytes());
    trace.extend(hops.concat());
    trace.extend([0, 0]);
    record(6, &trace)
}

fn file() -> Vec<u8> {
    let hops = [
        // The address that was the third in this record.
        hop(1, 500, [11, 0], &[0, 0, 0, 0, 2]),
        hop(3, 8_500, [11, 0], &address([198, 51, 100, 1])),
        hop(4, 12_500, [3, 3], &[0, 0, 0, 0, 1]),
    ];
    [record(1, b"list"), record(7, b"a ping"), trace(&hops), record(4, &[0; 9])].concat()
}

#[test]
fn traces_of_scamper_are_read() {
    let mut importer = Importer::new();
    importer.read(&file()[..], Path::new("x.warts"), None, &mut |_| ()).unwrap();
    let (network, report) = importer.finish(&ImportOptions::default()).unwrap();
    let expected =
        [("192.0.2.1", 250), ("silent1", 2_000), ("198.51.100.1", 2_000), ("203.0.113.9", 2_000)];
    assert_eq!(hops(&network, "192.0.2.7", "203.0.113.9"), named(&expected));
    assert_eq!((report.bad_count(), report.skipped[0].examples[0].line), (0, 2));
}

#[test]
fn addresses_of_old_files_stand_in_records_of_their_own() {
    let kept = |number: u8, address: [u8; 4]| record(5, &[&[number, 1][..], &address].concat());
    let hop = parameters(&[1, 2, 6], &[0, 0, 0, 3, 1, 0, 0, 0x27, 0x10]);
    let mut old = parameters(&[3, 4], &[0, 0, 0, 1, 0, 0, 0, 2]);
    old.extend([0, 1]);
    old.extend(hop);
    let bytes = [
        kept(1, [192, 0, 2, 7]),
        kept(2, [203, 0, 113, 9]),
        kept(3, [203, 0, 113, 1]),
        record(6, &old),
    ];
    let mut importer = Importer::new();
    importer.read(&bytes.concat()[..], Path::new("x"), None, &mut |_| ()).unwrap();
    let (network, _) = importer.finish(&ImportOptions::default()).unwrap();
    assert_eq!(hops(&network, "192.0.2.7", "203.0.113.9"), named(&[("203.0.113.1", 5_000)]));
}

#[test]
fn what_is_cut_or_wrong_is_reported() {
    let whole = file();
    let read = |bytes: &[u8]| {
        let mut importer = Importer::new();
        let result = importer.read(bytes, Path::new("x"), Some(Format::Warts), &mut |_| ());
        (result.is_ok(), importer.finish(&ImportOptions::default()).unwrap().1)
    };
    for length in 0..whole.len() {
        read(&whole[..length]);
    }
    let (_, report) = read(&whole[..whole.len() - 30]);
    assert_eq!(report.bad[0].what, "the file ends inside a record");
    let mut wrong = whole.clone();
    wrong.extend(b"garbage, but long enough");
    let (taken, report) = read(&wrong);
    assert!(taken && report.bad[0].what.starts_with("this is not a record of warts"));
    // An address that was not there.
    let (taken, report) = read(&trace(&[hop(1, 500, [11, 0], &[0, 0, 0, 0, 9])]));
    assert!(!taken && report.bad[0].what == "the trace cannot be read");
}
