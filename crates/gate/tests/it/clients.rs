//! Odd HTTP responses: what clients take for the body, and what the gate reads.
//!
//! The table says what curl 7.88, wget 1.21, Python 3.11 (`http.client`), Chromium and Firefox take. The
//! first three are asked here, too; the other two are read from their sources: Chromium's net/http
//! (`http_stream_parser.cc`, `http_response_headers.cc`, `http_util.cc`, `http_chunked_decoder.cc`) and
//! Firefox's netwerk/protocol/http (`nsHttpTransaction.cpp`, `nsHttpResponseHead.cpp`,
//! `nsHttpHeaderArray.cpp`, `nsHttpChunkedDecoder.cpp`).

use classify::{
    flow::{Flow, Side, Transport},
    packet::{Packet, Tcp},
};
use gate::{
    event::{Event, FileVerdict, Settings},
    manage::Manager,
};
use splitmix::Random;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    process::Command,
};

/// The content.
const BODY: &str = "0123456789";
/// The same and two bytes more.
const MORE: &str = "0123456789zz";
/// The content as a chunk.
const CHUNK: &str = "a\r\n0123456789\r\n0\r\n\r\n";
/// Nothing, or an error.
const NONE: &str = "";

/// An odd response.
struct Case {
    what: &'static str,
    response: String,
    /// What curl, wget, Python, Chromium and Firefox take, as far as it came.
    taken: [String; 5],
    /// What the gate scans; nothing where it says that it could not.
    scanned: Option<String>,
}

fn case<const N: usize>(
    what: &'static str,
    response: impl Into<String>,
    taken: [&str; N],
    scanned: Option<&str>,
) -> Case {
    let taken = std::array::from_fn(|at| taken[at % N].to_owned());
    Case { what, response: response.into(), taken, scanned: scanned.map(str::to_owned) }
}

/// A response whose status line is this.
fn first(line: &str) -> String {
    format!("{line}\r\nTransfer-Encoding: chunked\r\n\r\n{CHUNK}")
}

/// With these fields, and this behind them.
fn ok(fields: &str, rest: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{rest}")
}

fn length(value: &str) -> String {
    ok(&format!("Content-Length:{value}"), MORE)
}

fn coding(value: &str) -> String {
    ok(&format!("Transfer-Encoding:{value}"), CHUNK)
}

fn chunks(chunks: &str) -> String {
    ok("Transfer-Encoding: chunked", chunks)
}

