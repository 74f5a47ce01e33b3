//! Messages put together by hand.

use crate::machine::messages::tests::{dhcp, masked_on, unit};

const MAC: [u8; 6] = [2, 0x1b, 0x3c, 0x4d, 0x5e, 0x6f];
const ADDRESS: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 7, 0, 8, 0x5a, 0x5a, 0x5a, 0x5a, 9, 9, 9, 9];

fn option(code: u16, content: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes()[..], &(content.len() as u16).to_be_bytes(), content].concat()
}

/// A client's message with these options.
fn client(options: &[Vec<u8>]) -> Vec<u8> {
    [&[3, 9, 8, 7][..], &options.concat()].concat()
}

fn relay(options: &[Vec<u8>]) -> Vec<u8> {
    [&[12, 1][..], &ADDRESS, &ADDRESS, &options.concat()].concat()
}

/// With the time of its choice.
fn duid() -> Vec<u8> {
    [&[0, 1, 0, 1, 0x33, 0x33, 0x33, 0x33][..], &MAC].concat()
}

/// A message with something of each kind, which two relays have passed on.
pub(in crate::machine::messages) fn relayed() -> Vec<u8> {
    let status = option(13, b"\0\0for alice");
    let address = [&ADDRESS[..], &[0, 0, 14, 16, 0, 0, 28, 32], &status].concat();
    let prefix = [&[0, 0, 14, 16, 0, 0, 28, 32, 56][..], &ADDRESS].concat();
    let association = |inner: Vec<u8>| [&MAC[2..], &[0, 0, 1, 0, 0, 0, 2, 0], &inner].concat();
    let message = client(&[
        option(1, &duid()),
        option(2, &[&[0, 2, 0, 0, 0x33, 0x33][..], b"server"].concat()),
        option(3, &association(option(5, &address))),
        option(25, &association(option(26, &prefix))),
        option(6, &[0, 23, 0, 24]),
        option(16, &[&[0, 0, 1, 55, 0, 6][..], b"laptop"].concat()),
        option(23, &ADDRESS),
        option(39, b"\x01\x06laptop\x07Example\x03org\0"),
    ]);
    let first = relay(&[
        option(18, b"secret1"),
        option(79, &[&[0, 1][..], &MAC].concat()),
        option(9, &message),
    ]);
    relay(&[option(9, &first)])
}

/// Where the content of the first option with this code is, in the lists from here on.
fn content(message: &[u8], mut at: usize, code: u16) -> usize {
    while message[at..at + 2] != code.to_be_bytes() {
        at += 4 + usize::from(u16::from_be_bytes([message[at + 2], message[at + 3]]));
    }
    at + 4
}

#[test]
fn addresses_and_mac_addresses_become_those_of_headers_wherever_they_stand() {
    let mut unit = unit("\"dhcp.address\" = \"prefix\"\n\"dhcp.mac\" = \"encrypt\"");
    let message = relayed();
    let out = masked_on(&mut unit, 547, &message);
    let pan = crate::mapping::CryptoPan::new(&[7; 32]).map6(u128::from_be_bytes(ADDRESS));
    let is_mapped = |at: usize| assert_eq!(out[at..at + 16], pan.to_be_bytes(), "at {at}");
    let first = content(&message, 34, 9);
    let inner = content(&message, first + 34, 9);
    let options = inner + 4;
    for at in [2, 18, first + 2, first + 18, content(&message, options, 23)] {
        is_mapped(at);
    }
    let association = content(&message, options, 3);
    is_mapped(content(&message, association + 12, 5));
    let delegation = content(&message, options, 25);
    let prefix = content(&message, delegation + 12, 26);
    is_mapped(prefix + 9);
    assert_eq!(out[prefix + 8], 56);
    // The same address as in DHCP for IPv4 and as the relay saw it; the rest identifies as much and is not kept.
    let client = content(&message, options, 1);
    assert_eq!(out[client..client + 4], [0, 1, 0, 1]);
    let mut old =
        [vec![0; 236], vec![99, 130, 83, 99], vec![61, 19, 255], MAC[2..].to_vec(), duid()]
            .concat();
    old[..3].copy_from_slice(&[1, 1, 6]);
    old[28..34].copy_from_slice(&MAC);
    old.push(255);
    let v4 = masked_on(&mut unit, 68, &old);
    assert_eq!(v4[28..34], out[client + 8..client + 14]);
    assert_eq!(v4[247..261], out[client..client + 14]);
    assert_eq!(v4[243..247], out[association..association + 4]);
    let seen = content(&message, first + 34, 79);
    assert_eq!(out[seen..seen + 2], [0, 1]);
    assert_eq!(out[seen + 2..seen + 8], v4[28..34]);
    assert_ne!(v4[28..34], MAC);
    assert_ne!(out[client + 4..client + 8], message[client + 4..client + 8]);
    assert!(
        ![&message[association..association + 4], &[0; 4]]
            .contains(&&out[association..association + 4])
    );
    // What is not named: the transaction, times, letters.
    assert_eq!(out[inner..options], [3, 0, 0, 0]);
    assert_eq!(out[association + 4..association + 12], [0; 8]);
    let name = content(&message, options, 39);
    assert_eq!(out[name..name + 20], *b"\x01\x06xxxxxx\x07xxxxxxx\x03xxx");
    // What is always removed.
    let line = content(&message, first + 34, 18);
    assert_eq!(out[line..line + 7], [0; 7]);
}

