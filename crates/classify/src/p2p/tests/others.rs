//! eDonkey, Kad, Gnutella, Direct Connect and Soulseek.

use super::*;

/// A string with a length of 32 bits before it.
fn long(text: &str) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes()].concat()
}

fn ed2k(protocol: u8, code: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap();
    [&[protocol][..], &length.to_le_bytes(), &[code], body].concat()
}

/// A hash, an id, a port and two tags: a name and a version.
fn greeting(port: u16) -> Vec<u8> {
    let mut body = vec![0x0e; 16];
    body.extend_from_slice(&[7, 100, 51, 198]);
    body.extend_from_slice(&port.to_le_bytes());
    body.extend_from_slice(b"\x02\0\0\0\x02\x01\0\x01\x04\0nigh\x03\x01\0\x11\x3c\0\0\0");
    body
}

#[test]
fn greetings_of_edonkey_are_known_alone() {
    let hello = ed2k(0xe3, 0x01, &[&[0x10][..], &greeting(4662), &[0; 6]].concat());
    let login = ed2k(0xe3, 0x01, &greeting(4663));
    let answer = ed2k(0xe3, 0x4c, &[&greeting(4664)[..], &[0; 6]].concat());
    for (message, port) in [(&hello, 4662), (&login, 4663), (&answer, 4664)] {
        let mut talk = Talk::new(Transport::Tcp);
        assert_eq!(talk.client(&message[..20]), "more");
        assert_eq!(talk.client(&message[20..]), "edonkey/tcp");
        let own = format!("10.0.0.5:{port}");
        assert_eq!(talk.listed(&own), Some(("edonkey", Source::Announced)));
    }
    let mut chance = hello;
    chance[6 + 17 + 6..].fill(0x55);
    assert_eq!(Talk::new(Transport::Tcp).client(&chance), "more");
}

#[test]
fn other_messages_of_edonkey_need_a_second() {
    let request = ed2k(0xe3, 0x58, &[9; 16]);
    let answer = ed2k(0xe3, 0x59, &[&[9; 16][..], b"\x04\0nigh"].concat());
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(&request), "more");
    assert_eq!(talk.server(&answer), "edonkey/tcp");
    let both = [&request[..], &ed2k(0xc5, 0x87, &[1; 5])].concat();
    assert_eq!(Talk::new(Transport::Tcp).client(&both), "edonkey/tcp");
    for no in [
        ed2k(0xe3, 0x58, &[9; 15]),
        ed2k(0xe3, 0x47, &[9; 39]),
        ed2k(0xd4, 0x40, &[9; 80]),
        ed2k(0xe3, 0xee, &[9; 16]),
        ed2k(0xe3, 0xff, b"text and not a message"),
        b"\xe3\0\0\0\0\x01".to_vec(),
    ] {
        assert_eq!(Talk::new(Transport::Tcp).client(&no), "unknown", "{no:?}");
    }
}

#[test]
fn sources_of_a_server_are_learnt() {
    let mut talk = Talk::new(Transport::Tcp);
    talk.client(&ed2k(0xe3, 0x01, &greeting(4662)));
    talk.server(&ed2k(0xe3, 0x40, &[1, 2, 3, 4]));
    let sources = [&[9; 16][..], b"\x02\xc6\x33\x64\x09\x36\x12\x05\0\0\0\x36\x12"].concat();
    talk.server(&ed2k(0xe3, 0x42, &sources));
    assert_eq!(talk.listed("198.51.100.9:4662"), Some(("edonkey", Source::Edonkey)));
    assert_eq!(talk.listed("5.0.0.0:4662"), None, "a low id");
    let hidden = [
        &[9; 16][..],
        b"\x02\xc6\x33\x64\x0a\x36\x12\x83",
        &[8; 16],
        b"\xc6\x33\x64\x0b\x36\x12\0",
    ]
    .concat();
    talk.server(&ed2k(0xe3, 0x44, &hidden));
    assert!(talk.listed("198.51.100.10:4662").is_some());
    assert!(talk.listed("198.51.100.11:4662").is_some());
    assert!(talk.hosts.spoke("192.0.2.7".parse().unwrap(), Application::Edonkey, talk.at_ns));
}

#[test]
fn datagrams_of_edonkey() {
    let status = b"\xe3\x96\x34\x12\xaa\x55";
    assert_eq!(Talk::new(Transport::Udp).client(status), "edonkey/udp");
    let mut talk = Talk::new(Transport::Udp);
    let ask = [&b"\xe3\x9a"[..], &[9; 16]].concat();
    assert_eq!(talk.client(&ask), "more");
    let sources = [&b"\xe3\x9b"[..], &[9; 16], b"\x01\xc6\x33\x64\x09\x36\x12"].concat();
    assert_eq!(talk.server(&sources), "edonkey/udp");
    assert_eq!(talk.listed("198.51.100.9:4662"), Some(("edonkey", Source::Edonkey)));
    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.client(&[&b"\xc5\x90"[..], &[9; 20]].concat()), "more");
    assert_eq!(talk.server(b"\xc5\x91\x07\0"), "edonkey/udp");
}