fn status_lines() -> Vec<Case> {
    let plain = first("HTTP/1.1 200 OK");
    let all = |before: &str| format!("{before}{plain}");
    vec![
        case("plain", all(""), [BODY], Some(BODY)),
        case("two blanks", first("HTTP/1.1  200 OK"), [BODY], Some(BODY)),
        case("no reason", first("HTTP/1.1 200"), [BODY], Some(BODY)),
        case("a tab", first("HTTP/1.1\t200 OK"), [NONE, BODY, BODY, BODY, NONE], None),
        // wget: of HTTP/0.9.
        case(
            "small letters",
            first("http/1.1 200 OK"),
            [BODY, &first("http/1.1 200 OK"), NONE, BODY, BODY],
            None,
        ),
        case("1.2", first("HTTP/1.2 200 OK"), [NONE, BODY, BODY, BODY, BODY], None),
        case("2.0", first("HTTP/2.0 200 OK"), [BODY, BODY, NONE, BODY, BODY], None),
        case("four digits", first("HTTP/1.1 0200 OK"), [NONE, BODY, BODY, BODY, NONE], None),
        case("no blank", first("HTTP/1.1 200OK"), [BODY, BODY, NONE, BODY, NONE], None),
        case("no status", first("HTTP/1.1"), [NONE, NONE, NONE, BODY, BODY], None),
        case("an empty line", all("\r\n"), [NONE, &all("\r\n"), NONE, BODY, BODY], None),
        case("a blank before", all(" "), [NONE, &all(" "), BODY, BODY, BODY], None),
        case("four bytes before", all("junk"), [NONE, &all("junk"), NONE, BODY, BODY], None),
        case(
            "SHOUTcast",
            format!("ICY 200 OK\r\nContent-Length: 10\r\n\r\n{BODY}"),
            [
                NONE,
                &format!("ICY 200 OK\r\nContent-Length: 10\r\n\r\n{BODY}"),
                NONE,
                &format!("ICY 200 OK\r\nContent-Length: 10\r\n\r\n{BODY}"),
                BODY,
            ],
            None,
        ),
        case(
            "HTTP/0.9",
            BODY.repeat(3),
            [NONE, &BODY.repeat(3), NONE, &BODY.repeat(3), &BODY.repeat(3)],
            Some(&BODY.repeat(3)),
        ),
        case("HTTP/0.9, short", BODY, [NONE, BODY, NONE, BODY, BODY], None),
        // Chromium reads no chunks of it.
        case("1.0, chunked", first("HTTP/1.0 200 OK"), [BODY, BODY, BODY, CHUNK, BODY], None),
        // Firefox takes all that comes at once.
        case(
            "1.0, longer",
            format!("HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\n{MORE}"),
            [BODY, BODY, BODY, BODY, MORE],
            None,
        ),
        case(
            "100, 103",
            format!("HTTP/1.1 100 x\r\nContent-Length: 9\r\n\r\nHTTP/1.1 103 x\r\n\r\n{plain}"),
            [BODY, BODY, NONE, BODY, BODY],
            Some(BODY),
        ),
        case(
            "101 unasked",
            format!("HTTP/1.1 101 x\r\n\r\n{BODY}"),
            [BODY, BODY, NONE, NONE, NONE],
            None,
        ),
        case("204", format!("HTTP/1.1 204 x\r\n\r\n{BODY}"), [NONE], None),
        case(
            "304",
            format!("HTTP/1.1 304 x\r\nContent-Length: 10\r\n\r\n{BODY}"),
            [NONE, BODY, NONE, NONE, NONE],
            None,
        ),
        // Of a file that it has already, curl takes any part.
        case(
            "206 of what",
            format!("HTTP/1.1 206 x\r\nContent-Length: 10\r\n\r\n{BODY}"),
            [BODY],
            None,
        ),
    ]
}

fn lengths() -> Vec<Case> {
    let twice = |one: &str, other: &str| length(&format!("{one}\r\nContent-Length:{other}"));
    let whole = |value: &str| ok(&format!("Content-Length:{value}"), BODY);
    vec![
        case("blanks", whole("\t 0010 "), [BODY], Some(BODY)),
        case("two of the same", whole(" 10\r\nContent-Length: 10"), [BODY], Some(BODY)),
        case("two that differ", twice(" 10", " 12"), [MORE, BODY, BODY, NONE, NONE], None),
        case("turned", twice(" 12", " 10"), [BODY, MORE, MORE, NONE, NONE], None),
        case("a list", length(" 10, 10"), [BODY, BODY, MORE, BODY, MORE], None),
        case("a letter behind", length(" 10x"), [BODY, BODY, MORE, MORE, MORE], None),
        case("a sign", length(" +10"), [BODY, BODY, BODY, MORE, MORE], None),
        case("another blank", length(" \u{b}10"), [NONE, BODY, BODY, MORE, MORE], None),
        case("more than said", length(" 10"), [BODY], None),
        case("less than said", ok("Content-Length: 20", BODY), [BODY], Some(BODY)),
        case("none", ok("X: y", BODY), [BODY], Some(BODY)),
        case(
            "with chunks",
            ok("Content-Length: 5\r\nTransfer-Encoding: chunked", CHUNK),
            [BODY],
            Some(BODY),
        ),
    ]
}

