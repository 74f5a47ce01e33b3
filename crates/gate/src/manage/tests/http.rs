//! HTTP: names, bodies, what is skipped and what is held.

use super::*;

fn holding() -> Settings {
    Settings { hold: true, ..Settings::default() }
}

#[test]
fn a_body_that_nobody_scans_is_skipped_up_to_its_last_byte() {
    let mut bench = Bench::new("http", &Settings::default());
    bench.client("GET /a/big.iso?x HTTP/1.1\r\nHost: h.example\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nMZ0123456789");
    let file = bench.names().remove(0);
    assert_eq!(file.name.as_deref(), Some("big.iso"));
    assert_eq!(file.host.as_deref(), Some("h.example"));
    assert_eq!((file.size, file.kind.name, file.from), (Some(100_000), "exe", Side::Server));
    assert_eq!(bench.interests[1], Interest::All);
    bench.answer(FileVerdict::Allow);
    let last = bench.next[1].wrapping_add(100_000 - 12 - 1);
    assert_eq!(bench.interests, [bench.next[0], last].map(|next| Interest::Heads(Some(next))));
    // The kernel gives us the packet with the last byte again, and the next response.
    bench.next[1] = last;
    bench.server("z");
    assert_eq!(bench.ends(), [(0, 100_000, true)]);
    bench.client("GET /b HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678");
    assert_eq!(bench.name_list(), ["big.iso", "b"]);
    assert_eq!(bench.manager.losses(Side::Server), Losses::default());
}

/// The kernel copies only beginnings of what is sent before it got the order what to skip.
#[test]
fn heads_are_found_where_only_beginnings_were_copied() {
    let mut bench = Bench::new("http", &Settings::default());
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n";
    bench.client("GET /one HTTP/1.1\r\n\r\n");
    bench.cut(Side::Server, format!("{head}beginning"), 60_000);
    bench.answer(FileVerdict::Allow);
    bench.cut(Side::Server, "of a packet", 30_000 + head.len() as u32);
    bench.client("GET /two HTTP/1.1\r\n\r\n");
    bench.cut(Side::Server, format!("{head}beginning"), 90_000 + head.len() as u32);
    bench.answer(FileVerdict::Allow);
    assert_eq!(bench.name_list(), ["one", "two"]);
    assert_eq!(bench.ends(), [(0, 90_000, true), (1, 90_000, true)]);
    // A packet was missed with a head in it: the beginning of any may be the next.
    bench.client("GET /three HTTP/1.1\r\n\r\n");
    bench.next[1] = bench.next[1].wrapping_add(70_000);
    bench.cut(Side::Server, "in the middle", 60_000);
    bench.client("GET /four HTTP/1.1\r\n\r\n");
    assert_eq!(bench.interests[1], Interest::Heads(None));
    bench.cut(Side::Server, format!("{head}beginning"), 60_000);
    assert_eq!(bench.name_list().len(), 3);
}

/// What is hashed is read as soon as it begins: nothing of it may be skipped.
#[test]
fn what_is_hashed_is_copied_whole() {
    let mut bench = Bench::new("http", &Settings { hash: true, ..Settings::default() });
    bench.client("GET /one HTTP/1.1\r\n\r\n");
    assert_eq!(bench.interests, [Interest::All; 2]);
}

