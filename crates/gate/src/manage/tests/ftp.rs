//! FTP: announced flows and the files on them.

use super::*;

fn control() -> Bench {
    Bench::new("ftp", &Settings { hold: true, ..Settings::default() })
}

fn expectations(bench: &Bench) -> Vec<Expectation> {
    let expect = bench.events.iter().filter_map(|event| match event {
        Event::Expect(expectation) => Some(expectation.clone()),
        _ => None,
    });
    expect.collect()
}

fn sockets(bench: &Bench) -> Vec<(String, String)> {
    let pair = |e: Expectation| (e.client.unwrap().to_string(), e.server.to_string());
    expectations(bench).into_iter().map(pair).collect()
}

/// The data connection that a client opens to the first expected socket.
fn data(bench: &Bench, client: &str) -> Bench {
    let expectation = &expectations(bench)[0];
    let flow = Flow {
        transport: Transport::Tcp,
        client: client.parse().unwrap(),
        server: expectation.server,
    };
    let settings = Settings { hold: true, ..Settings::default() };
    Bench::of(Manager::expected(expectation, &flow, &settings))
}

#[test]
fn a_passive_download_is_named_and_scanned_to_its_end() {
    let mut bench = control();
    bench.client("PASV\r\n");
    bench.server("227 Entering Passive Mode (10,9,8,7,4,1).\r\n");
    let expected = |server: &str| ("10.0.0.5".to_owned(), server.to_owned());
    assert_eq!(sockets(&bench), [expected("192.0.2.7:1025"), expected("10.9.8.7:1025")]);
    bench.client("REST 5\r\n");
    bench.client("retr pub/eicar.com\r\n");
    bench.server("150 Opening BINARY mode data connection for x (68 bytes).\r\n");
    let mut data = data(&bench, "10.0.0.5:40001");
    assert_eq!(data.manager.hold_from(Side::Server), None);
    data.server("0123456789");
    let file = data.names().remove(0);
    assert_eq!(file.name.as_deref(), Some("eicar.com"));
    assert_eq!(file.location.as_deref(), Some("pub/eicar.com"));
    assert_eq!((file.from, file.size, file.range), (Side::Server, Some(68), Some((5, 68))));
    assert_eq!(data.held(Side::Server), Some(10));
    data.answer(FileVerdict::Scan);
    data.server("0123456789");
    data.close(Side::Server);
    assert_eq!(data.ends(), [(0, 20, true)]);
    assert_eq!(data.content(0).len(), 20);
    // The byte before the FIN.
    assert_eq!(data.held(Side::Server), Some(2));
    data.manager.allow(TransferId(0));
    // What would come behind it.
    assert_eq!(data.held(Side::Server), Some(0));
}

#[test]
fn an_active_upload_comes_from_the_client_over_a_flow_that_the_server_opens() {
    let mut bench = control();
    bench.client("PORT 10,0,0,5,156,65\r\nSTOR up.bin\r\n");
    assert_eq!(sockets(&bench), [("192.0.2.7".to_owned(), "10.0.0.5:40001".to_owned())]);
    let mut data = data(&bench, "192.0.2.7:20");
    data.server("uploaded content");
    let file = data.names().remove(0);
    assert_eq!((file.name.as_deref(), file.from), (Some("up.bin"), Side::Server));
}

#[test]
fn extended_commands_announce_as_well() {
    let mut bench = control();
    bench.client("EPSV\r\n");
    bench.server("229 Entering Extended Passive Mode (|||6446|)\r\n");
    bench.client("EPRT |2|2001:db8::5|6275|\r\n");
    let pairs = sockets(&bench);
    assert_eq!(pairs[0], ("10.0.0.5".to_owned(), "192.0.2.7:6446".to_owned()));
    assert_eq!(pairs[1], ("192.0.2.7".to_owned(), "[2001:db8::5]:6275".to_owned()));
}

#[test]
fn a_listing_is_no_file() {
    let mut bench = control();
    bench.client("EPSV\r\n");
    bench.server("229 ok (|||6446|)\r\n");
    bench.client("LIST -a\r\n");
    let mut data = data(&bench, "10.0.0.5:40001");
    data.server("-rw-r--r-- 1 ftp ftp 68 eicar.com\r\n");
    assert!(data.events.is_empty());
    assert_eq!(data.interests, [Interest::Nothing; 2]);
}

#[test]
fn after_tls_begins_nothing_is_read() {
    let mut bench = control();
    bench.client("AUTH TLS\r\n");
    bench.server("234 go ahead\r\n");
    assert_eq!(bench.interests, [Interest::Nothing; 2]);
}

#[test]
fn lines_that_make_no_sense_announce_nothing() {
    let mut bench = control();
    for line in ["PORT 1,2,3\r\n", "PORT 1,2,3,4,5,600\r\n", "EPRT |1|x|y|\r\n", "EPRT\r\n", "\r\n"]
    {
        bench.client(line);
    }
    bench.client(vec![b'x'; 10_000]);
    bench.client("PORT 10,0,0,5,1,1\r\nPORT 10,0,0,5,1,2\r\n");
    for line in ["227 none\r\n", "229 (|||99999|)\r\n", "229 (\r\n", "2\r\n"] {
        bench.server(line);
    }
    assert_eq!(sockets(&bench).len(), 1, "only the one that stands on a line of its own");
}
