//! A cipher that fails: the packet is lost and nothing of it is remembered.

use super::*;
use types::{mask_cipher_name, mask_kind};

fn instruction(at: u8, bytes: u8, bits: u8, operation: Operation) -> Instruction {
    let mask = if bytes <= 4 { u32::MAX >> (32 - bits) } else { 0 };
    Instruction { at, bytes, mask, bits, operation, kept: 0, constant: 0, tag: 1 }
}

/// Addresses mapped by prefix, and what else is remembered.
fn settings(mapping: Mapping) -> Settings {
    use Operation::{Encrypt, Hash, Prefix};
    let mut headers = [const { Header { kept: Vec::new(), instructions: Vec::new() } }; KINDS];
    let mut set = |kind: mask_kind, kept: &[u8], list: &[Instruction]| {
        headers[kind.0 as usize] = Header { kept: kept.to_vec(), instructions: list.to_vec() };
    };
    let ipv4 = [
        instruction(4, 2, 16, Hash),
        instruction(12, 4, 32, Prefix),
        instruction(16, 4, 32, Encrypt),
    ];
    set(mask_kind::MASK_IPV4, &[0xff, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0xff], &ipv4);
    let ipv6 = [instruction(8, 16, 128, Prefix), instruction(24, 16, 128, Encrypt)];
    set(mask_kind::MASK_IPV6, &[0xf0, 0, 0, 0, 0xff, 0xff, 0xff], &ipv6);
    Settings {
        headers,
        payload: false,
        mapping,
        link: Link::Ip,
        filter: Vec::new(),
        snap: SNAP,
        sample: 1,
        ring_bytes: 1 << 16,
    }
}

const KEYS: Keys = Keys { numbers: [1; 16], first: [2; 16], second: [3; 16], pad: 4 };

/// Packets of IPv4 and IPv6 of a protocol about which nothing is known.
fn packets() -> [Vec<u8>; 2] {
    let mut ipv4 = vec![0x45, 0, 0, 20, 0x47, 0x11, 0, 0, 64, 253, 0, 0];
    ipv4.extend([198, 51, 100, 7, 203, 0, 113, 9]);
    let mut ipv6 = vec![0x60, 0, 0, 0, 0, 0, 253, 64];
    ipv6.extend((0..32).map(|n| 7 * n + 1));
    [ipv4, ipv6]
}

/// Takes a cipher away: another process that writes the map cannot keep one there.
fn fail(mask: &Mask, cipher: mask_cipher_name) {
    let ciphers = &mask.skeleton.maps.mask_ciphers;
    let nothing = vec![0; ciphers.value_size() as usize];
    ciphers.update(&cipher.0.to_ne_bytes(), &nothing, MapFlags::ANY).expect("no cipher");
}

mod root {
    use super::*;

    #[test]
    fn what_a_cipher_that_failed_gave_is_not_given_and_not_remembered() {
        testbed::need_root();
        let one = |mask: &Mask, reader: &mut Reader, packet: &[u8]| {
            mask.try_one(reader, Link::Ip, packet, 1).expect("it runs")
        };
        for mapping in [Mapping::CryptoPan, Mapping::IpcryptPfx] {
            let open = || {
                let mask = Mask::open(&settings(mapping), Engine::Kernel).expect("programs");
                mask.set_key(0, 0, 1, &KEYS).expect("a key");
                let reader = mask.reader().expect("a ring");
                (mask, reader)
            };
            let (whole, mut reader) = open();
            let right =
                packets().map(|packet| one(&whole, &mut reader, &packet).expect("a result"));
            assert_ne!(right[0][12..], packets()[0][12..]);
            let mut ciphers = vec![mask_cipher_name::MASK_NUMBERS, mask_cipher_name::MASK_FIRST];
            ciphers
                .extend((mapping == Mapping::IpcryptPfx).then_some(mask_cipher_name::MASK_SECOND));
            for cipher in ciphers {
                let (mask, mut reader) = open();
                fail(&mask, cipher);
                for packet in packets() {
                    assert_eq!(one(&mask, &mut reader, &packet), None, "{mapping:?} {cipher:?}");
                }
                assert_eq!(mask.counts().expect("counts").lost_key, 2);
                // The same key under the same number: what had been remembered would be taken.
                mask.set_key(0, 0, 1, &KEYS).expect("a key");
                for (packet, right) in packets().iter().zip(&right) {
                    let again = one(&mask, &mut reader, packet).expect("a result");
                    assert_eq!(again, *right, "{mapping:?} {cipher:?}");
                }
            }
        }
    }
}
