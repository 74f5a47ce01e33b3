//! Packets at random, right ones and such with faults: the program and the model give the same verdict, the
//! same bytes and count the same.

use super::SSID;
use super::frame::{Check, Frame, packet};
use super::model::Outcome;
use super::table::run;
use crate::root::common::Random;

const FRAMES: u32 = 20_000;

#[test]
fn the_program_does_as_the_model() {
    let program = super::program();
    let mut random = Random::new(862);
    let mut numbers = [[0; 2]; 2];
    let mut reflected = 0;
    for sequence in 0..FRAMES {
        let family = random.below(2);
        let mut frame = Frame::test(family, sequence);
        let length = random.below(90);
        let rest = random.bytes(length);
        let ssid = random.pick(&[SSID, SSID, 0]);
        // Numbers and times that only go up: sessions that begin again are another test's.
        frame.payload = packet(sequence, u64::from(sequence) << 20 | 1, ssid, &rest);
        frame.class = random.next() as u8;
        frame.ttl = random.next() as u8;
        frame.from_port = random.next() as u16;
        frame.check = match random.below(10) {
            0 => Check::None,
            1 => Check::Partial,
            2 => Check::Flipped(random.next() as u16),
            _ => Check::Flipped(0),
        };
        match random.below(12) {
            0 => frame.fragment = random.next() as u16,
            1 => frame.spoil_ip = random.next() as u16,
            2 => frame.ip_lie = random.below(9) as i32 - 4,
            3 => frame.udp_lie = random.below(9) as i32 - 4,
            4 => frame.payload.truncate(random.below(60)),
            _ => {}
        }
        let mut bytes = frame.bytes();
        if frame.check == Check::Flipped(0) {
            // Whatever this does to number and time, the checksum says so.
            random.spoil(&mut bytes, 30);
        }
        let session = usize::from(ssid == 0);
        let outcome = run(&program, &bytes, &mut numbers[family][session]);
        reflected += u32::from(matches!(outcome, Outcome::Reflected(_)));
    }
    assert!(reflected > FRAMES / 3, "{reflected} of {FRAMES} were right");
}