fn codings() -> Vec<Case> {
    let twice = |one: &str, other: &str| coding(&format!("{one}\r\nTransfer-Encoding:{other}"));
    vec![
        case("capitals", coding("ChUnKeD"), [BODY], Some(BODY)),
        case("twice", twice(" chunked", " chunked"), [BODY], Some(BODY)),
        case("another word", coding(" xchunked"), [NONE, CHUNK, CHUNK, CHUNK, CHUNK], None),
        case("and identity", coding(" chunked, identity"), [BODY, CHUNK, CHUNK, BODY, BODY], None),
        case("gzip", coding(" gzip, chunked"), [NONE, CHUNK, CHUNK, BODY, BODY], None),
        case("two lines", twice(" identity", " chunked"), [BODY, CHUNK, CHUNK, BODY, BODY], None),
        case("a blank behind", coding(" chunked "), [BODY, BODY, CHUNK, BODY, BODY], None),
        case("on the next line", coding("\r\n chunked"), [CHUNK, BODY, CHUNK, BODY, BODY], None),
        case(
            "a blank before the colon",
            ok("Transfer-Encoding : chunked", CHUNK),
            [CHUNK, CHUNK, CHUNK, BODY, CHUNK],
            None,
        ),
    ]
}

fn fields() -> Vec<Case> {
    let before = |field: &str| ok(&format!("{field}\r\nContent-Length: 10"), MORE);
    vec![
        case(
            "bare LF",
            format!("HTTP/1.1 200 OK\nContent-Length: 10\n\n{BODY}"),
            [BODY],
            Some(BODY),
        ),
        case("no colon", before("foo"), [NONE, BODY, MORE, BODY, BODY], None),
        case("a blank in a name", before("X Y: z"), [BODY, BODY, MORE, BODY, BODY], None),
        case(
            "a bare CR",
            ok("X: y\rContent-Length: 10", MORE),
            [MORE, MORE, BODY, BODY, MORE],
            None,
        ),
        case("a zero byte", before("X: \0y"), [NONE, MORE, BODY, NONE, NONE], None),
        case(
            "a long head",
            ok(&format!("X: {}\r\nContent-Length: 10", "x".repeat(70_000)), BODY),
            [BODY, NONE, NONE, BODY, BODY],
            None,
        ),
    ]
}

fn chunk_lines() -> Vec<Case> {
    let size = |size: &str| chunks(&format!("{size}\r\n{BODY}\r\n0\r\n\r\n"));
    let behind = |end: &str| chunks(&format!("a\r\n{BODY}{end}5\r\nabcde\r\n0\r\n\r\n"));
    let both = format!("{BODY}abcde");
    vec![
        case("16 digits", size("000000000000000A"), [BODY], Some(BODY)),
        case(
            "40 digits",
            size(&format!("{:0>40}", 'a')),
            [NONE, BODY, BODY, BODY, BODY],
            Some(BODY),
        ),
        case(
            "beyond 64 bits",
            size("1000000000000000a"),
            [NONE, &format!("{BODY}\r\n0\r\n\r\n"), NONE, NONE, NONE],
            None,
        ),
        case("an extension", size("a ;x=\""), [BODY], Some(BODY)),
        case("a tab behind", size("a\t"), [BODY, BODY, BODY, NONE, BODY], Some(BODY)),
        case("a blank before", size(" a"), [NONE, BODY, BODY, NONE, BODY], Some(BODY)),
        case("0x", size("0xa"), [NONE, BODY, BODY, NONE, BODY], None),
        case("more behind", size("a b"), [BODY, BODY, NONE, NONE, BODY], None),
        case("an empty line before", size("\r\na"), [NONE, NONE, NONE, NONE, BODY], None),
        case(
            "zeros at last",
            chunks(&format!("a\r\n{BODY}\r\n000 \r\nX: y\r\n\r\n")),
            [BODY],
            Some(BODY),
        ),
        case("a line behind", behind("xxxx\r\n"), [BODY, &both, BODY, BODY, BODY], None),
        case(
            "two bytes behind",
            behind("xx"),
            [BODY, &format!("{BODY}0\r\n\r\n"), &both, BODY, BODY],
            None,
        ),
        // Python takes the LF and one byte more, in which a digit may be.
        case(
            "bare LF",
            chunks(&format!("a\r\n{BODY}\n15\r\nabcde\r\n0\r\n\r\n")),
            [
                &format!("{both}\r\n0\r\n\r\n"),
                &format!("{both}\r\n0\r\n\r\n"),
                &both,
                &format!("{both}\r\n0\r\n\r\n"),
                &format!("{both}\r\n0\r\n\r\n"),
            ],
            None,
        ),
        case("no last one", chunks(&format!("a\r\n{BODY}\r\n")), [BODY], Some(BODY)),
    ]
}

