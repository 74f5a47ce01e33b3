//! Chat within managed flows, and the files that are offered in it: IRC's DCC opens a connection of
//! its own, which is announced here.

use super::{Ahead, Protocol, transfers::Transfers};
use crate::{
    chat::{self, Reader},
    event::{ANNOUNCED, Event, Expectation, Promise, Promised},
};
use classify::flow::Side;
use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

/// What announced flows are called.
const DATA: &str = ANNOUNCED[1];

/// A flow of a chat protocol.
#[derive(Debug)]
pub(crate) struct Talk {
    application: String,
    reader: Reader,
    secret: bool,
}

impl Talk {
    pub(crate) fn new(application: &str) -> Option<Self> {
        let reader = Reader::new(application)?;
        Some(Self { application: application.to_owned(), reader, secret: false })
    }
}

/// Announces the flow that will carry a file.
fn expect(
    name: &str,
    size: Option<u64>,
    server: SocketAddr,
    sender: Option<IpAddr>,
    transfers: &mut Transfers,
) {
    let path = Some(name.as_bytes().to_vec());
    let file = Mutex::new(Some(Promised { path, sender, start: 0, size }));
    transfers.emit(Event::Expect(Expectation {
        client: None,
        server,
        application: DATA,
        number: 0,
        promise: Arc::new(Promise { file }),
    }));
}

impl Protocol for Talk {
    fn bytes(&mut self, from: Side, _at: u64, bytes: &[u8], transfers: &mut Transfers) {
        if self.secret {
            return;
        }
        let mut messages = Vec::new();
        self.reader.feed(from, bytes, &mut messages);
        for message in messages {
            match &message.event {
                chat::Event::Offer { name, size, address: Some(address) } => {
                    expect(name, *size, *address, Some(address.ip()), transfers);
                }
                // It is sent by who speaks first: one who calls an offer an answer is believed nothing.
                chat::Event::Await { name, size, address } => {
                    expect(name, *size, *address, None, transfers);
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
        if let Some(fresh) = Self::new(&self.application) {
            *self = fresh;
        }
    }

    fn ahead(&self, _from: Side) -> Ahead {
        if self.secret { Ahead::Idle(None) } else { Ahead::Read }
    }
}