#[test]
fn names_stay_in_their_domains_and_hosts_have_one_in_both_versions() {
    let mut unit = unit("\"dhcp.text\" = \"hash\"");
    let list = b"\x01a\x07example\0\x01b\x07EXAMPLE\0\x07example\0\x07another\0\x06laptop";
    let message = client(&[option(24, list)]);
    let out = masked_on(&mut unit, 546, &message);
    assert_eq!(out.len(), message.len());
    let label = |at: usize| &out[8 + at..9 + at + usize::from(list[at])];
    assert_eq!(label(2), label(13), "whatever the case");
    assert_eq!(label(2), label(22));
    assert_ne!(label(2), label(31));
    assert_ne!(label(2)[1..], *b"example");
    // Without a domain, as a host says it to a server of IPv4.
    assert_eq!(label(40)[1..], masked_on(&mut unit, 67, &dhcp())[245..251]);
    assert_ne!(label(40)[1..], *b"laptop");
}

#[test]
fn what_is_not_understood_is_removed_and_what_is_not_known_is_zero() {
    let mut unit = unit("\"dhcp.*\" = \"keep\"");
    let mut of = |message: &[u8]| masked_on(&mut unit, 547, message);
    for wrong in [
        // A message of no kind, a relay's that is short, options that are longer than there is.
        vec![0, 1, 2, 3],
        vec![14, 1, 2, 3],
        [&[12; 33][..]].concat(),
        client(&[vec![0, 23, 0, 17], vec![0; 16]]),
        client(&[vec![0]]),
        client(&[option(5, &[&[7; 24][..], &[0, 13, 0, 1]].concat()), vec![0; 8]]),
        relay(&[option(9, &[1, 2])]),
        // Labels and strings that go on behind the end; a pointer.
        client(&[option(24, b"\x02a"), option(0, &[7])]),
        client(&[option(24, b"\xc0\x04")]),
        client(&[option(15, &[0, 9, 7]), option(0, &[7; 9])]),
        client(&[option(17, &[0, 0, 0, 9, 0, 1, 0, 9]), option(0, &[7; 9])]),
    ] {
        assert_eq!(of(&wrong), b"", "{wrong:?}");
    }
    for (code, content) in [
        (6, &[0, 23][..]),
        (11, &[7; 11]),
        (12, &[7; 15]),
        (37, &[7; 9]),
        (79, &[0, 6, 7, 7, 7, 7, 7, 7]),
        (4000, b"secret"),
    ] {
        let out = of(&client(&[option(code, content)]));
        assert_eq!(out, client(&[option(code, &vec![0; content.len()])]), "{code}");
    }
    // Everything else, as it is.
    let status =
        [option(13, b"\0\x02no"), option(19, &[5]), option(8, &[1, 2]), option(83, &[9; 4])];
    let classes = [option(15, b"\0\x01a\0\x01b"), option(38, b"line 7"), option(4, &[7; 4])];
    let link = [&[0, 3, 0, 1][..], &MAC].concat();
    let duids = [&[0, 4, 9, 9, 9][..], &[0, 3, 0, 6, 7, 7], &link, &[9, 9, 9], &[7]];
    let duids = duids.map(|duid| option(1, duid));
    let time = [option(1, &ADDRESS), option(3, b"\x01a\0")].concat();
    for options in [&status[..], &classes, &duids, &[option(56, &time)]] {
        assert_eq!(of(&client(options)), client(options));
    }
}

#[test]
fn of_identifiers_only_a_known_kind_is_left() {
    let mut unit = unit("\"dhcp.id\" = \"keep\"");
    for (duid, left) in [
        (&[&[0, 1, 0, 1, 7, 7, 7, 7][..], &MAC].concat()[..], [0, 1, 0, 1]),
        (&[&[0, 3, 0, 1][..], &MAC].concat(), [0, 3, 0, 1]),
        (&[0, 3, 0, 6, 7, 7, 7], [0, 3, 0, 0]),
        (&[0, 2, 7, 7, 7, 7, 7], [0, 2, 0, 0]),
        (&MAC, [0; 4]),
    ] {
        let out = masked_on(&mut unit, 547, &client(&[option(1, duid)]));
        assert_eq!(out[8..], [&left[..], &vec![0; duid.len() - 4]].concat(), "{duid:?}");
    }
}

#[test]
fn relays_are_followed_so_far_and_no_further() {
    let mut unit = unit("\"dhcp.address\" = \"prefix\"");
    let mut message = client(&[option(23, &ADDRESS)]);
    for relays in 0..20 {
        let out = masked_on(&mut unit, 547, &message);
        assert_eq!(out.len(), if relays < 16 { message.len() } else { 0 }, "{relays}");
        assert!(!out.windows(4).any(|window| window == &ADDRESS[8..12]));
        message = relay(&[option(9, &message)]);
    }
}
