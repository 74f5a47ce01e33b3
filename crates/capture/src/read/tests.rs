//! Captures put together by hand: both formats, cuts, damage.

use super::*;

/// A classic capture of one link, in microseconds or nanoseconds.
fn pcap(link: u32, magic: u32, frames: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = magic.to_le_bytes().to_vec();
    out.extend([2, 0, 4, 0]);
    out.extend([0; 8]);
    out.extend(262_144u32.to_le_bytes());
    out.extend(link.to_le_bytes());
    for (seconds, parts, frame) in frames {
        out.extend(seconds.to_le_bytes());
        out.extend(parts.to_le_bytes());
        out.extend((frame.len() as u32).to_le_bytes());
        out.extend((frame.len() as u32 + 7).to_le_bytes());
        out.extend(frame);
    }
    out
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = (padded as u32 + 12).to_le_bytes();
    let mut out = kind.to_le_bytes().to_vec();
    out.extend(length);
    out.extend(body);
    out.resize(8 + padded, 0);
    out.extend(length);
    out
}

fn section() -> Vec<u8> {
    block(
        0x0a0d_0d0a,
        &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
    )
}

fn interface(link: u16, options: &[u8]) -> Vec<u8> {
    let mut body = link.to_le_bytes().to_vec();
    body.extend([0, 0, 0, 0, 4, 0]);
    body.extend(options);
    block(1, &body)
}

fn enhanced(interface: u32, units: u64, frame: &[u8]) -> Vec<u8> {
    let mut body = interface.to_le_bytes().to_vec();
    body.extend(((units >> 32) as u32).to_le_bytes());
    body.extend((units as u32).to_le_bytes());
    body.extend((frame.len() as u32).to_le_bytes());
    body.extend((frame.len() as u32).to_le_bytes());
    body.extend(frame);
    block(6, &body)
}

type Seen = (u64, u32, LinkType, Vec<u8>, u32);

fn frames(capture: &[u8]) -> Result<(Vec<Seen>, End), ReadError> {
    let mut all = Vec::new();
    let end = read::<ReadError>(capture, |frame, _| {
        all.push((frame.at_ns, frame.interface, frame.link, frame.bytes.to_vec(), frame.length));
        Ok(())
    })?;
    Ok((all, end))
}

#[test]
fn both_units_of_pcap_are_read() {
    let frame = vec![1, 2, 3];
    for (magic, at_ns) in [(0xa1b2_c3d4, 5_000_007_000), (0xa1b2_3c4d, 5_000_000_007)] {
        let (all, end) = frames(&pcap(1, magic, &[(5, 7, frame.clone())])).unwrap();
        assert_eq!(all, [(at_ns, 0, LinkType::ETHERNET, frame.clone(), 10)]);
        assert_eq!(end, End::Whole);
    }
}

#[test]
fn pcap_of_the_other_byte_order_and_of_the_modified_form_is_read() {
    // Swapped word by word; frames are of one word. A record of the modified form has eight bytes more.
    let plain = pcap(1, 0xa1b2_c3d4, &[(5, 7, vec![1; 4]), (6, 8, vec![2; 4])]);
    let mut swapped = plain.clone();
    swapped.as_chunks_mut::<4>().0.iter_mut().for_each(|word| word.reverse());
    swapped[4..8].copy_from_slice(&[0, 2, 0, 4]);
    let (header, records) = plain.split_at(24);
    let mut modified = [&0xa1b2_cd34_u32.to_le_bytes(), &header[4..]].concat();
    for record in records.chunks(20) {
        modified.extend([&record[..16], &[9; 8], &record[16..]].concat());
    }
    let right = frames(&plain).unwrap();
    assert_eq!(right.0.len(), 2);
    assert_eq!(frames(&swapped).unwrap(), right);
    assert_eq!(frames(&modified).unwrap(), right);
}

