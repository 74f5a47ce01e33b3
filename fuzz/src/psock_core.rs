//! A session's core whose peer, kernel and application do anything: nothing panics, memory stays in its
//! bounds, and what is delivered is what came first for each offset.
//!
//! The input is the driver, then a list of records: what to do, on which connection, a number, and for
//! frames from the peer that many bytes, or a block or an acknowledgement that is nearly right.

use psock::core::{
    ConnectionId, Core, Kernel, Next, Settings,
    driver::DriverName,
    frame::{Acknowledge, Block, Frame},
};

const WINDOW: usize = 4_096;
const SEND: usize = 8_192;

/// The byte of the peer's stream at an offset.
fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let [driver, data @ ..] = data else { return };
    let driver = DriverName::ALL[usize::from(*driver) % 3];
    let settings = Settings { driver, block_bytes: 300, reorder_bytes: WINDOW, send_bytes: SEND };
    let mut core = Core::new(settings, 2_048);
    let (mut data, mut now, mut delivered, mut pushed) = (data, 0u64, 0u64, 0u64);
    let mut peer_limit = 2_048;
    while let [what, number, rest @ ..] = data {
        data = rest;
        let (id, number) = (ConnectionId(u32::from(what / 16 % 4)), u64::from(*number));
        let verdict = match what % 16 {
            0 => {
                core.opened(id, now);
                Ok(())
            }
            1 => {
                core.closed(id, now);
                Ok(())
            }
            2 => {
                let room = core.send_room().min(10 * number as usize);
                core.push(vec![1; room]);
                pushed += room as u64;
                Ok(())
            }
            3 if number == 255 => {
                core.finish();
                Ok(())
            }
            3 | 4 => {
                now += number * 100_000;
                core.tick(now);
                Ok(())
            }
            5 => {
                let kernel = Kernel {
                    srtt_ns: number * 1_000_000,
                    min_rtt_ns: number * 500_000,
                    delivery_rate: number << (what / 16),
                    cwnd_bytes: number as u32 * 100,
                };
                core.observe(id, &kernel, now);
                Ok(())
            }
            6..=8 => {
                for _ in 0..number % 8 {
                    let Next::Frame(frame) = core.next(id, now) else { break };
                    let octets = [frame.head(), frame.payload()].concat();
                    let (frame, _) = Frame::parse(&octets).expect("a frame").expect("whole");
                    if let Frame::Block(block) = frame {
                        assert!(block.offset + block.bytes.len() as u64 <= peer_limit.min(pushed));
                    }
                }
                Ok(())
            }
            // A block of the peer's stream, of one of two sizes, so that some overlap.
            9..=11 => {
                let size = if number > 250 { 150 } else { 100 };
                let offset = delivered / 100 * 100 + number % 50 * size;
                let bytes: Vec<u8> = (offset..offset + size).map(byte).collect();
                core.receive(id, &Frame::Block(Block { offset, bytes: &bytes }), now)
            }
            12 | 13 => {
                peer_limit += number;
                let ack = Acknowledge {
                    in_order: 300 * (number % 16),
                    limit: peer_limit,
                    received: 300 * (number / 16),
                    ended: number == 255,
                };
                core.receive(id, &Frame::Acknowledge(ack), now)
            }
            14 => core.receive(id, &Frame::Finish(delivered + 100 * number), now),
            _ => {
                let (bytes, later) = rest.split_at(rest.len().min(number as usize));
                data = later;
                match Frame::parse(bytes) {
                    // Other bytes than those of the stream, which the check of what is delivered would
                    // not know.
                    Ok(Some((Frame::Block(_), _))) | Ok(None) | Err(_) => Ok(()),
                    Ok(Some((frame, _))) => {
                        if let Frame::Acknowledge(ack) = &frame {
                            peer_limit = peer_limit.max(ack.limit);
                        }
                        core.receive(id, &frame, now)
                    }
                }
            }
        };
        assert!(core.unacknowledged_bytes() <= SEND && core.reorder_bytes() <= WINDOW);
        if verdict.is_err() {
            return;
        }
        while let Some(chunk) = core.deliver() {
            for got in chunk.as_ref() {
                assert_eq!(*got, byte(delivered));
                delivered += 1;
            }
            if number % 2 == 0 {
                core.delivered(chunk.as_ref().len());
            }
        }
        let _ = (core.wake_at(), core.outcome(), core.total());
    }
}
