//! What is done with a flow whose label is known and of which more is to be known: the files in it.
//!
//! A [`Manager`] is fed with the flow's packets (the first ones again, which the classifier saw, then
//! all that the kernel copies) and orders from the kernel how much more it needs, so that content that
//! nobody looks at never leaves the kernel. It is pure: no clock, no sockets, no threads.
//!
//! ```text
//! packets --> stream::Half, one a side --> files::Protocol --> Transfers --> events
//!    ^                                                            |             |
//!    |   Interest: All | SkipTo(sequence) | Nothing, hold_from    |       policy answers:
//!    `------------------------------------------------------------' <---  allow, scan, deny
//! ```
//!
//! Holding: a packet that reaches beyond `hold_from` of its side is held; once it no longer does, it
//! is to be released. A file that is scanned passes but for the packet with its last byte, so that
//! neither a small congestion window nor a lost segment can stop what has to arrive for a verdict.
//! Of content without a length the packet with the last byte so far is held until more content comes;
//! when its sender pauses, [`Manager::pause`] asks for a verdict on what came.

#[cfg(test)]
mod tests;

use crate::{
    chat,
    event::{Event, Expectation, FileVerdict, Interest, Settings, TransferId},
    files::{
        Ahead, Protocol, direct_connect::DirectConnect, edonkey::Edonkey, ftp, http::Http,
        peer_wire::PeerWire, talk::Talk, transfers::Transfers, utp::Utp,
    },
    stream::{Half, Losses, Piece},
};
use classify::{
    flow::{Flow, Side, Transport},
    packet::{Packet, Tcp},
};

/// Bytes that are skipped at once: a quarter of the range of sequence numbers.
const SKIP: u64 = 1 << 30;

/// The files of one flow.
#[derive(Debug)]
pub struct Manager {
    halves: [Half; 2],
    protocol: Box<dyn Protocol>,
    transfers: Transfers,
    /// Instead of the others, in a flow of UDP.
    utp: Option<Box<Utp>>,
}

impl Manager {
    /// A manager for a flow of this application; none when there is nothing in it to manage.
    pub fn new(application: &str, flow: &Flow, settings: &Settings) -> Option<Self> {
        if flow.transport == Transport::Udp {
            let utp = (application == "bittorrent").then(|| Box::new(Utp::new(settings)))?;
            let none = Box::new(PeerWire::new(&settings.budget));
            return Some(Self { utp: Some(utp), ..Self::of(none, settings) });
        }
        let protocol: Box<dyn Protocol> = match application {
            "http" | "gnutella" => Box::new(Http::default()),
            "bittorrent" => Box::new(PeerWire::new(&settings.budget)),
            "edonkey" => Box::new(Edonkey::default()),
            "directconnect" => Box::new(DirectConnect::default()),
            "ftp" | "ftp_control" => Box::new(ftp::Control::new(flow)),
            _ if application.starts_with("http.") => Box::new(Http::default()),
            _ => Box::new(Talk::new(application, flow)?),
        };
        Some(Self::of(protocol, settings))
    }

    /// Whether there is something to manage in flows of this application.
    pub fn reads(application: &str, transport: Transport) -> bool {
        match transport {
            Transport::Udp => application == "bittorrent",
            Transport::Tcp => {
                let known =
                    ["gnutella", "bittorrent", "edonkey", "directconnect", "ftp", "ftp_control"];
                known.contains(&application)
                    || application == "http"
                    || application.starts_with("http.")
                    || chat::Reader::new(application).is_some()
            }
        }
    }

    /// A manager for a flow that another one announced ([`Event::Expect`]).
    pub fn expected(expectation: &Expectation, flow: &Flow, settings: &Settings) -> Self {
        let promise = std::sync::Arc::clone(&expectation.promise);
        Self::of(Box::new(ftp::Data::new(flow, promise)), settings)
    }

    fn of(protocol: Box<dyn Protocol>, settings: &Settings) -> Self {
        let half = || {
            let mut half = Half::new(settings.early_bytes, settings.budget.clone());
            half.judge(settings.hold);
            half
        };
        Self { halves: [half(), half()], protocol, transfers: Transfers::new(settings), utp: None }
    }

    /// Whether a flow that nobody has named yet may be one of UDP with files, by a datagram.
    pub fn may_begin(datagram: &[u8]) -> bool {
        Utp::begins(datagram)
    }

    /// A packet of the flow, in the order in which packets were copied. What came of it is added to
    /// `events`; those that ask for a decision are to be answered before the next packet.
    /// Returns what is needed of the client's and of the server's further packets.
    pub fn packet(&mut self, packet: &Packet<'_>, events: &mut Vec<Event>) -> [Interest; 2] {
        if let Some(tcp) = &packet.tcp {
            self.segment(packet, tcp);
        } else if let Some(utp) = &mut self.utp {
            utp.packet(packet, &mut self.transfers);
        }
        self.skip();
        self.transfers.events_into(events);
        self.interests()
    }

