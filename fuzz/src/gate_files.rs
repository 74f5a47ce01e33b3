//! Any bytes as both sides of a managed flow, with any answers; and as a torrent's metadata.
//!
//! The first byte chooses the application, the second the settings; then records: a byte of side,
//! answer and loss, a byte of length, the payload.

use classify::{
    flow::{Flow, Side, Transport},
    packet::{Packet, Tcp},
};
use gate::{
    event::{Event, FileVerdict, Settings},
    manage::Manager,
    torrents::Torrent,
};

const APPLICATIONS: [&str; 7] =
    ["http", "ftp", "bittorrent", "edonkey", "directconnect", "gnutella", "irc"];

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    if let Some(torrent) = Torrent::of_file(data).or_else(|| Torrent::of_info(data)) {
        assert!(torrent.files.iter().all(|file| file.at + file.size <= torrent.size()));
    }
    let Some((&[application, how], mut records)) = data.split_first_chunk() else { return };
    let udp = how & 4 != 0;
    let flow = Flow {
        transport: if udp { Transport::Udp } else { Transport::Tcp },
        client: ([10, 0, 0, 5], 40_000).into(),
        server: ([192, 0, 2, 7], 80).into(),
    };
    let settings = Settings { hold: how & 1 != 0, hash: how & 2 != 0, ..Settings::default() };
    let application = APPLICATIONS[usize::from(application) % APPLICATIONS.len()];
    let Some(mut manager) = Manager::new(application, &flow, &settings) else { return };
    let mut managers = Vec::new();
    let mut next = [0_u32, u32::MAX - 100];
    while let Some((&[what, length], rest)) = records.split_first_chunk() {
        let (payload, rest) = rest.split_at(usize::from(length).min(rest.len()));
        records = rest;
        let from = if what & 1 == 0 { Side::Client } else { Side::Server };
        let own = usize::from(what & 1);
        if what & 2 != 0 {
            next[own] = next[own].wrapping_add(u32::from(length));
        }
        let flags = Tcp::ACK | if what & 4 != 0 { Tcp::FIN } else { 0 };
        let tcp = Tcp { sequence: next[own], acknowledgement: next[1 - own], flags };
        next[own] = next[own].wrapping_add(payload.len() as u32);
        let packet = Packet {
            at_ns: 0,
            from,
            tcp: (!udp).then_some(tcp),
            payload,
            length: payload.len() as u32,
        };
        let token = manager.token(&packet);
        let mut events = Vec::new();
        manager.packet(&packet, &mut events);
        let _ = token.is_some_and(|token| manager.waits(from, token));
        let mut answered = 0;
        while let Some(event) = events.get(answered) {
            answered += 1;
            match event {
                Event::FileNamed(file) => {
                    let decision = match what >> 6 {
                        0 => FileVerdict::Allow,
                        1 => FileVerdict::Deny,
                        _ => FileVerdict::Scan,
                    };
                    let transfer = file.transfer;
                    manager.answer(transfer, decision, &mut events);
                }
                Event::FileEnded { transfer, .. } if what & 8 != 0 => {
                    let transfer = *transfer;
                    manager.allow(transfer);
                }
                Event::Block { part, .. } if what & 8 != 0 => {
                    let part = *part;
                    manager.cleared(part, u64::MAX);
                }
                Event::Expect(expected) if managers.len() < 4 => {
                    managers.push(Manager::expected(expected, &flow, &settings));
                }
                _ => {}
            }
        }
        if what & 16 != 0 {
            manager.pause(&mut events);
            if what & 8 != 0 {
                manager.give_up(&mut events);
            }
        }
        for expected in &mut managers {
            expected.packet(&packet, &mut events);
        }
        let _ = (manager.hold_from(Side::Client), manager.hold_from(Side::Server));
    }
    let mut events = Vec::new();
    manager.finish(&mut events);
}