fn cases() -> Vec<Case> {
    [status_lines(), lengths(), codings(), fields(), chunk_lines()].into_iter().flatten().collect()
}

/// What a gate that holds packets scans of a response that comes in segments of this size; nothing where
/// it says that it did not understand it.
fn scanned(response: &[u8], segment: usize) -> Option<String> {
    let flow = Flow {
        transport: Transport::Tcp,
        client: ([10, 0, 0, 5], 40_000).into(),
        server: ([192, 0, 2, 7], 80).into(),
    };
    let settings = Settings { hold: true, ..Settings::default() };
    let mut manager = Manager::new("http", &flow, &settings).unwrap();
    let (mut content, mut doubt) = (Vec::new(), false);
    let mut next = [0_u32; 2];
    let mut send = |from: Side, flags: u8, payload: &[u8]| {
        let [sequence, acknowledgement] = [next[from as usize], next[from.other() as usize]];
        let tcp = Some(Tcp { sequence, acknowledgement, flags: flags | Tcp::ACK });
        let length = payload.len() as u32;
        next[from as usize] += length;
        let mut events = Vec::new();
        manager.packet(&Packet { at_ns: 0, from, tcp, payload, length }, &mut events);
        let mut at = 0;
        while let Some(event) = events.get(at).cloned() {
            at += 1;
            match event {
                Event::FileNamed(named) => {
                    doubt |= named.ambiguous;
                    manager.answer(named.transfer, FileVerdict::Scan, &mut events);
                }
                Event::Content { bytes, .. } => content.extend(bytes),
                Event::Unread => doubt = true,
                _ => {}
            }
        }
    };
    send(Side::Client, 0, b"GET /f HTTP/1.1\r\nHost: h\r\n\r\n");
    response.chunks(segment).for_each(|part| send(Side::Server, 0, part));
    send(Side::Server, Tcp::FIN, b"");
    (!doubt).then(|| String::from_utf8(content).unwrap())
}

#[test]
fn the_gate_scans_what_all_clients_take_or_says_that_it_does_not() {
    for Case { what, response, taken, scanned: expected } in cases() {
        for segment in [1, 7, response.len()] {
            let scanned = scanned(response.as_bytes(), segment);
            assert_eq!(scanned, expected, "{what}, in segments of {segment}: {response:?}");
        }
        let unseen = |scanned: &String| taken.iter().find(|taken| !scanned.starts_with(*taken));
        assert_eq!(expected.as_ref().and_then(unseen), None, "{what}");
    }
}

/// Answers `GET /N` with the response of the case N, and closes.
fn serve(listener: &TcpListener, responses: &[String]) {
    let answer = |mut stream: TcpStream| -> std::io::Result<()> {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            request.extend(byte);
        }
        let path = String::from_utf8_lossy(&request);
        let number = path.split(['/', ' ']).nth(2).and_then(|number| number.parse().ok());
        let Some(response) = number.and_then(|number: usize| responses.get(number)) else {
            return Ok(());
        };
        stream.write_all(response.as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    };
    // What clients say of it is of no interest here.
    listener.incoming().flatten().for_each(|stream| drop(answer(stream)));
}

/// What a program writes.
fn written(words: &[&str]) -> Vec<u8> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("no_proxy", "*");
    testbed::programs::check(&command).unwrap();
    command.output().unwrap().stdout
}

/// The bodies of all cases, as `http.client` takes them, in JSON.
const PYTHON: &str = "
import http.client, json, sys
taken = []
for number in range(int(sys.argv[2])):
    try:
        connection = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=10)
        connection.request('GET', f'/{number}')
        body = connection.getresponse().read()
    except http.client.IncompleteRead as error:
        body = error.partial
    except Exception:
        body = b''
    taken.append(body.decode())
    connection.close()
print(json.dumps(taken))
";