/// Any protocol may begin all its datagrams with the same two bytes.
#[test]
fn two_plausible_datagrams_of_one_code_are_only_likely() {
    for (datagram, found) in [
        (&b"\xc5\x91\x07\0abc"[..], "edonkey/udp?"),
        (b"\xe4\x60", "edonkey/kad?"),
        (b"\xe5\x29\x78\x9cabcdefghijkl", "edonkey/kad?"),
        (b"GND\x03\x12\x34\x01\x01x", "gnutella/?"),
    ] {
        let mut talk = Talk::new(Transport::Udp);
        assert_eq!(talk.client(datagram), "more");
        assert_eq!(talk.server(datagram), found);
        let host = "10.0.0.5".parse().unwrap();
        let spoke = |application| talk.hosts.spoke(host, application, talk.at_ns);
        assert!(!Application::ALL.into_iter().any(spoke));
    }
    // No head of zlib.
    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.client(b"\xe5\x29\x78\x9dabcdefghijkl"), "more");
    assert_eq!(talk.server(b"\xe5\x29\x78\x9dabcdefghijkl"), "more");
}

#[test]
fn kad_is_known_by_what_counts() {
    let hello = [&b"\xe4\x11"[..], &[7; 16], b"\x36\x12\x08\x01\x89\xfc\x04"].concat();
    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.client(&hello), "edonkey/kad");
    assert_eq!(talk.listed("10.0.0.5:4662"), Some(("edonkey", Source::Announced)));

    let mut talk = Talk::new(Transport::Udp);
    let request = [&b"\xe4\x21\x0b"[..], &[7; 32]].concat();
    assert_eq!(talk.client(&request), "more");
    let contact = [&[6; 16][..], b"\x09\x64\x33\xc6\x40\x12\x36\x12\x08"].concat();
    let answer = [&b"\xe4\x29"[..], &[7; 16], &[1], &contact].concat();
    assert_eq!(talk.server(&answer), "edonkey/kad");
    assert_eq!(talk.listed("198.51.100.9:4672"), Some(("edonkey", Source::Kad)));
    assert_eq!(talk.listed("198.51.100.9:4662"), Some(("edonkey", Source::Kad)));

    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.client(&request), "more");
    assert_eq!(talk.client(&request), "edonkey/kad?");
    let wrong = [&b"\xe4\x29"[..], &[7; 16], &[2], &contact].concat();
    assert_eq!(Talk::new(Transport::Udp).client(&wrong), "more");
}

#[test]
fn gnutella_over_tcp() {
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(b"GNUTELLA CONN"), "more");
    assert_eq!(talk.client(b"ECT/0.6\r\nUser-Agent: x\r\n\r\n"), "gnutella/");
    talk.server(
        b"GNUTELLA/0.6 503 Full\r\nX-Try-Ultrapeers: 198.51.100.9:6346,198.51.100.10:6347\r\n\r\n",
    );
    assert_eq!(talk.listed("198.51.100.10:6347"), Some(("gnutella", Source::Gnutella)));
    let get = b"GET /uri-res/N2R?urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB HTTP/1.1\r\n\r\n";
    assert_eq!(Talk::new(Transport::Tcp).client(get), "gnutella/");
    let give = b"GIV 3:0123456789abcdef0123456789ABCDEF/name\n\n";
    assert_eq!(Talk::new(Transport::Tcp).client(give), "gnutella/");
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(b"GET /get/3/name HTTP/1.1\r\nHost: x\r\n\r\n"), "more");
    let answer = b"HTTP/1.1 206 Partial\r\nX-Available-Ranges: bytes 0-10\r\n\r\n";
    assert_eq!(talk.server(answer), "gnutella/");
    for no in [
        &b"GET /index.html HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"GIVE me more\n",
        b"GNUTELLE CONNECT/0.6\r\n",
        b"GET /uri-res/N2R?urn:md5:1 HTTP/1.1\r\n\r\n",
    ] {
        let text = String::from_utf8_lossy(no);
        assert_eq!(Talk::new(Transport::Tcp).client(no), "unknown", "{text}");
    }
}

#[test]
fn gnutella_over_udp() {
    let pong = [&[7; 16][..], b"\x01\x01\x00\x0e\0\0\0\xca\x18\xc6\x33\x64\x09", &[0; 8]].concat();
    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.client(&pong), "gnutella/");
    assert_eq!(talk.listed("198.51.100.9:6346"), Some(("gnutella", Source::Gnutella)));
    let mut wrong = pong;
    wrong[19] = 0x0f;
    assert_eq!(Talk::new(Transport::Udp).client(&wrong), "more");
    let mut talk = Talk::new(Transport::Udp);
    assert_eq!(talk.client(b"GND\x03\x12\x34\x01\x01x"), "more");
    assert_eq!(talk.server(b"GND\0\x12\x34\x01\0"), "gnutella/");
}

