//! Hellos put together by hand; fingerprints as FoxIO published them.

use super::*;

/// A ClientHello's body with these lists; extension data by type, empty where none is given.
pub(crate) fn body(
    version: u16,
    ciphers: &[u16],
    extensions: &[u16],
    data: &[(u16, Vec<u8>)],
) -> Vec<u8> {
    let mut out = version.to_be_bytes().to_vec();
    out.extend([7; 32]);
    out.push(0);
    out.extend((ciphers.len() as u16 * 2).to_be_bytes());
    ciphers.iter().for_each(|cipher| out.extend(cipher.to_be_bytes()));
    out.extend([1, 0]);
    let mut list = Vec::new();
    for kind in extensions {
        let data = data.iter().find(|(of, _)| of == kind).map_or(&[][..], |(_, data)| data);
        list.extend(kind.to_be_bytes());
        list.extend((data.len() as u16).to_be_bytes());
        list.extend(data);
    }
    out.extend((list.len() as u16).to_be_bytes());
    out.extend(list);
    out
}

/// The extension SNI with one name.
pub(crate) fn sni(name: &str) -> (u16, Vec<u8>) {
    let mut data = (name.len() as u16 + 3).to_be_bytes().to_vec();
    data.push(0);
    data.extend((name.len() as u16).to_be_bytes());
    data.extend(name.as_bytes());
    (0, data)
}

fn numbers8(list: &[u16]) -> Vec<u8> {
    let mut out = vec![list.len() as u8 * 2];
    list.iter().for_each(|number| out.extend(number.to_be_bytes()));
    out
}

fn numbers16(list: &[u16]) -> Vec<u8> {
    let mut out = (list.len() as u16 * 2).to_be_bytes().to_vec();
    list.iter().for_each(|number| out.extend(number.to_be_bytes()));
    out
}

fn alpn(name: &[u8]) -> (u16, Vec<u8>) {
    let mut data = (name.len() as u16 + 1).to_be_bytes().to_vec();
    data.push(name.len() as u8);
    data.extend(name);
    (16, data)
}

/// Records of at most `each` bytes around a handshake message.
pub(crate) fn records(body: &[u8], each: usize) -> Vec<u8> {
    let mut message = vec![1];
    message.extend(&(body.len() as u32).to_be_bytes()[1..]);
    message.extend(body);
    let mut out = Vec::new();
    for piece in message.chunks(each) {
        out.extend([22, 3, 1]);
        out.extend((piece.len() as u16).to_be_bytes());
        out.extend(piece);
    }
    out
}

/// The example of FoxIO's JA4.md, of Chrome, with values to be ignored in every list.
fn chrome() -> Vec<u8> {
    let ciphers = [
        0x3a3a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
        0xc014, 0x009c, 0x009d, 0x002f, 0x0035,
    ];
    let extensions = [
        0x1a1a, 0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002d, 0x000d, 0x0005, 0x0023,
        0x0012, 0x002b, 0xff01, 0x000b, 0x000a, 0x0015, 0xfafa,
    ];
    let signatures = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];
    let data = [
        sni("WWW.Example.org"),
        alpn(b"h2"),
        (43, numbers8(&[0x7a7a, 0x0304, 0x0303])),
        (13, numbers16(&signatures)),
    ];
    body(0x0303, &ciphers, &extensions, &data)
}

#[test]
fn the_published_fingerprint_of_chrome() {
    let hello = parse(&chrome()).unwrap();
    assert_eq!(ja4(&hello, Carrier::Tcp), "t13d1516h2_8daaf6152771_e5627efa2ab1");
    assert_eq!(ja4(&hello, Carrier::Quic), "q13d1516h2_8daaf6152771_e5627efa2ab1");
    assert_eq!(hello.server_name.as_deref(), Some("www.example.org"));
}

#[test]
fn nothing_in_it_gives_zeros() {
    let hello = parse(&body(0x0301, &[], &[], &[])).unwrap();
    assert_eq!(ja4(&hello, Carrier::Tcp), "t10i000000_000000000000_000000000000");
    let hello = parse(&body(0x0303, &[0x0a0a], &[16], &[alpn(&[0xab, 0xcd])])).unwrap();
    assert_eq!(ja4(&hello, Carrier::Tcp), "t12i0001ad_000000000000_000000000000");
}

#[test]
fn a_hello_may_be_split_anywhere() {
    for each in [1, 7, 100, 16_000] {
        let stream = records(&chrome(), each);
        let Found::Hello(whole) = client_hello(&stream) else { panic!("not read") };
        for cut in 0..stream.len() {
            assert_eq!(client_hello(&stream[..cut]), Found::More, "{each} {cut}");
        }
        let mut longer = stream.clone();
        longer.extend([20, 3, 3, 0, 1, 1]);
        assert_eq!(client_hello(&longer), Found::Hello(whole));
    }
}

#[test]
fn other_beginnings_are_recognized_at_once() {
    for other in [
        &b"GET / HTTP/1.1\r\n"[..],
        &[22, 2],
        &[22, 3, 9],
        &[22, 3, 1, 0, 0],
        &[22, 3, 1, 0x50, 0],
        // A ServerHello, and a message that is longer than any.
        &[22, 3, 3, 0, 4, 2, 0, 0, 1],
        &[22, 3, 3, 0, 4, 1, 0xff, 0, 0],
        &[23, 3, 3],
    ] {
        assert_eq!(client_hello(other), Found::Not, "{other:?}");
    }
}

#[test]
fn names_that_no_host_has_are_skipped() {
    for (name, read) in [
        ("a.example.", Some("a.example")),
        ("xn--bcher-kva.example", Some("xn--bcher-kva.example")),
        ("a\nb", None),
        ("", None),
    ] {
        let hello = parse(&body(0x0303, &[1], &[0], &[sni(name)])).unwrap();
        assert_eq!(hello.server_name.as_deref(), read, "{name:?}");
        assert!(hello.named);
    }
}
