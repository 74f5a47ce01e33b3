//! XMPP (RFC 6120 and 6121; rooms by XEP-0045, offered files by XEP-0096 and XEP-0234).
//!
//! Only messages, presence in rooms and offers are looked into. Authentication, registration and
//! whatever else is in a stream are framed and dropped unread. With `proceed` TLS begins and with
//! `compressed` the stream is no text any more: both end the reading.

mod frame;
mod stanza;

use self::{
    frame::{Found, Frames},
    stanza::Stanza,
};
use super::{Event, Message, Protocol};
use classify::flow::Side;

/// Most rooms of a client that are known.
const MOST_ROOMS: usize = 64;

/// Reads both sides of a stream between a client and a server, or two servers.
#[derive(Debug, Default)]
pub(super) struct Xmpp {
    client: Frames,
    server: Frames,
    /// The client's address, once the server has assigned it.
    own: String,
    /// Rooms that the client asked to enter, each with the nick there: `room@service/nick`.
    rooms: Vec<String>,
    over: bool,
}

impl Xmpp {
    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    const fn frames(&mut self, side: Side) -> &mut Frames {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    pub(super) fn gap(&mut self, side: Side) {
        self.frames(side).gap();
    }

    pub(super) fn feed(&mut self, side: Side, bytes: &[u8], out: &mut Vec<Message>) {
        for &byte in bytes {
            if self.over {
                return;
            }
            match self.frames(side).push(byte) {
                None | Some(Found::Stream) => {}
                Some(Found::Stanza(bytes)) => {
                    if let Some(stanza) = Stanza::read(&bytes) {
                        self.stanza(side, stanza, out);
                    }
                }
            }
        }
    }

    fn stanza(&mut self, side: Side, stanza: Stanza, out: &mut Vec<Message>) {
        let from_server = side == Side::Server;
        match stanza.name.as_str() {
            "proceed" if from_server => {
                self.over = true;
                let (from, to) = Default::default();
                out.push(Message {
                    protocol: Protocol::Xmpp,
                    side,
                    from,
                    to,
                    event: Event::Encrypted,
                });
            }
            "compressed" if from_server => self.over = true,
            "message" if stanza.kind != "error" => self.message(side, stanza, out),
            "presence" => self.presence(side, &stanza, out),
            "iq" => {
                if from_server && let Some(own) = stanza.bound {
                    self.own = own;
                } else if let Some((name, size)) = stanza.file.clone() {
                    let event = Event::Offer { name, size, address: None };
                    out.push(self.of(side, stanza, event));
                }
            }
            _ => {}
        }
    }

    fn message(&self, side: Side, stanza: Stanza, out: &mut Vec<Message>) {
        let to_room = stanza.kind == "groupchat";
        if to_room && side == Side::Server && self.rooms.contains(&stanza.from) {
            // A room sends everybody their own messages back (XEP-0045, section 7.4).
            return;
        }
        if let Some(body) = &stanza.body {
            let event = Event::Text(body.clone());
            out.push(self.of(side, stanza, event));
        } else if let Some(subject) = &stanza.subject {
            let event = Event::Topic(subject.clone());
            out.push(self.of(side, stanza, event));
        }
    }

    fn presence(&mut self, side: Side, stanza: &Stanza, out: &mut Vec<Message>) {
        if side == Side::Server {
            return;
        }
        let place = self.rooms.iter().position(|room| *room == stanza.to);
        let leaves = stanza.kind == "unavailable";
        let event = match place {
            Some(place) if leaves => {
                self.rooms.swap_remove(place);
                Event::Leave(String::new())
            }
            None if stanza.room && stanza.kind.is_empty() && self.rooms.len() < MOST_ROOMS => {
                self.rooms.push(stanza.to.clone());
                Event::Join
            }
            _ => return,
        };
        let room = stanza.to.split('/').next().unwrap_or_default().to_owned();
        out.push(Message {
            protocol: Protocol::Xmpp,
            side,
            from: self.own.clone(),
            to: room,
            event,
        });
    }

    /// A message of who sent a stanza; a client need not say who it is.
    fn of(&self, side: Side, stanza: Stanza, event: Event) -> Message {
        let own = |address: String, is_own: bool| match address {
            empty if empty.is_empty() && is_own => self.own.clone(),
            address => address,
        };
        let from = own(stanza.from, side == Side::Client);
        let to = own(stanza.to, side == Side::Server);
        Message { protocol: Protocol::Xmpp, side, from, to, event }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds stanzas, `>` of the client and `<` of the server with a blank, and shows what is found.
    fn read(lines: &[&str]) -> Vec<String> {
        let mut xmpp = Xmpp::default();
        let mut out = Vec::new();
        for line in lines {
            let (side, text) = line.split_at(2);
            let side = if side == "> " { Side::Client } else { Side::Server };
            xmpp.feed(side, text.as_bytes(), &mut out);
        }
        out.iter().map(|it| format!("{} -> {}: {:?}", it.from, it.to, it.event)).collect()
    }

    const LOGIN: [&str; 9] = [
        "> <?xml version='1.0'?><stream:stream to='b.example' xmlns='jabber:client' \
         xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>",
        "< <?xml version='1.0'?><stream:stream from='b.example' id='x'><stream:features>\
         <mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism>\
         </mechanisms></stream:features>",
        "> <auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGFubgBodW50ZXIy</auth>",
        "< <success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
        "> <stream:stream to='b.example' xmlns='jabber:client'>",
        "< <stream:stream from='b.example'><stream:features/>",
        "> <iq type='set' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
        "< <iq type='result' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
         <jid>ann@b.example/home</jid></bind></iq>",
        "> <iq type='set'><query xmlns='jabber:iq:register'><username>ann</username>\
         <password>hunter2</password></query></iq>",
    ];

    #[test]
    fn a_conversation_is_read_and_authentication_is_not() {
        let mut lines = LOGIN.to_vec();
        lines.extend([
            "> <message to='bob@b.example' type='chat'><body>hunting &amp; fishing</body></message>",
            "< <message from='bob@b.example/x' to='ann@b.example/home'><body>yes</body></message>",
            "< <message from='bob@b.example/x' to='ann@b.example/home'><composing/></message>",
            "< <message type='error' from='b'><body>returned</body></message>",
        ]);
        let expected = [
            "ann@b.example/home -> bob@b.example: Text(\"hunting & fishing\")",
            "bob@b.example/x -> ann@b.example/home: Text(\"yes\")",
        ];
        let found = read(&lines);
        assert_eq!(found, expected);
        assert!(!found.concat().contains("hunter2") && !found.concat().contains("AGFub"));
    }

    #[test]
    fn messages_to_a_room_are_read_once() {
        let mut lines = LOGIN.to_vec();
        lines.extend([
            "> <presence to='r@rooms.example/annie'><x xmlns='http://jabber.org/protocol/muc'/></presence>",
            "> <message to='r@rooms.example' type='groupchat'><body>one</body></message>",
            "< <message from='r@rooms.example/annie' type='groupchat'><body>one</body></message>",
            "< <message from='r@rooms.example/bob' type='groupchat'><body>two</body></message>",
            "< <message from='r@rooms.example/bob' type='groupchat'><subject>new</subject></message>",
            "> <presence to='r@rooms.example/annie' type='unavailable'/>",
        ]);
        let expected = [
            "ann@b.example/home -> r@rooms.example: Join",
            "ann@b.example/home -> r@rooms.example: Text(\"one\")",
            "r@rooms.example/bob -> ann@b.example/home: Text(\"two\")",
            "r@rooms.example/bob -> ann@b.example/home: Topic(\"new\")",
            "ann@b.example/home -> r@rooms.example: Leave(\"\")",
        ];
        assert_eq!(read(&lines), expected);
    }

    #[test]
    fn nothing_is_read_once_encryption_begins() {
        let found = read(&[
            "> <stream:stream><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
            "< <stream:stream><proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
            "> <message to='a'><body>b</body></message>",
        ]);
        assert_eq!(found, [" -> : Encrypted"]);
    }
}
