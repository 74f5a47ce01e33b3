//! A BFD session that hears any packets at any times: each step is a byte for the time that passes, a byte for what of
//! the packet is made to fit, and 24 bytes of a packet. What is sent is valid, and never faster than agreed, but for
//! an answer to each poll and a packet at each change; a neighbour is lost only after its detection time or by its word.

use bgp::bfd::{
    BfdConfig, State,
    fsm::Fsm,
    packet::{LENGTH, Packet},
};
use std::time::{Duration, Instant};

/// The least that passes between two packets at the interval that both ends may have.
const LEAST: Duration = Duration::from_millis(75);

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let mut now = Instant::now();
    let config = BfdConfig { interval: Duration::from_millis(100), multiplier: 3 };
    let mut session = Fsm::new(config, 1, now);
    let mine = session.transmit(now).expect("it begins").my_discriminator;
    assert_eq!(session.transmit(now), None);
    let (mut periodic, mut heard) = (now, None::<Instant>);
    for step in data.chunks_exact(2 + LENGTH) {
        let (time, fits) = (step[0], step[1]);
        now += Duration::from_millis(u64::from(time) * u64::from(time));
        let before = session.observed();
        session.tick(now);
        let ticked = session.observed();
        if let (Some(heard), Some(limit)) = (heard, before.detection_time) {
            assert_eq!(ticked.detection_time.is_none(), now >= heard + limit);
        }
        let mut bytes: [u8; LENGTH] = step[2..].try_into().expect("of this length");
        if fits & 1 != 0 {
            // Valid, but for what the other bits leave.
            bytes[0] = 0x20;
            bytes[1] &= 0xfa;
            bytes[3] = LENGTH as u8;
        }
        if fits & 2 != 0 {
            bytes[8..12].copy_from_slice(&mine.to_be_bytes());
        }
        if fits & 4 != 0 {
            // Intervals of less than 65 ms.
            bytes[12..14].fill(0);
            bytes[16..18].fill(0);
        }
        let packet = Packet::decode(&bytes);
        let taken = packet.filter(|packet| session.receive(*packet, now));
        if let Some(packet) = taken {
            assert!([0, mine].contains(&packet.your_discriminator));
            heard = Some(now);
        }
        let after = session.observed();
        let silent = ticked.failures - before.failures;
        let said = after.failures - ticked.failures;
        assert!(
            silent == 0 || silent == 1 && before.state == State::Up && ticked.diagnostic.0 == 1
        );
        let down = taken.is_some_and(|packet| packet.state == State::Down);
        assert!(said == 0 || said == 1 && ticked.state == State::Up && down);
        let told = before.state != ticked.state || ticked.state != after.state;
        let mut polled = taken.is_some_and(|packet| packet.poll);
        for _ in 0..2 {
            let Some(sent) = session.transmit(now) else { break };
            assert_eq!(Packet::decode(&sent.encode()), Some(sent));
            assert!(!(sent.poll && sent.is_final));
            if sent.is_final {
                assert!(std::mem::take(&mut polled), "an answer that nobody asked for");
            } else {
                assert!(told || now >= periodic + LEAST, "too early");
                periodic = now;
            }
        }
        assert_eq!(session.transmit(now), None, "an answer, and a packet");
        assert!(!polled, "a poll without an answer");
    }
    session.disable();
    assert_eq!(session.transmit(now).expect("its last").state, State::AdminDown);
    assert_eq!((session.transmit(now), session.deadline()), (None, None));
}
