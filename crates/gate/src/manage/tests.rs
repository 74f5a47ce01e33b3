//! Managers fed with packets of whole connections.

mod ftp;
mod http;
mod peers;
mod utp;

use super::*;
use crate::event::{FileHash, FileNamed};

/// A flow and its manager; text goes in, what happened comes out.
pub(super) struct Bench {
    pub(super) manager: Manager,
    pub(super) events: Vec<Event>,
    /// Next sequence numbers of both sides.
    pub(super) next: [u32; 2],
    pub(super) interests: [Interest; 2],
}

pub(super) fn flow() -> Flow {
    Flow {
        transport: Transport::Tcp,
        client: "10.0.0.5:40000".parse().unwrap(),
        server: "192.0.2.7:80".parse().unwrap(),
    }
}

impl Bench {
    pub(super) fn new(application: &str, settings: &Settings) -> Self {
        Self::of(Manager::new(application, &flow(), settings).unwrap())
    }

    pub(super) fn of(manager: Manager) -> Self {
        let interests = [Interest::All; 2];
        Self { manager, events: Vec::new(), next: [1000, u32::MAX - 50], interests }
    }

    pub(super) fn send(&mut self, from: Side, bytes: impl AsRef<[u8]>) {
        self.flags(from, 0, bytes.as_ref());
    }

    pub(super) fn client(&mut self, bytes: impl AsRef<[u8]>) {
        self.send(Side::Client, bytes);
    }

    pub(super) fn server(&mut self, bytes: impl AsRef<[u8]>) {
        self.send(Side::Server, bytes);
    }

    pub(super) fn close(&mut self, from: Side) {
        self.flags(from, Tcp::FIN, b"");
    }

    /// Of a packet of `length` bytes only these were copied.
    pub(super) fn cut(&mut self, from: Side, bytes: impl AsRef<[u8]>, length: u32) {
        self.part(from, 0, bytes.as_ref(), length);
    }

    fn flags(&mut self, from: Side, flags: u8, bytes: &[u8]) {
        self.part(from, flags, bytes, bytes.len() as u32);
    }

    fn part(&mut self, from: Side, flags: u8, bytes: &[u8], length: u32) {
        let sequence = self.next[index(from)];
        let acknowledgement = self.next[index(from.other())];
        let tcp = Tcp { sequence, acknowledgement, flags: flags | Tcp::ACK };
        self.next[index(from)] =
            sequence.wrapping_add(length).wrapping_add(u32::from(flags & Tcp::FIN));
        let packet = Packet { at_ns: 0, from, tcp: Some(tcp), payload: bytes, length };
        self.interests = self.manager.packet(&packet, &mut self.events);
    }

    /// Answers everything that was asked.
    pub(super) fn answer(&mut self, decision: FileVerdict) {
        let asked: Vec<_> = self.names().iter().map(|file| file.transfer).collect();
        for transfer in asked {
            self.interests = self.manager.answer(transfer, decision, &mut self.events);
        }
    }

    pub(super) fn names(&self) -> Vec<FileNamed> {
        let named = self.events.iter().filter_map(|event| match event {
            Event::FileNamed(file) => Some((**file).clone()),
            _ => None,
        });
        named.collect()
    }

    /// Names only.
    pub(super) fn name_list(&self) -> Vec<String> {
        self.names().into_iter().map(|file| file.name.unwrap_or_default()).collect()
    }

    pub(super) fn content(&self, wanted: u32) -> Vec<u8> {
        let content = self.events.iter().filter_map(|event| match event {
            Event::Content { transfer, bytes } if transfer.0 == wanted => Some(bytes.as_slice()),
            _ => None,
        });
        content.collect::<Vec<_>>().concat()
    }

    /// Of each ended file: bytes and whether it is complete.
    pub(super) fn ends(&self) -> Vec<(u32, u64, bool)> {
        let ends = self.events.iter().filter_map(|event| match event {
            Event::FileEnded { transfer, bytes, complete, .. } => {
                Some((transfer.0, *bytes, *complete))
            }
            _ => None,
        });
        ends.collect()
    }

    /// How many bytes of what a side has sent are held: the distance from `hold_from` to its end. None where
    /// that is far ahead, so that only what overlaps is held.
    pub(super) fn held(&self, side: Side) -> Option<u32> {
        let held = self.manager.hold_from(side);
        let held = held.map(|from| self.next[index(side)].wrapping_sub(from));
        held.filter(|held| held.cast_signed() > -(1 << 28))
    }
}

#[test]
fn what_is_read_is_known_without_a_manager() {
    let udp = Flow { transport: Transport::Udp, ..flow() };
    for application in [
        "http",
        "http.video",
        "gnutella",
        "bittorrent",
        "edonkey",
        "directconnect",
        "ftp",
        "ftp_control",
        "irc",
        "xmpp",
        "jabber",
        "tls",
        "ftp-data",
        "unknown",
        "",
    ] {
        for flow in [flow(), udp] {
            let is_managed = Manager::new(application, &flow, &Settings::default()).is_some();
            assert_eq!(Manager::reads(application, flow.transport), is_managed, "{application}");
        }
    }
}
