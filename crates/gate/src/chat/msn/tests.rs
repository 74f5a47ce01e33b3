//! Sessions in the form that captures of their time show.

use super::{slp, *};

fn msg(head: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!("MSG {head} {}\r\n", payload.len()).into_bytes();
    out.extend(payload);
    out
}

fn said(from: &str, text: &str) -> Vec<u8> {
    let payload = format!(
        "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=UTF-8\r\n\
         X-MMS-IM-Format: FN=Arial; EF=; CO=0; CS=0; PF=22\r\n\r\n{text}"
    );
    msg(from, payload.as_bytes())
}

fn shown(out: &[Message]) -> Vec<String> {
    out.iter().map(|it| format!("{} -> {}: {:?}", it.from, it.to, it.event)).collect()
}

#[test]
fn a_switchboard_session_is_read_and_its_tickets_are_not() {
    let mut msn = Msn::default();
    let mut out = Vec::new();
    msn.feed(Side::Client, b"USR 1 ann@example.net 17262740.1050826919.32308\r\n", &mut out);
    msn.feed(Side::Server, b"USR 1 OK ann@example.net Ann\r\n", &mut out);
    msn.feed(Side::Client, b"CAL 2 bob@example.net\r\n", &mut out);
    msn.feed(Side::Server, b"CAL 2 RINGING 11752013\r\nJOI bob@example.net Bob\r\n", &mut out);
    msn.feed(Side::Client, &said("3 A", "hello"), &mut out);
    msn.feed(Side::Server, b"ACK 3\r\n", &mut out);
    let typing =
        b"MIME-Version: 1.0\r\nContent-Type: text/x-msmsgscontrol\r\nTypingUser: b\r\n\r\n\r\n";
    msn.feed(Side::Server, &msg("bob@example.net Bob", typing), &mut out);
    msn.feed(Side::Server, &said("bob@example.net Bob", "MSG 1 A 5\r\n hi"), &mut out);
    msn.feed(Side::Server, b"BYE bob@example.net\r\n", &mut out);
    let expected = [
        "bob@example.net -> ann@example.net: Join",
        "ann@example.net -> bob@example.net: Text(\"hello\")",
        "bob@example.net -> ann@example.net: Text(\"MSG 1 A 5\\r\\n hi\")",
        "bob@example.net -> ann@example.net: Leave(\"\")",
    ];
    assert_eq!(shown(&out), expected);
    assert!(!shown(&out).concat().contains("1050826919"));
}

#[test]
fn the_notification_server_is_told_who_it_is_and_the_ticket_stays_unread() {
    let mut msn = Msn::default();
    let mut out = Vec::new();
    msn.feed(
        Side::Client,
        b"USR 3 TWN I ann@example.net\r\nUSR 4 TWN S t=secret@x&p=secret\r\n",
        &mut out,
    );
    assert_eq!(msn.own, "ann@example.net");
    msn.feed(
        Side::Client,
        b"QRY 10 PROD0038W!61ZTF9 32\r\n0123456789abcdef0123456789abcdef",
        &mut out,
    );
    msn.feed(Side::Server, b"QRY 10\r\nUBX bob@example.net 5\r\n<a/>\n", &mut out);
    msn.feed(Side::Server, b"UUX 7 0\r\n", &mut out);
    msn.feed(Side::Server, &said("Hotmail Hotmail", "mail"), &mut out);
    assert_eq!(shown(&out), ["Hotmail -> ann@example.net: Text(\"mail\")"]);
}

#[test]
fn text_in_base64_and_text_in_parts_is_read() {
    let mut msn = Msn::default();
    let mut out = Vec::new();
    let coded = b"Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8=";
    msn.feed(Side::Client, &msg("1 A", coded), &mut out);
    let first = b"Content-Type: text/plain\r\nMessage-ID: {1}\r\nChunks: 2\r\n\r\none ";
    msn.feed(Side::Client, &msg("2 A", first), &mut out);
    msn.feed(Side::Client, &msg("3 A", b"Message-ID: {1}\r\nChunk: 1\r\n\r\ntwo"), &mut out);
    msn.feed(Side::Client, &msg("4 A", b"Message-ID: {2}\r\nChunk: 1\r\n\r\nother"), &mut out);
    let texts: Vec<&Event> = out.iter().map(|it| &it.event).collect();
    let expected = ["hello", "one ", "two"].map(|it| Event::Text(it.into()));
    assert_eq!(texts, expected.iter().collect::<Vec<_>>());
}

#[test]
fn files_are_offered_in_two_ways() {
    let mut msn = Msn::default();
    let mut out = Vec::new();
    let old = b"MIME-Version: 1.0\r\nContent-Type: text/x-msmsgsinvite; charset=UTF-8\r\n\r\n\
        Application-Name: File Transfer\r\nInvitation-Command: INVITE\r\n\
        Invitation-Cookie: 33267\r\nApplication-File: a.iso\r\nApplication-FileSize: 700\r\n\r\n";
    msn.feed(Side::Server, &msg("bob@example.net Bob", old), &mut out);
    let accepted = b"Content-Type: text/x-msmsgsinvite\r\n\r\nInvitation-Command: ACCEPT\r\n\r\n";
    msn.feed(Side::Client, &msg("3 N", accepted), &mut out);
    let text = slp::tests::invite("{5d3e02ab-6190-11d3-bbbb-00c04f795683}", "b.iso", 800);
    for packet in slp::tests::packets(1, &text, 1202) {
        let mut payload = b"MIME-Version: 1.0\r\nContent-Type: application/x-msnmsgrp2p\r\n\
            P2P-Dest: bob@example.net\r\n\r\n"
            .to_vec();
        payload.extend(packet);
        msn.feed(Side::Client, &msg("5 D", &payload), &mut out);
    }
    let expected = [("a.iso", 700), ("b.iso", 800)].map(|(name, size)| Event::Offer {
        name: name.into(),
        size: Some(size),
        address: None,
    });
    assert_eq!(out.into_iter().map(|it| it.event).collect::<Vec<_>>(), expected);
}

#[test]
fn a_gap_within_a_payload_costs_up_to_the_next_line() {
    let mut msn = Msn::default();
    let mut out = Vec::new();
    let whole = said("bob@example.net Bob", "one");
    msn.feed(Side::Server, &whole[..whole.len() - 5], &mut out);
    msn.gap(Side::Server);
    msn.feed(Side::Server, b"rest of it\r\n", &mut out);
    msn.feed(Side::Server, &said("bob@example.net Bob", "two"), &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].event, Event::Text("two".into()));
}
