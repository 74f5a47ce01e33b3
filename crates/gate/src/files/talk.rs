//! Chat within managed flows, and the files that are offered in it: IRC's DCC opens a connection of
//! its own, which is announced here.

use super::{Ahead, Protocol, transfers::Transfers};
use crate::{
    chat::{self, Reader},
    event::{ANNOUNCED, Event, Expectation, Promise, Promised},
};
use classify::flow::{Flow, Side};
use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

/// What announced flows are called.
const DATA: &str = ANNOUNCED[1];

/// A flow of a chat protocol.
#[derive(Debug)]
pub(crate) struct Talk {
    flow: Flow,
    application: String,
    reader: Reader,
    secret: bool,
}

impl Talk {
    pub(crate) fn new(application: &str, flow: &Flow) -> Option<Self> {
        let reader = Reader::new(application)?;
        Some(Self { flow: *flow, application: application.to_owned(), reader, secret: false })
    }

    /// Announces the flow that will carry a file, to the socket that is stated in a message. The client waits
    /// at its own address, whatever it states; what it receives is for it alone.
    fn expect(
        &self,
        from: Side,
        stated: SocketAddr,
        promised: impl FnOnce(SocketAddr) -> Promised,
        transfers: &mut Transfers,
    ) {
        let client = self.flow.client.ip();
        let (opener, server) = match from {
            Side::Client => (None, SocketAddr::new(client, stated.port())),
            Side::Server => (Some(client), stated),
        };
        let file = Mutex::new(Some(promised(server)));
        transfers.emit(Event::Expect(Expectation {
            client: opener,
            server,
            application: DATA,
            number: 0,
            promise: Arc::new(Promise { file }),
        }));
    }
}

impl Protocol for Talk {
    fn bytes(&mut self, from: Side, _at: u64, bytes: &[u8], transfers: &mut Transfers) {
        if self.secret {
            return;
        }
        let mut messages = Vec::new();
        self.reader.feed(from, bytes, &mut messages);
        for message in messages {
            let promised = |name: &String, size, sender| {
                let path = Some(name.as_bytes().to_vec());
                Promised { path, sender, start: 0, size }
            };
            match &message.event {
                chat::Event::Offer { name, size, address: Some(address) } => {
                    let file = |server: SocketAddr| promised(name, *size, Some(server.ip()));
                    self.expect(from, *address, file, transfers);
                }
                // It is sent by who speaks first: one who calls an offer an answer is believed nothing.
                chat::Event::Await { name, size, address } => {
                    self.expect(from, *address, |_| promised(name, *size, None), transfers);
                }
                chat::Event::Encrypted => self.secret = true,
                _ => {}
            }
            transfers.emit(Event::Chat(message));
        }
    }

    fn gap(&mut self, from: Side, _at: u64, _length: u64, _transfers: &mut Transfers) {
        self.reader.gap(from);
    }

    fn end(&mut self, _from: Side, _complete: bool, _transfers: &mut Transfers) {}

    fn restart(&mut self, _transfers: &mut Transfers) {
        if let Some(fresh) = Self::new(&self.application, &self.flow) {
            *self = fresh;
        }
    }

    fn ahead(&self, _from: Side) -> Ahead {
        if self.secret { Ahead::Idle(None) } else { Ahead::Read }
    }
}