#[test]
fn pcapng_has_interfaces_clocks_and_sections() {
    let mut capture = section();
    capture.extend(interface(1, &[]));
    // if_tsresol: nanoseconds; if_tsoffset: 10 seconds.
    let options = [9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    capture.extend(interface(101, &options));
    // In units of 2^-10 of a second.
    capture.extend(interface(113, &[9, 0, 1, 0, 0x8a, 0, 0, 0, 0, 0, 0, 0]));
    capture.extend(enhanced(0, 1_000_001, b"ether"));
    capture.extend(enhanced(1, 5, b"raw"));
    capture.extend(enhanced(2, 1536, b"cooked"));
    // An interface that is not there, an unknown block, a simple packet.
    capture.extend(enhanced(9, 5, b"none"));
    capture.extend(block(0x0bad, b"unknown"));
    let mut simple = 6u32.to_le_bytes().to_vec();
    simple.extend(b"simple");
    capture.extend(block(3, &simple));
    capture.extend(section());
    capture.extend(interface(276, &[]));
    capture.extend(enhanced(0, 0, b"new"));
    let (all, end) = frames(&capture).unwrap();
    let expected = [
        (1_000_001_000, 0, LinkType::ETHERNET, b"ether".to_vec(), 5),
        (10_000_000_005, 1, LinkType::RAW, b"raw".to_vec(), 3),
        (1_500_000_000, 2, LinkType::COOKED, b"cooked".to_vec(), 6),
        (0, 0, LinkType::ETHERNET, b"simple".to_vec(), 6),
        (0, 3, LinkType::COOKED2, b"new".to_vec(), 3),
    ];
    assert_eq!(all, expected);
    assert_eq!(end, End::Whole);
}

#[test]
fn packets_without_an_interface_and_what_is_no_packet_are_shown() {
    let mut packet = enhanced(0, 1, b"data");
    // A comment: its option, then the block's length again, also at the front.
    packet.truncate(packet.len() - 4);
    packet.extend(b"\x01\0\x06\0a note\0\0");
    packet.extend([0; 4]);
    packet.extend([0; 4]);
    let length = (packet.len() as u32).to_le_bytes();
    packet[4..8].copy_from_slice(&length);
    let end = packet.len() - 4;
    packet[end..].copy_from_slice(&length);
    let other = block(0x0bad, b"unknown");
    let blocks =
        [section(), enhanced(0, 0, b"x"), interface(1, &[]), packet, block(2, &[0; 20]), other];
    let (mut frames, mut lost, mut rest) = (0, 0, Vec::new());
    let capture = blocks.concat();
    read_all::<ReadError>(&capture[..], |item, _| {
        match item {
            Item::Frame(frame) => frames += usize::from(frame.bytes == b"data"),
            Item::Lost => lost += 1,
            Item::Other(bytes) => rest.push(bytes.to_vec()),
        }
        Ok(())
    })
    .unwrap();
    assert_eq!((frames, lost), (1, 2));
    assert!(rest.iter().any(|bytes| bytes.starts_with(b"a note")), "{rest:?}");
    assert_eq!(rest.last(), blocks.last());
}

#[test]
fn a_file_that_ends_within_a_packet_is_read_up_to_there() {
    let whole = pcap(1, 0xa1b2_c3d4, &[(1, 0, vec![1; 50]), (2, 0, vec![2; 50])]);
    for cut in whole.len() - 60..whole.len() {
        let (all, end) = frames(&whole[..cut]).unwrap();
        assert_eq!((all.len(), end), (1, End::Within), "{cut}");
    }
    assert!(matches!(frames(b"no capture at all, but a text"), Err(ReadError::Form)));
    assert!(matches!(frames(b""), Err(ReadError::Empty)));
}

#[test]
fn a_process_block_shorter_than_its_frame_is_damage() {
    for (kind, length) in [
        (0x8000_0001u32.to_le_bytes(), 4u32.to_le_bytes()),
        (0x8000_0001u32.to_le_bytes(), 15u32.to_le_bytes()),
        (0x8000_0001u32.to_be_bytes(), 6u32.to_be_bytes()),
    ] {
        let capture = [&section()[..], &kind, &length, &[0; 32]].concat();
        assert!(matches!(frames(&capture), Err(ReadError::Damaged(28))), "{length:?}");
    }
    let process = block(0x8000_0001, &[7, 0, 0, 0]);
    let (seen, end) = frames(&[section(), process].concat()).unwrap();
    assert_eq!((seen.len(), end), (0, End::Whole));
}

#[test]
fn a_frame_larger_than_the_buffer_is_read_and_one_too_large_is_refused() {
    let large = vec![7; 3 * BUFFER];
    let capture = pcap(1, 0xa1b2_c3d4, &[(1, 0, large.clone()), (2, 0, vec![1])]);
    let (all, _) = frames(&capture).unwrap();
    assert_eq!(all.iter().map(|frame| frame.3.len()).collect::<Vec<_>>(), [large.len(), 1]);
    let capture = pcap(1, 0xa1b2_c3d4, &[(1, 0, vec![7; LARGEST])]);
    assert!(matches!(frames(&capture), Err(ReadError::TooLarge(24))));
}