#[test]
fn nmdc_hubs_and_peers() {
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.server(b"$Lock EXTENDEDPROTOCOLABC"), "more");
    assert_eq!(talk.server(b"ABCABC Pk=uhub|"), "directconnect/nmdc");
    talk.client(b"$Key x|$ValidateNick me|");
    talk.server(b"$ConnectToMe me 198.51.100.9:412|$Search 198.51.100.10:413 F?T?0?9?TTH:x|");
    assert_eq!(talk.listed("198.51.100.9:412"), Some(("directconnect", Source::Hub)));
    assert_eq!(talk.listed("198.51.100.10:413"), Some(("directconnect", Source::Hub)));
    let peer = b"$MyNick you|$Lock EXTENDEDPROTOCOL Pk=x|";
    assert_eq!(Talk::new(Transport::Tcp).client(peer), "directconnect/nmdc");
    let found = b"$SR you a\\b.txt\x05123 1/2\x05TTH:ABC (192.0.2.7:411)|";
    assert_eq!(Talk::new(Transport::Udp).client(found), "directconnect/nmdc");
    assert_eq!(Talk::new(Transport::Tcp).client(b"$MyNick you|hello"), "unknown");
    assert_eq!(Talk::new(Transport::Tcp).client(b"$HOME is not"), "unknown");
}

#[test]
fn adc_hubs_and_peers() {
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(b"HSUP AD"), "more");
    assert_eq!(talk.client(b"BASE ADTIGR\n"), "directconnect/adc");
    talk.server(b"ISUP ADBASE ADTIGR\nISID AAAB\n");
    talk.server(b"BINF AAAC NIyou I4198.51.100.9 U4413\nDCTM AAAC AAAB ADC/1.0 414 12345\n");
    assert_eq!(talk.listed("198.51.100.9:413"), Some(("directconnect", Source::Hub)));
    assert_eq!(talk.listed("198.51.100.9:414"), Some(("directconnect", Source::Hub)));
    assert_eq!(Talk::new(Transport::Tcp).client(b"CSUP ADBAS0 ADTIGR\n"), "directconnect/adc");
    let found = [b"URES ", &[b'A'; 39][..], b" FNx SI1\n"].concat();
    assert_eq!(Talk::new(Transport::Udp).client(&found), "directconnect/adc");
    assert_eq!(Talk::new(Transport::Tcp).client(b"HSUP RMBASE\n"), "unknown");
    assert_eq!(Talk::new(Transport::Tcp).server(b"-rw-r--r-- 1 ftp ftp 5 a\r\n"), "unknown");
    assert_eq!(Talk::new(Transport::Tcp).client(b"HELO mail.example\r\n"), "unknown");
}

#[test]
fn soulseek_logins_and_peers() {
    let hash = "0123456789abcdef0123456789abcdef";
    let login = [
        &1_u32.to_le_bytes()[..],
        &long("me"),
        &long("secret"),
        &160_u32.to_le_bytes(),
        &long(hash),
        &1_u32.to_le_bytes(),
    ]
    .concat();
    let frame =
        |body: &[u8]| [&u32::try_from(body.len()).unwrap().to_le_bytes()[..], body].concat();
    let login = frame(&login);
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(&login[..30]), "more");
    assert_eq!(talk.client(&login[30..]), "soulseek/");
    talk.client(&frame(&[2, 0, 0, 0, 0xba, 0x08, 0, 0]));
    assert_eq!(talk.listed("10.0.0.5:2234"), Some(("soulseek", Source::Announced)));
    let address =
        [&3_u32.to_le_bytes()[..], &long("you"), b"\x09\x64\x33\xc6\xbb\x08\0\0"].concat();
    talk.server(&frame(&address));
    assert_eq!(talk.listed("198.51.100.9:2235"), Some(("soulseek", Source::Soulseek)));

    let init = frame(&[&[1][..], &long("you"), &long("P"), &[0; 4]].concat());
    assert_eq!(Talk::new(Transport::Tcp).client(&init), "soulseek/");
    let wrong = frame(&[&[1][..], &long("you"), &long("Q"), &[0; 4]].concat());
    assert_eq!(Talk::new(Transport::Tcp).client(&wrong), "unknown");
    let mut talk = Talk::new(Transport::Tcp);
    assert_eq!(talk.client(&frame(&[0, 1, 2, 3, 4])), "more");
    assert_eq!(talk.server(&frame(&4_u32.to_le_bytes())), "soulseek/");
}