#[test]
fn more_than_sequence_numbers_can_count_is_skipped_in_steps() {
    let mut bench = Bench::new("http", &Settings::default());
    bench.client("GET /huge HTTP/1.1\r\n\r\n");
    let total = 10_000_000_000_u64;
    bench.server(format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\nbeginning"));
    bench.answer(FileVerdict::Allow);
    let mut steps = 0;
    while bench.ends().is_empty() {
        let Interest::Heads(Some(to)) = bench.interests[1] else { panic!("{:?}", bench.interests) };
        bench.next[1] = to;
        bench.server("x");
        steps += 1;
    }
    assert_eq!(bench.ends(), [(0, total, true)]);
    assert_eq!(steps, total.div_ceil(SKIP + 1));
}

/// Sequence numbers are only comparable if near: what is held must never be so far ahead that packets
/// before it look like packets behind it.
#[test]
fn a_large_body_is_not_held_by_its_far_end() {
    for decision in [FileVerdict::Allow, FileVerdict::Scan] {
        let mut bench = Bench::new("http", &holding());
        bench.client("GET /huge HTTP/1.1\r\n\r\n");
        let total = 10_000_000_000_u64;
        bench.server(format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\nbeginning"));
        bench.answer(decision);
        let mut passed = 9_u64;
        while bench.ends().is_empty() {
            // As fast as a window allows, up to the last packet.
            let step = (1 << 29).min(total - passed - 1).max(1);
            let last = passed + step >= total;
            bench.next[1] = bench.next[1].wrapping_add(step as u32 - 1);
            bench.server("x");
            passed += step;
            bench.client("");
            let from = bench.manager.hold_from(Side::Server).unwrap();
            let held = bench.next[1].wrapping_sub(from).cast_signed();
            assert_eq!(held > 0, last && decision == FileVerdict::Scan, "{passed}: {held}");
        }
        assert_eq!(passed, total);
    }
}

#[test]
fn a_body_passes_once_nothing_is_asked_of_it_and_what_is_missing_is_given_up() {
    let mut bench = Bench::new("http", &holding());
    bench.client("GET /f HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n0123456789");
    bench.answer(FileVerdict::Scan);
    bench.next[1] = bench.next[1].wrapping_add(10);
    bench.server("0123456789");
    assert_eq!((bench.held(Side::Server), bench.ends()), (Some(1), vec![]));
    bench.manager.give_up(&mut bench.events);
    assert_eq!(bench.ends(), [(0, 30, false)]);
    assert!(matches!(bench.events.last(), Some(Event::FileEnded { missed: true, .. })));
    assert_eq!(bench.held(Side::Server), Some(1), "until the verdict");
    bench.manager.allow(TransferId(0));
    assert_eq!(bench.held(Side::Server), Some(0));
    // Allowed before its end.
    bench.client("GET /g HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n0123456789");
    let transfer = bench.names()[1].transfer;
    bench.manager.answer(transfer, FileVerdict::Scan, &mut bench.events);
    bench.manager.allow(transfer);
    bench.server("01234567890123456789");
    assert_eq!(bench.held(Side::Server), Some(0));
}

#[test]
fn pipelined_responses_belong_to_their_requests() {
    let mut bench = Bench::new("http", &Settings::default());
    bench.client(
        "HEAD /head HTTP/1.1\r\n\r\nGET /one HTTP/1.1\r\n\r\nPUT /up.bin HTTP/1.1\r\n\
         Content-Length: 8\r\n\r\nuploadedGET /none HTTP/1.1\r\n\r\nGET /two HTTP/1.1\r\n\r\n",
    );
    bench.server(
        "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n\
         HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n11111111\
         HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n\
         HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n\
         HTTP/1.1 200 OK\r\ncontent-length: 8, 8\r\n\r\n22222222",
    );
    assert_eq!(bench.name_list(), ["up.bin", "one", "two"]);
    bench.answer(FileVerdict::Scan);
    assert_eq!(bench.content(0), b"uploaded");
    assert_eq!(bench.content(1), b"11111111");
    assert_eq!(bench.content(2), b"22222222");
    assert_eq!(bench.ends(), [(0, 8, true), (1, 8, true), (2, 8, true)]);
}

#[test]
fn chunks_are_put_together_wherever_segments_begin() {
    let body =
        "7;name=value\r\nchunked\r\n1\r\n \r\n00c\r\ncontent\r\nand\r\n0\r\nTrailer: x\r\n\r\n";
    let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n{body}");
    for step in 1..text.len() {
        let mut bench = Bench::new("http", &Settings::default());
        bench.client("GET /c HTTP/1.1\r\n\r\n");
        for part in text.as_bytes().chunks(step) {
            bench.server(part);
            bench.answer(FileVerdict::Scan);
        }
        assert_eq!(bench.content(0), b"chunked content\r\nand", "in steps of {step}");
        assert_eq!(bench.ends(), [(0, 20, true)]);
        bench.client("GET /d HTTP/1.1\r\n\r\n");
        bench.server("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678");
        assert_eq!(bench.name_list(), ["c", "d"]);
    }
}

#[test]
fn a_body_without_length_ends_with_the_connection() {
    let mut bench = Bench::new("http", &Settings::default());
    bench.client("GET /old HTTP/1.0\r\n\r\n");
    bench.server("HTTP/1.0 200 OK\n\nthe content");
    bench.answer(FileVerdict::Scan);
    bench.server(" and more");
    bench.close(Side::Server);
    assert_eq!(bench.content(0), b"the content and more");
    assert_eq!(bench.ends(), [(0, 20, true)]);
}

#[test]
fn a_connection_that_breaks_leaves_an_incomplete_file() {
    let mut bench = Bench::new("http", &Settings::default());
    bench.client("GET /x HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    bench.answer(FileVerdict::Scan);
    bench.close(Side::Server);
    assert_eq!(bench.ends(), [(0, 9, false)]);
}

#[test]
fn a_range_says_which_part_of_which_size() {
    let mut bench = Bench::new("http", &Settings::default());
    bench.client("GET /r HTTP/1.1\r\nRange: bytes=100-149\r\n\r\n");
    bench.server(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 100-149/5000\r\n\
         Content-Disposition: attachment; filename=\"real name.zip\"\r\nContent-Encoding: gzip\r\n\
         Content-Length: 50\r\nContent-Type: application/zip\r\n\r\nPK\x03\x04....",
    );
    let file = bench.names().remove(0);
    assert_eq!((file.size, file.range), (Some(5000), Some((100, 150))));
    assert_eq!(file.name.as_deref(), Some("real name.zip"));
    assert_eq!(file.coding.as_deref(), Some("gzip"));
    assert_eq!((file.media.as_deref(), file.kind.name), (Some("application/zip"), "zip"));
}

#[test]
fn an_uploaded_form_is_named_after_its_file() {
    let mut bench = Bench::new("http", &Settings::default());
    let form = "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"my.doc\"\r\n\r\ndata\r\n--b--";
    bench.client(format!(
        "POST /send HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n\
         Content-Length: {}\r\n\r\n",
        form.len()
    ));
    bench.client(&form[..20]);
    bench.client(&form[20..]);
    assert_eq!(bench.name_list(), ["my.doc"]);
    bench.answer(FileVerdict::Scan);
    assert_eq!(bench.content(0), form.as_bytes());
    assert_eq!(bench.ends(), [(0, form.len() as u64, true)]);
}

#[test]
fn after_connect_and_upgrade_nothing_is_read_but_http() {
    let websocket = ["Upgrade: websocket", "101 Switching\r\nUpgrade: websocket"];
    for (request, response, first) in [
        ("CONNECT h:443 HTTP/1.1", "200 OK", "\x16\x03\x01"),
        ("CONNECT h:22 HTTP/1.1", "200 OK", "SSH-2.0-OpenSSH_9.2p1\r\n"),
        (&format!("GET /ws HTTP/1.1\r\n{}", websocket[0]), websocket[1], ""),
    ] {
        let mut bench = Bench::new("http", &holding());
        bench.client(format!("{request}\r\n\r\n"));
        bench.server(format!("HTTP/1.1 {response}\r\n\r\n"));
        bench.client(first);
        assert_eq!(bench.interests, [Interest::Nothing; 2], "{request}");
        assert_eq!((bench.held(Side::Client), bench.held(Side::Server)), (None, None));
        assert!(!bench.events.iter().any(|event| matches!(event, Event::Unread)));
    }
    let mut bench = Bench::new("http", &holding());
    bench.client("CONNECT h:80 HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\n\r\n");
    bench.client("GET /within HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678");
    assert_eq!(bench.name_list(), ["within"]);
}

#[test]
fn gnutella_tells_the_hash_and_a_push_turns_the_sides() {
    let mut bench = Bench::new("gnutella", &Settings::default());
    bench.client("GIV 5:0123456789ABCDEF0123456789ABCDEF/song.mp3\n\n");
    bench.server("GET /uri-res/N2R?urn:sha1:AAAQEAYEAUDAOCAJBIFQYDIOB4IBCEQT HTTP/1.1\r\n\r\n");
    bench.client("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nID3.......");
    let file = bench.names().remove(0);
    assert_eq!(file.from, Side::Client);
    let hash = std::array::from_fn(|at| at as u8);
    assert_eq!(file.hash, Some(FileHash::Sha1(hash)));
    assert_eq!(file.kind.name, "mp3");
}

#[test]
fn a_scanned_file_passes_but_for_its_last_packet() {
    let mut bench = Bench::new("http", &holding());
    bench.client("GET /f HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n0123456789");
    assert_eq!(bench.held(Side::Server), Some(10), "nothing of it passes before the answer");
    bench.answer(FileVerdict::Scan);
    // The last byte is 20 bytes ahead: what came passes.
    assert_eq!(bench.held(Side::Server), Some(19_u32.wrapping_neg()));
    bench.server("0123456789");
    bench.server("0123456789");
    assert_eq!(bench.held(Side::Server), Some(1));
    assert_eq!(bench.ends(), [(0, 30, true)]);
    // The next response is held as well until the verdict on this one.
    bench.client("GET /g HTTP/1.1\r\n\r\n");
    assert_eq!(bench.held(Side::Server), Some(1));
    bench.manager.allow(TransferId(0));
    assert_eq!(bench.held(Side::Server), Some(0));
}

#[test]
fn chunked_content_is_held_by_its_last_byte_so_far() {
    let mut bench = Bench::new("http", &holding());
    bench.client("GET /f HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(bench.held(Side::Server), Some(0), "the head passes when it is read");
    bench.server("a\r\n0123456789\r\n");
    bench.answer(FileVerdict::Scan);
    assert_eq!(bench.held(Side::Server), Some(3));
    bench.server("a\r\n0123456789\r\n");
    assert_eq!(bench.held(Side::Server), Some(3));
    // A pause: a verdict on what came lets it pass.
    bench.manager.pause(&mut bench.events);
    assert!(matches!(bench.events.last(), Some(Event::Paused { bytes: 20, .. })));
    bench.manager.cleared(TransferId(0), 20);
    assert_eq!(bench.held(Side::Server), Some(0));
    let asked = bench.events.len();
    bench.manager.pause(&mut bench.events);
    assert_eq!(bench.events.len(), asked, "once for the same bytes");
    bench.server("5\r\nabcde\r\n");
    // The end in a packet of its own does not let the last content pass.
    bench.server("0\r\n\r\n");
    assert_eq!(bench.ends(), [(0, 25, true)]);
    assert_eq!(bench.held(Side::Server), Some(8));
    bench.manager.cleared(TransferId(0), 20);
    assert_eq!(bench.held(Side::Server), Some(8), "that was the verdict on a part");
    bench.manager.allow(TransferId(0));
    assert_eq!(bench.held(Side::Server), Some(0));
}

#[test]
fn a_denied_file_never_passes() {
    let mut bench = Bench::new("http", &holding());
    bench.client("GET /evil.exe HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nMZ345678");
    bench.answer(FileVerdict::Deny);
    bench.server("901234567890");
    assert_eq!(bench.held(Side::Server), Some(20));
}

#[test]
fn a_file_allowed_while_heads_are_held_passes_by_itself() {
    let mut bench = Bench::new("http", &holding());
    bench.client("GET /f HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0123456789");
    bench.answer(FileVerdict::Allow);
    // Packets up to its last byte pass, those that reach beyond it may have the next head.
    let end = bench.next[1].wrapping_add(990);
    assert_eq!(bench.manager.hold_from(Side::Server), Some(end));
    assert_eq!(bench.interests[1], Interest::SkipTo(end.wrapping_sub(1)));
}

#[test]
fn hashes_are_made_of_whole_files_only() {
    let settings = Settings { hash: true, ..Settings::default() };
    let mut bench = Bench::new("http", &settings);
    bench.client("GET /abc HTTP/1.1\r\n\r\nGET /abc HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc");
    bench.answer(FileVerdict::Allow);
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n1234567890");
    bench.answer(FileVerdict::Allow);
    assert_eq!(bench.interests[1], Interest::All);
    bench.next[1] = bench.next[1].wrapping_add(10);
    bench.server("0123456789");
    bench.client(""); // acknowledges
    let hashes = bench.events.iter().filter_map(|event| match event {
        Event::FileEnded { sha256, bytes, .. } => {
            Some((*bytes, sha256.map(|hash| hash[..4].to_vec())))
        }
        _ => None,
    });
    let hashes: Vec<_> = hashes.collect();
    // FIPS 180-4's example.
    assert_eq!(hashes, [(3, Some(vec![0xba, 0x78, 0x16, 0xbf])), (30, None)]);
}

#[test]
fn a_head_that_was_not_seen_costs_one_response() {
    let mut bench = Bench::new("http", &Settings::default());
    bench.client("GET /a HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nConte");
    bench.next[1] = bench.next[1].wrapping_add(20);
    bench.server(": 5\r\n\r\n12345");
    bench.client("GET /b HTTP/1.1\r\n\r\n");
    bench.server("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678");
    assert_eq!(bench.names().len(), 1);
}
