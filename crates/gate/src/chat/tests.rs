//! What holds for all readers.

use super::*;
use proptest::prelude::*;

const NAMES: [&str; 2] = ["irc", "jabber"];

/// Some conversation of a protocol, all of it from the server.
fn conversation(name: &str) -> Vec<u8> {
    match name {
        "irc" => b":s 001 ann :hi\r\n:b!b@h PRIVMSG #c :one\r\n:b!b@h PRIVMSG #c :\x01DCC SEND a 1 2 3\x01\r\n\
            :b!b@h NICK c\r\n:b!b@h JOIN #a,#b\r\n"
            .to_vec(),
        _ => b"<?xml version='1.0'?><stream:stream a='>'><message from='a' to='b'><body>one \
            &lt;two&gt;</body></message><!-- <message/> --><presence/><message><body><![CDATA[it's]]>\
            </body></message></stream:stream>"
            .to_vec(),
    }
}

fn read(name: &str, portions: &[&[u8]]) -> Vec<Message> {
    let mut reader = Reader::new(name).expect("a protocol that is read");
    let mut out = Vec::new();
    for portion in portions {
        reader.feed(Side::Server, portion, &mut out);
    }
    out
}

#[test]
fn applications_that_are_no_chat_have_no_reader() {
    assert!(Reader::new("bittorrent").is_none());
    for (name, count) in NAMES.iter().zip([5, 2]) {
        assert_eq!(read(name, &[&conversation(name)]).len(), count, "{name}");
    }
}

proptest! {
    #[test]
    fn portions_make_no_difference(cuts in prop::collection::vec(0_usize..400, 0..20)) {
        for name in NAMES {
            let all = conversation(name);
            let mut cuts: Vec<usize> = cuts.iter().map(|it| it % all.len()).collect();
            cuts.extend([0, all.len()]);
            cuts.sort_unstable();
            let portions: Vec<&[u8]> = cuts.windows(2).map(|it| &all[it[0]..it[1]]).collect();
            prop_assert_eq!(read(name, &portions), read(name, &[&all]));
        }
    }

    #[test]
    fn any_bytes_with_gaps_give_bounded_texts(
        feeds in prop::collection::vec((any::<bool>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..300)), 0..20)
    ) {
        for name in NAMES {
            let mut reader = Reader::new(name).expect("a protocol that is read");
            let mut out = Vec::new();
            for (server, gap, bytes) in &feeds {
                let side = if *server { Side::Server } else { Side::Client };
                if *gap {
                    reader.gap(side);
                }
                reader.feed(side, bytes, &mut out);
            }
            for message in out {
                prop_assert!(message.from.len() <= 2 * MAX_TEXT && message.to.len() <= 2 * MAX_TEXT);
            }
        }
    }
}
