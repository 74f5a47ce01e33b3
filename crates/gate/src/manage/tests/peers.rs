//! Files between peers: BitTorrent, eDonkey, Direct Connect; and what chat announces.

use super::*;
use crate::torrents::Torrent;
use flate2::{Compression, write::ZlibEncoder};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::io::Write;

fn holding() -> Settings {
    Settings { hold: true, ..Settings::default() }
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const INFO: &[u8] =
    b"d6:lengthi5e4:name9:eicar.com12:piece lengthi16384e6:pieces20:01234567890123456789e";

pub(super) fn info_hash() -> [u8; 20] {
    digest(&SHA1_FOR_LEGACY_USE_ONLY, INFO).as_ref().try_into().unwrap()
}

pub(super) fn handshake() -> Vec<u8> {
    [&b"\x13BitTorrent protocol\0\0\0\0\0\x10\0\0"[..], &info_hash(), &[b'p'; 20]].concat()
}

pub(super) fn message(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes(), body].concat()
}

fn torrents(bench: &Bench) -> Vec<Torrent> {
    let torrents = bench.events.iter().filter_map(|event| match event {
        Event::Torrent { torrent, .. } => Some((**torrent).clone()),
        _ => None,
    });
    torrents.collect()
}

#[test]
fn a_torrent_file_over_http_tells_its_names_and_hash() {
    let mut bench = Bench::new("http", &Settings::default());
    let file = [&b"d8:announce12:http://t/ann4:info"[..], INFO, b"e"].concat();
    bench.client("GET /x.torrent HTTP/1.1\r\n\r\n");
    bench.server(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", file.len()));
    bench.server(&file[..30]);
    bench.answer(FileVerdict::Allow);
    assert_eq!(bench.interests[1], Interest::All);
    bench.server(&file[30..]);
    let torrent = torrents(&bench).remove(0);
    assert_eq!((torrent.name.as_str(), torrent.hash), ("eicar.com", info_hash()));
}

#[test]
fn peers_are_named_by_their_info_hash_and_their_blocks_skipped() {
    let mut bench = Bench::new("bittorrent", &Settings::default());
    for part in handshake().chunks(11) {
        bench.client(part);
    }
    let file = bench.names().remove(0);
    assert_eq!(file.hash, Some(FileHash::InfoV1(info_hash())));
    bench.answer(FileVerdict::Allow);
    bench.server(handshake());
    bench.server(message(b""));
    bench.server(message(b"\x05\xff"));
    let block = message(&[&b"\x07\0\0\0\x01\0\0\x40\0"[..], &[9; 16384]].concat());
    bench.server(&block[..100]);
    let end = bench.next[1].wrapping_add(block.len() as u32 - 100);
    assert_eq!(bench.interests, [Interest::All, Interest::SkipTo(end)]);
    bench.next[1] = end;
    bench.server(message(b"\x01"));
    assert_eq!(bench.interests, [Interest::All; 2]);
    bench.close(Side::Client);
    bench.close(Side::Server);
    assert_eq!(bench.ends().len(), 1);
}

#[test]
fn blocks_of_a_scanned_torrent_wait_for_their_last_byte() {
    let mut bench = Bench::new("bittorrent", &holding());
    bench.client(handshake());
    bench.answer(FileVerdict::Scan);
    bench.server(handshake());
    assert_eq!(bench.held(Side::Server), Some(0));
    bench.server(&message(b"\x07\0\0\0\x03\0\0\0\0EICAR")[..14]);
    // The last byte of the block is four ahead: until then it passes.
    assert_eq!(bench.held(Side::Server), Some(0));
    bench.server(b"ICAR");
    let Some(Event::Block { part, index: 3, begin: 0, bytes, .. }) = bench.events.last() else {
        panic!("{:?}", bench.events);
    };
    assert_eq!((bytes.as_slice(), bench.held(Side::Server)), (&b"EICAR"[..], Some(1)));
    let part = *part;
    bench.manager.cleared(part, 5);
    assert_eq!(bench.held(Side::Server), Some(0));
}

#[test]
fn metadata_between_peers_is_put_together_and_checked() {
    let mut bench = Bench::new("bittorrent", &Settings::default());
    bench.client(handshake());
    bench.answer(FileVerdict::Allow);
    bench.server(handshake());
    bench.client(message(b"\x14\0d1:md11:ut_metadatai3eee"));
    let data = |text: &[u8]| {
        let dict = format!("d8:msg_typei1e5:piecei0e10:total_sizei{}ee", INFO.len());
        message(&[b"\x14\x03", dict.as_bytes(), text].concat())
    };
    let mut wrong = INFO.to_vec();
    wrong[10] ^= 1;
    bench.server(data(&wrong));
    assert!(torrents(&bench).is_empty());
    bench.server(data(INFO));
    assert_eq!(torrents(&bench)[0].files[0].path, "eicar.com");
}

#[test]
fn a_tracker_and_a_web_seed_are_http() {
    let mut bench = Bench::new("bittorrent", &Settings::default());
    bench.client("GET /seed/file.bin HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678");
    assert_eq!(bench.name_list(), ["file.bin"]);
}

#[test]
fn encrypted_peers_are_left_alone() {
    let mut bench = Bench::new("bittorrent", &holding());
    bench.client([0xa7; 96]);
    bench.server([0x5c; 200]);
    assert_eq!(bench.interests, [Interest::Nothing; 2]);
    assert_eq!(bench.held(Side::Client), None);
}

const ED2K: [u8; 16] = *b"0123456789abcdef";

fn edonkey(protocol: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    [&[protocol], &(body.len() as u32 + 1).to_le_bytes()[..], &[kind], body].concat()
}

fn part(start: u32, bytes: &[u8]) -> Vec<u8> {
    let (from, to) = (start.to_le_bytes(), (start + bytes.len() as u32).to_le_bytes());
    edonkey(0xe3, 0x46, &[&ED2K[..], &from, &to, bytes].concat())
}

#[test]
fn an_edonkey_file_is_named_and_held_at_its_last_byte() {
    let mut bench = Bench::new("edonkey", &holding());
    bench.client(edonkey(0xc5, 0xa4, &[&ED2K[..], &8_u64.to_le_bytes(), b"\x58"].concat()));
    bench.server(edonkey(0xe3, 0x59, &[&ED2K[..], b"\x09\0eicar.com"].concat()));
    let sent = part(0, b"EICARxyz");
    bench.server(&sent);
    let file = bench.names().remove(0);
    assert_eq!((file.name.as_deref(), file.size), (Some("eicar.com"), Some(8)));
    assert_eq!((file.hash, file.from), (Some(FileHash::Ed2k(ED2K)), Side::Server));
    assert_eq!(bench.held(Side::Server), Some(8));
    bench.answer(FileVerdict::Scan);
    assert_eq!((bench.content(0), bench.ends()), (b"EICARxyz".to_vec(), vec![(0, 8, true)]));
    assert_eq!(bench.held(Side::Server), Some(1));
    bench.manager.allow(TransferId(0));
    assert_eq!(bench.held(Side::Server), Some(0));
}

#[test]
fn parts_that_follow_each_other_are_one_transfer_also_when_packed() {
    let mut bench = Bench::new("edonkey", &Settings::default());
    bench.server(part(1000, b"first.  "));
    bench.answer(FileVerdict::Scan);
    bench.server(part(1008, b"second"));
    let packed = zlib(b" and packed");
    let place = [&ED2K[..], &1014_u32.to_le_bytes(), &(packed.len() as u32).to_le_bytes()].concat();
    for half in [&packed[..7], &packed[7..]] {
        bench.server(edonkey(0xc5, 0x40, &[&place[..], half].concat()));
    }
    bench.server(part(1025, b"!"));
    assert_eq!(bench.content(0), b"first.  second and packed!");
    assert_eq!(bench.names()[0].range, Some((1000, u64::MAX)));
    bench.server(part(9000, b"elsewhere"));
    assert_eq!((bench.names().len(), bench.ends()), (2, vec![(0, 26, true)]));
}

#[test]
fn packed_blocks_of_little_variety_follow_each_other() {
    let mut bench = Bench::new("edonkey", &Settings::default());
    let block = [b'x'; 180 << 10];
    let packed = zlib(&block);
    for start in [0, block.len() as u32] {
        bench.answer(FileVerdict::Scan);
        let length = (packed.len() as u32).to_le_bytes();
        let place = [&ED2K[..], &start.to_le_bytes(), &length].concat();
        bench.server(edonkey(0xc5, 0x40, &[&place[..], &packed].concat()));
    }
    assert_eq!(bench.names().len(), 1);
    assert_eq!(bench.content(0).len(), 2 * block.len());
}

#[test]
fn a_packed_bomb_is_given_up() {
    let mut bench = Bench::new("edonkey", &Settings::default());
    let packed = zlib(&vec![0; 50 << 20]);
    let place = [&ED2K[..], &0_u32.to_le_bytes(), &(packed.len() as u32).to_le_bytes()].concat();
    bench.server(edonkey(0xc5, 0x40, &[&place[..], &packed].concat()));
    bench.answer(FileVerdict::Scan);
    bench.manager.finish(&mut bench.events);
    let (_, bytes, complete) = bench.ends()[0];
    assert!(bytes <= (1 << 20) + (1 << 14) && !complete);
}

#[test]
fn nmdc_and_adc_say_what_they_send() {
    let tth = "TTH/LWPNACQDBZRYXW3VHJVCJ64QBZNGHOHHHZWCLNQ";
    let mut bench = Bench::new("directconnect", &holding());
    bench.client("$MyNick a|$Get share\\eicar.com$1|");
    bench.server("$FileLength 10|");
    bench.client("$Send|");
    bench.server("0123456789");
    bench.answer(FileVerdict::Scan);
    assert_eq!(bench.name_list(), ["eicar.com"]);
    assert_eq!((bench.content(0), bench.ends()), (b"0123456789".to_vec(), vec![(0, 10, true)]));
    assert_eq!(bench.held(Side::Server), Some(1));
    bench.manager.allow(TransferId(0));
    bench.server(format!("$ADCSND file {tth} 0 10|0123456789"));
    assert!(matches!(bench.names()[1].hash, Some(FileHash::TigerTree(_))));
    let packed = zlib(b"the content");
    bench.server("CSND file dir/a\\sb.txt 5 11 ZL1\n");
    bench.server(&packed[..5]);
    bench.server([&packed[5..], b"CSTA 000\n"].concat());
    bench.answer(FileVerdict::Scan);
    let file = bench.names().remove(2);
    assert_eq!((file.name.as_deref(), file.range), (Some("a b.txt"), Some((5, 16))));
    assert_eq!((file.coding.as_deref(), bench.content(2)), (None, b"the content".to_vec()));
    assert!(bench.held(Side::Server) > Some(0), "its end waits for the verdict");
    bench.server("CSND list files.xml.bz2 0 3\nabcCSND file x 0 8\n12345678");
    assert_eq!(bench.name_list()[3..], ["x"], "a list of files is no file");
    bench.server([b"CSND file y 0 65536\n".as_slice(), &[b'y'; 65536]].concat());
    let parts: Vec<bool> = bench.names().iter().map(|file| file.is_part()).collect();
    assert_eq!(parts, [false, false, true, false, true], "others may follow a whole leaf");
}

#[test]
fn a_file_offered_on_irc_announces_its_flow() {
    let mut bench = Bench::new("irc", &Settings::default());
    bench.client("NICK a\r\nUSER a 0 * :a\r\n");
    bench.client("PRIVMSG b :\x01DCC SEND song.mp3 167772165 40001 1234\x01\r\n");
    let expected = bench.events.iter().find_map(|event| match event {
        Event::Expect(expected) => Some(expected.clone()),
        _ => None,
    });
    let expected = expected.unwrap();
    assert_eq!(expected.server.to_string(), "10.0.0.5:40001");
    assert!(bench.events.iter().any(|event| matches!(event, Event::Chat(_))));
    let flow = Flow {
        transport: Transport::Tcp,
        client: "192.0.2.9:5000".parse().unwrap(),
        server: expected.server,
    };
    let mut data = Bench::of(Manager::expected(&expected, &flow, &Settings::default()));
    data.server("ID3.......");
    let file = data.names().remove(0);
    assert_eq!((file.name.as_deref(), file.size), (Some("song.mp3"), Some(1234)));
}

#[test]
fn a_file_taken_passively_on_irc_comes_from_who_connects() {
    let mut bench = Bench::new("irc", &Settings::default());
    bench.client("NICK b\r\nUSER b 0 * :b\r\n");
    bench.server(":a!a@h PRIVMSG b :\x01DCC SEND song.mp3 16843009 0 10 7\x01\r\n");
    let expected = |bench: &Bench| {
        bench.events.iter().find_map(|event| match event {
            Event::Expect(expected) => Some(expected.clone()),
            _ => None,
        })
    };
    assert!(expected(&bench).is_none(), "nobody waits yet");
    bench.client("PRIVMSG a :\x01DCC SEND song.mp3 167772165 40001 10 7\x01\r\n");
    let expected = expected(&bench).unwrap();
    assert_eq!(expected.server.to_string(), "10.0.0.5:40001");
    let flow = Flow {
        transport: Transport::Tcp,
        client: "192.0.2.9:5000".parse().unwrap(),
        server: expected.server,
    };
    let mut data = Bench::of(Manager::expected(&expected, &flow, &Settings::default()));
    data.client("ID3.......");
    data.server([0, 0, 0, 10]);
    data.answer(FileVerdict::Scan);
    assert_eq!(data.name_list(), ["song.mp3"]);
    assert_eq!(data.content(0), b"ID3.......");
}