    /// The receiver of what `from` sends has acknowledged everything before a sequence number.
    pub fn taken(&mut self, from: Side, number: u32) {
        let Self { halves, protocol, transfers, .. } = self;
        let mut sink = |at, piece: Piece<'_>| feed(protocol, transfers, from, at, piece);
        halves[index(from)].acknowledged(number, &mut sink);
    }

    /// Policy's answer to [`Event::FileNamed`]. Content that waited for it is added to `events`.
    pub fn answer(
        &mut self,
        transfer: TransferId,
        decision: FileVerdict,
        events: &mut Vec<Event>,
    ) -> [Interest; 2] {
        self.transfers.answer(transfer, decision);
        self.skip();
        self.transfers.events_into(events);
        self.interests()
    }

    /// Policy decides otherwise of a transfer whose content comes in parts, now that more is known of it.
    pub fn revise(&mut self, transfer: TransferId, decision: FileVerdict) -> [Interest; 2] {
        self.transfers.revise(transfer, decision);
        self.skip();
        self.interests()
    }

    /// Whether packets that may begin a file are held from here on.
    pub fn hold(&mut self, hold: bool) {
        self.transfers.set_hold(hold);
        self.halves.iter_mut().for_each(|half| half.judge(hold));
    }

    /// Nothing of a transfer is held any more: the scanner found nothing in all of it, or has failed and
    /// it may pass all the same. A find is answered by refusing the flow.
    pub fn allow(&mut self, transfer: TransferId) -> [Interest; 2] {
        self.transfers.allow(transfer);
        self.skip();
        self.interests()
    }

    /// The scanner found nothing in the first `bytes` bytes of a transfer, as [`Event::Paused`] had
    /// them, or in a part ([`Event::Block`]): what was held for that may pass.
    pub fn cleared(&mut self, transfer: TransferId, bytes: u64) -> [Interest; 2] {
        self.transfers.cleared(transfer, bytes);
        self.skip();
        self.interests()
    }

    /// Nothing has come for a while and packets are held: asks for a verdict on what came of content
    /// whose length is not known ([`Event::Paused`]).
    pub fn pause(&mut self, events: &mut Vec<Event>) {
        self.transfers.pause(self.read());
        self.transfers.events_into(events);
    }

