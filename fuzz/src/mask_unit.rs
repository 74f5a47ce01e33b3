//! Any bytes as a packet through the shipped policies and one that masks the application layer: the result is never longer, and what `strict` gives
//! is the same whatever the addresses of the first header are, and all that is behind the last one.

use mask::{
    machine::{Link, MappingName, Secrets, Unit},
    policy::{Policy, SHIPPED},
};
use std::cell::RefCell;

/// A policy that names all parts of the application layer.
const ABOVE: &str = "about = \"\"\n[fields]\n\"dns.*\" = \"hash\"\n\"dhcp.*\" = \"hash\"\n\"radius.*\" = \"hash\"\n\
    \"snmp.*\" = \"hash\"\n\"http.*\" = \"hash\"\n\"sip.*\" = \"hash\"";

fn units() -> Vec<Unit> {
    let unit = |text: &str| {
        let program = Policy::read(text).expect("a policy").compile().expect("a program");
        let secrets = Secrets::new(&[7; 32], MappingName::CryptoPan).expect("a key");
        Unit::new(program, secrets)
    };
    SHIPPED.into_iter().map(|(_, text)| unit(text)).chain([unit(ABOVE)]).collect()
}

thread_local! {
    static UNITS: RefCell<Vec<Unit>> = RefCell::new(units());
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    UNITS.with_borrow_mut(|units| {
        let (mut out, mut other) = (Vec::new(), Vec::new());
        for unit in &mut *units {
            for link in [Link::Ethernet, Link::Ip] {
                unit.mask(link, data, 1, &mut out);
                assert!(out.len() <= data.len());
                unit.mask(link, data, 1, &mut other);
                assert_eq!(out, other);
            }
        }
        // The addresses of the first header are in no result of `strict`, nor is what is behind the last one.
        // Of that the first bytes may decide that it is no header.
        let strict = &mut units[0];
        for link in [Link::Ethernet, Link::Ip] {
            strict.mask(link, data, 1, &mut out);
            let addresses = match (link, data.first().map(|byte| byte >> 4)) {
                (Link::Ethernet, _) => 0..12,
                (Link::Ip, Some(4)) => 12..20,
                (Link::Ip, _) => 8..40,
            };
            let mut changed = data.to_vec();
            for (at, byte) in changed.iter_mut().enumerate() {
                if addresses.contains(&at) || at >= out.len() + 64 {
                    *byte = !*byte;
                }
            }
            strict.mask(link, &changed, 2, &mut other);
            assert_eq!(out, other);
        }
    });
}
