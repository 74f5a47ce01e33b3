//! Messages as RFC 2812 has them, and what clients and servers send besides.

use super::*;

/// Feeds lines, `>` of the client and `<` of the server, and shows what is found.
fn read(lines: &[&str]) -> Vec<String> {
    let mut irc = Irc::new();
    let mut out = Vec::new();
    for line in lines {
        let (side, line) = line.split_at(1);
        let side = if side == ">" { Side::Client } else { Side::Server };
        irc.feed(side, format!("{}\r\n", line.trim_start()).as_bytes(), &mut out);
    }
    out.iter().map(|it| format!("{} -> {}: {:?}", it.from, it.to, it.event)).collect()
}

#[test]
fn both_sides_of_a_conversation_are_read_once() {
    let found = read(&[
        "> NICK ann",
        "> USER a 0 * :Ann",
        "< :irc.example.net 001 ann :Welcome",
        "> JOIN #nigh secretkey",
        "< :ann!a@10.0.0.5 JOIN #nigh",
        "< :irc.example.net 332 ann #nigh :the topic",
        "> PRIVMSG #nigh :hello, world",
        "< :bob!b@10.0.0.6 PRIVMSG #nigh :hi ann",
        "< @time=2026-11-22T18:00:00Z;account=bob :bob!b@10.0.0.6 PRIVMSG ann :psst: a b",
        "< :ann!a@10.0.0.5 PRIVMSG #nigh :hello, world",
        "> privmsg bob one-word",
        "< :bob!b@10.0.0.6 NOTICE ann :away",
        "< :irc.example.net NOTICE * :*** Looking up your hostname",
        "< NOTICE AUTH :*** Found it",
        "< :bob!b@10.0.0.6 TOPIC #nigh :new",
        "< :bob!b@10.0.0.6 PART #nigh :bye",
        "< :ann!a@10.0.0.5 NICK anna",
        "> PRIVMSG #nigh :\u{1}ACTION waves\u{1}",
        "< :op!o@h KICK #nigh anna :enough",
        "< :bob!b@10.0.0.6 QUIT :gone",
    ]);
    let expected = [
        "ann!a@10.0.0.5 -> #nigh: Join",
        "ann -> #nigh: Text(\"hello, world\")",
        "bob!b@10.0.0.6 -> #nigh: Text(\"hi ann\")",
        "bob!b@10.0.0.6 -> ann: Text(\"psst: a b\")",
        "ann -> bob: Text(\"one-word\")",
        "bob!b@10.0.0.6 -> ann: Notice(\"away\")",
        "bob!b@10.0.0.6 -> #nigh: Topic(\"new\")",
        "bob!b@10.0.0.6 -> #nigh: Leave(\"bye\")",
        "ann!a@10.0.0.5 -> : Rename(\"anna\")",
        "anna -> #nigh: Action(\"waves\")",
        "anna -> #nigh: Leave(\"kicked by op!o@h: enough\")",
        "bob!b@10.0.0.6 -> : Leave(\"gone\")",
    ];
    assert_eq!(found, expected);
}

#[test]
fn files_and_connections_that_are_offered_have_their_addresses() {
    let found = read(&[
        "< :bob!b@h PRIVMSG ann :\u{1}DCC SEND a.iso 167772166 5000 700\u{1}",
        "< :bob!b@h PRIVMSG ann :\u{1}DCC SEND \"a b.iso\" fe80::1 5000\u{1}",
        "< :bob!b@h PRIVMSG ann :\u{1}DCC SEND passive 0 0 700 17\u{1}",
        "> PRIVMSG bob :\u{1}DCC SEND passive 167772165 5002 700 17\u{1}",
        "< :bob!b@h PRIVMSG ann :\u{1}DCC CHAT chat 167772166 5001\u{1}",
        "< :bob!b@h PRIVMSG ann :\u{1}DCC RESUME a.iso 5000 10\u{1}",
        "< :bob!b@h PRIVMSG ann :\u{1}VERSION\u{1}",
    ]);
    let expected = [
        "bob!b@h -> ann: Offer { name: \"a.iso\", size: Some(700), address: Some(10.0.0.6:5000) }",
        "bob!b@h -> ann: Offer { name: \"a b.iso\", size: None, address: Some([fe80::1]:5000) }",
        "bob!b@h -> ann: Offer { name: \"passive\", size: Some(700), address: None }",
        " -> bob: Await { name: \"passive\", size: Some(700), address: 10.0.0.5:5002 }",
        "bob!b@h -> ann: Direct(10.0.0.6:5001)",
    ];
    assert_eq!(found, expected);
}

#[test]
fn passwords_are_passed_over_wherever_they_go() {
    let found = read(&[
        "> PASS hunter2",
        "> OPER ann hunter2",
        "> AUTHENTICATE aHVudGVyMg==",
        "> NICKSERV IDENTIFY hunter2",
        "> JOIN #nigh hunter2",
        "> MODE #nigh +k hunter2",
        "> PRIVMSG NickServ :IDENTIFY hunter2",
        "> PRIVMSG nickserv@services.example :register hunter2 a@b",
        "> PRIVMSG Q@CServe.quakenet.org :AUTH ann hunter2",
        "> NOTICE AuthServ :auth ann hunter2",
        "> PRIVMSG bot :identify hunter2",
        "> PRIVMSG #nigh :identify hunter2",
        "> PRIVMSG #nigh :/msg NickServ identify ann hunter2",
        "< :NickServ!n@services. NOTICE ann :Your password is now hunter2",
    ]);
    assert_eq!(found, [""; 0]);
    // Words that people use are no commands.
    let found =
        read(&["> PRIVMSG #nigh :set a date for the next meeting", "> PRIVMSG bob :identify"]);
    assert_eq!(found.len(), 2);
}

#[test]
fn nothing_is_read_once_encryption_begins() {
    let mut irc = Irc::new();
    let mut out = Vec::new();
    irc.feed(Side::Client, b"STARTTLS\r\n", &mut out);
    irc.feed(
        Side::Server,
        b":s.example 670 * :STARTTLS successful\r\n:b!b@h JOIN #x\r\n",
        &mut out,
    );
    irc.feed(Side::Client, b"PRIVMSG a :b\r\n", &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].event, Event::Encrypted);
    assert!(irc.is_over());
}

#[test]
fn a_gap_costs_the_lines_around_it() {
    let mut irc = Irc::new();
    let mut out = Vec::new();
    irc.feed(Side::Server, b":b!b@h PRIVMSG a :one\r\n:b!b@h PRIVMSG a :tw", &mut out);
    irc.gap(Side::Server);
    irc.feed(Side::Server, b"VMSG a :three\r\n:b!b@h PRIVMSG a :four\r\n", &mut out);
    let texts: Vec<&Event> = out.iter().map(|it| &it.event).collect();
    assert_eq!(texts, [&Event::Text("one".into()), &Event::Text("four".into())]);
}

#[test]
fn text_that_is_not_utf8_is_latin_1() {
    let mut irc = Irc::new();
    let mut out = Vec::new();
    irc.feed(Side::Server, b":b!b@h PRIVMSG a :caf\xe9\r\n", &mut out);
    assert_eq!(out[0].event, Event::Text("caf\u{e9}".into()));
}
