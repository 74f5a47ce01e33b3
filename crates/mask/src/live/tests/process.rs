//! Where this process masks, the kernel gives it the packets that are wanted, as they are.

use super::*;

#[test]
fn packets_are_copied_as_they_are() {
    let (strict, name) = (SHIPPED[0].1, MappingName::CryptoPan);
    let mut both = Both::filtered(strict, name, None, Engine::Process);
    let mut copy = |packet: &[u8]| {
        let link = kernel::Link::Ethernet;
        let copied = both.kernel.try_one(&mut both.reader, link, packet, 1).expect("run");
        assert_eq!(copied.as_deref(), Some(packet));
    };
    for (_, packet) in recorded() {
        copy(&packet[..packet.len().min(3000)]);
    }
    let longest = Plant::new(7).bytes::<3000>();
    for length in (1..=longest.len()).rev() {
        copy(&longest[..length]);
    }
    let counts = both.kernel.counts().expect("counts");
    assert_eq!((counts.lost_ring, counts.lost_key, counts.lost_unread), (0, 0, 0));
}

#[test]
fn the_kernel_filters_as_user_space_does() {
    filters_as_user_space_does(Engine::Process);
}

#[test]
fn nothing_is_copied_without_a_key_for_its_time() {
    let (strict, name) = (SHIPPED[0].1, MappingName::CryptoPan);
    let mut both = Both::filtered(strict, name, None, Engine::Process);
    both.kernel.set_key(0, u64::MAX, 1, &Default::default()).expect("a key");
    let packet = Plant::new(1).shape(0);
    let tried = both.kernel.try_one(&mut both.reader, kernel::Link::Ethernet, &packet, 1);
    assert_eq!(tried.expect("run"), None);
    assert_eq!(both.kernel.counts().expect("counts").lost_key, 1);
}