/// The bodies that curl, wget and Python take of responses.
fn asked(responses: &[String]) -> Vec<[String; 3]> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let served = responses.to_owned();
    std::thread::spawn(move || serve(&listener, &served));
    let python = written(&["python3", "-c", PYTHON, &port, &responses.len().to_string()]);
    let python: Vec<String> = serde_json::from_slice(&python).unwrap();
    assert_eq!(python.len(), responses.len());
    let all = python.into_iter().enumerate().map(|(number, python)| {
        let url = format!("http://127.0.0.1:{port}/{number}");
        let ask = |words: &[&str]| String::from_utf8(written(&[words, &[&url]].concat())).unwrap();
        let curl = ask(&["curl", "-s", "-m", "10"]);
        let wget = ask(&["wget", "-q", "-T", "10", "-t", "1", "--content-on-error", "-O", "-"]);
        [curl, wget, python]
    });
    all.collect()
}

/// Clients of other versions may take other bodies than the table says, but none unseen.
#[test]
fn no_client_takes_what_was_not_scanned_nor_reported() {
    let cases = cases();
    let responses: Vec<String> = cases.iter().map(|case| case.response.clone()).collect();
    let mut differ = Vec::new();
    for (case, asked) in cases.iter().zip(asked(&responses)) {
        for (taken, listed) in asked.iter().zip(&case.taken) {
            if let Some(scanned) = &case.scanned {
                assert!(scanned.starts_with(taken), "{}: {taken:?}", case.what);
            }
            if taken != listed {
                differ.push(format!("{}: {taken:?} instead of {listed:?}", case.what));
            }
        }
    }
    // Whoever asks nobody sees that all differ.
    assert!(differ.len() < cases.len(), "{differ:#?}");
}

/// Odd responses put together at random.
fn random(random: &mut Random) -> String {
    const FIRST: [&str; 6] = [
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 OK",
        "HTTP/1.1  200",
        "HTTP/1.0 200 OK",
        "HTTP/1.1 404 x",
        "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 200 OK",
    ];
    const FIELDS: [&str; 12] = [
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: chunked",
        "transfer-encoding:chunked",
        "Transfer-Encoding: gzip",
        "Content-Length: 10",
        "Content-Length: 10",
        "content-length:12",
        "Content-Length: 0",
        "X: y",
        "Connection: close",
        " folded",
        "Content-Encoding: identity",
    ];
    const BODIES: [&str; 6] = [
        BODY,
        MORE,
        CHUNK,
        "5;x=y\r\n01234\r\n0005\r\n56789\r\n0\r\nX: y\r\n\r\n",
        "00000000000000000a\r\n0123456789\r\n0\r\n\r\n",
        "5\n01234\r\n5 \r\n56789\r\n0\n\n",
    ];
    const BYTES: &[u8] = b" \t\r\n\0;,:x0-+H\x0b";
    let mut one = |list: &[&str]| list[random.below(list.len() as u64) as usize].to_owned();
    let mut lines = vec![one(&FIRST)];
    lines.extend((0..3).map(|_| one(&FIELDS)));
    let mut response = lines.join("\r\n") + "\r\n\r\n" + &one(&BODIES);
    for _ in 0..random.below(4) {
        let at = random.below(response.len() as u64) as usize;
        let byte = char::from(BYTES[random.below(BYTES.len() as u64) as usize]);
        match random.below(3) {
            0 => response.replace_range(at..=at, &byte.to_string()),
            1 => response.replace_range(at..=at, ""),
            _ => response.insert(at, byte),
        }
    }
    response
}

/// How many of them are asked about.
const RANDOM: usize = 100;

#[test]
fn no_client_takes_what_was_not_scanned_nor_reported_of_random_responses() {
    let mut state = Random::new(21);
    let responses: Vec<String> = (0..RANDOM).map(|_| random(&mut state)).collect();
    let mut understood = 0;
    for (response, taken) in responses.iter().zip(asked(&responses)) {
        for segment in [1, response.len()] {
            let Some(scanned) = scanned(response.as_bytes(), segment) else { continue };
            let unseen = taken.iter().find(|taken| !scanned.starts_with(*taken));
            assert_eq!(unseen, None, "{response:?}, of which {scanned:?} was scanned: {taken:?}");
            understood += usize::from(!scanned.is_empty());
        }
    }
    assert!(understood > RANDOM / 20, "{understood}");
}
