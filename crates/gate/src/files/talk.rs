//! Chat within managed flows, and the files that are offered in it: IRC's DCC opens a connection of
//! its own, which is announced here.

use super::{Ahead, Protocol, transfers::Transfers};
use crate::{
    chat::{self, Reader},
    flow::Side,
    manage::{Event, Expectation, Promise, Promised},
};
use std::sync::Arc;

/// What announced flows are called.
pub(crate) const DATA: &str = "dcc";

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
                    let promise = Promise::default();
                    if let Ok(mut file) = promise.file.lock() {
                        *file = Some(Promised {
                            path: Some(name.clone().into_bytes()),
                            sender: Some(address.ip()),
                            start: 0,
                            size: *size,
                        });
                    }
                    transfers.tell(Event::Expect(Expectation {
                        client: None,
                        server: *address,
                        application: DATA,
                        promise: Arc::new(promise),
                    }));
                }
                chat::Event::Encrypted => self.secret = true,
                _ => {}
            }
            transfers.tell(Event::Chat(message));
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