    /// What is missing will not come any more: reads on behind it.
    pub fn give_up(&mut self, events: &mut Vec<Event>) -> [Interest; 2] {
        let Self { halves, protocol, transfers, utp } = self;
        if let Some(utp) = utp {
            utp.give_up(transfers);
        }
        for (half, side) in halves.iter_mut().zip([Side::Client, Side::Server]) {
            half.give_up(&mut |at, piece: Piece<'_>| feed(protocol, transfers, side, at, piece));
        }
        self.skip();
        self.transfers.events_into(events);
        self.interests()
    }

    /// How far both sides were read.
    pub fn read(&self) -> [u64; 2] {
        if let Some(utp) = &self.utp {
            return utp.read();
        }
        [self.halves[0].position(), self.halves[1].position()]
    }

    /// The flow is over, also if its end was not seen: ends what is open.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        if let Some(utp) = &mut self.utp {
            utp.finish(&mut self.transfers);
        }
        for side in [Side::Client, Side::Server] {
            let half = &self.halves[index(side)];
            if !half.ended() {
                self.protocol.end(side, false, &mut self.transfers);
            }
        }
        self.transfers.finish();
        self.transfers.events_into(events);
    }

    /// What is needed of the client's and of the server's further packets.
    pub fn interests(&self) -> [Interest; 2] {
        if let Some(utp) = &self.utp {
            return [if utp.is_idle() { Interest::Nothing } else { Interest::All }; 2];
        }
        [self.interest(Side::Client), self.interest(Side::Server)]
    }

    /// The sequence number of a side from which on packets are to be held: those that reach beyond
    /// it. None when nothing is. In a flow of UDP all are, or none.
    pub fn hold_from(&self, side: Side) -> Option<u32> {
        if self.utp.is_some() {
            return self.transfers.scans_parts().then_some(0);
        }
        let half = &self.halves[index(side)];
        let mut from = self.transfers.hold(side);
        if self.transfers.holding() {
            // What is not read yet may be the head of a file; behind the FIN nothing may come.
            let unread = match self.protocol.ahead(side) {
                _ if half.ended() => Some(1),
                Ahead::Read | Ahead::Head | Ahead::Lost => Some(0),
                Ahead::Content { run, .. } | Ahead::Idle(run) => run,
            };
            let unread = unread.map(|run| half.position().saturating_add(run));
            // The kernel holds what overlaps where it holds anything.
            let far = (half.position() & !(SKIP / 2 - 1)) + SKIP;
            from = from.into_iter().chain(unread).chain([far]).min();
        }
        // Farther ahead sequence numbers cannot be compared; what is there is read before.
        half.sequence(from?.min(half.position().saturating_add(SKIP)))
    }

    /// What a datagram that is held is known by; none when it need not wait.
    pub fn token(&self, packet: &Packet<'_>) -> Option<u32> {
        self.utp.as_ref()?.token(packet)
    }

    /// Whether a datagram that is held waits still.
    pub fn waits(&self, from: Side, token: u32) -> bool {
        self.utp.as_ref().is_some_and(|utp| utp.waits(from, token, &self.transfers))
    }

    /// The sequence number up to which a side was read; none before its first segment, and of UDP.
    pub fn sequence(&self, side: Side) -> Option<u32> {
        let half = &self.halves[index(side)];
        half.sequence(half.position())
    }

    /// What went wrong in a side's stream.
    pub fn losses(&self, side: Side) -> Losses {
        self.halves[index(side)].losses()
    }

    fn segment(&mut self, packet: &Packet<'_>, tcp: &Tcp) {
        let Self { halves: [client, server], protocol, transfers, .. } = self;
        let (own, other) = match packet.from {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        let from = packet.from;
        let mut begins = false;
        if tcp.has(Tcp::ACK) {
            let mut sink =
                |at, piece: Piece<'_>| feed(protocol, transfers, from.other(), at, piece);
            if tcp.has(Tcp::SYN) {
                begins = other.answered(tcp.acknowledgement, &mut sink);
            }
            other.acknowledged(tcp.acknowledgement, &mut sink);
        }
        let mut sink = |at, piece: Piece<'_>| feed(protocol, transfers, from, at, piece);
        own.segment(tcp, packet.payload, packet.length, &mut sink);
        if begins {
            own.answered(tcp.sequence.wrapping_add(1), &mut sink);
        }
    }

    /// Lets the streams know what they need not wait for.
    fn skip(&mut self) {
        for side in [Side::Client, Side::Server] {
            if let Some(run) = unneeded(self.protocol.ahead(side), &self.transfers, side) {
                let half = &mut self.halves[index(side)];
                half.skip(half.position().saturating_add(run));
            }
        }
    }

    fn interest(&self, side: Side) -> Interest {
        let half = &self.halves[index(side)];
        if half.ended() {
            // What comes again, or behind it, is compared.
            return if self.transfers.holding() { Interest::All } else { Interest::Nothing };
        }
        let ahead = self.protocol.ahead(side);
        if ahead == Ahead::Idle(None) {
            return Interest::Nothing;
        }
        // Content that is hashed or scanned is needed as soon as it begins.
        let brief = !self.transfers.reads_all();
        let run = match (unneeded(ahead, &self.transfers, side), ahead) {
            (None, Ahead::Lost) if brief => return Interest::Heads(None),
            (None, Ahead::Head) if brief => 0,
            (None | Some(0), _) => return Interest::All,
            // A skip that is already behind what was seen is one for packets to come.
            (Some(run), _) => run.min(SKIP),
        };
        let heads = brief && matches!(ahead, Ahead::Head | Ahead::Content { last: true, .. });
        match half.sequence(half.position() + run) {
            None => Interest::All,
            Some(to) if heads => Interest::Heads(Some(to)),
            Some(to) => Interest::SkipTo(to),
        }
    }
}

/// Bytes ahead in a direction that nobody needs.
fn unneeded(ahead: Ahead, transfers: &Transfers, side: Side) -> Option<u64> {
    match ahead {
        Ahead::Read | Ahead::Head | Ahead::Lost => None,
        Ahead::Idle(run) => Some(run.unwrap_or(SKIP)),
        Ahead::Content { .. } if transfers.needs(side) => None,
        // The packet with the last byte is read, so that the file's end is known when it comes.
        Ahead::Content { run: Some(run), last: true } => Some(run.saturating_sub(1)),
        Ahead::Content { run, .. } => Some(run.unwrap_or(SKIP)),
    }
}

fn feed(
    protocol: &mut Box<dyn Protocol>,
    transfers: &mut Transfers,
    from: Side,
    at: u64,
    piece: Piece<'_>,
) {
    match piece {
        Piece::Bytes(bytes) => protocol.bytes(from, at, bytes, transfers),
        Piece::Gap(length) => {
            if matches!(protocol.ahead(from), Ahead::Read | Ahead::Head | Ahead::Lost) {
                transfers.unread();
            }
            protocol.gap(from, at, length, transfers);
        }
        Piece::End => protocol.end(from, true, transfers),
        Piece::Reset => protocol.end(from, false, transfers),
        Piece::Restart => protocol.restart(transfers),
        Piece::Unclear => transfers.unclear(),
    }
}

const fn index(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}
