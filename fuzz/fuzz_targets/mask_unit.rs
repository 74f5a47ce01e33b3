//! Any bytes as a packet through the shipped policies: the result is never longer, and what `strict` gives
//! is the same whatever the addresses of the outermost header are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mask::{
    machine::{Link, MappingName, Secrets, Unit},
    policy::{Policy, SHIPPED},
};
use std::cell::RefCell;

fn units() -> Vec<Unit> {
    let unit = |(name, _): (&str, &str)| {
        let program = Policy::shipped(name).expect("a policy").compile().expect("a program");
        let secrets = Secrets::new(&[7; 32], MappingName::CryptoPan).expect("a key");
        Unit::new(program, secrets)
    };
    SHIPPED.into_iter().map(unit).collect()
}

thread_local! {
    static UNITS: RefCell<Vec<Unit>> = RefCell::new(units());
}

fuzz_target!(|data: &[u8]| {
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
        // MAC addresses are in no result of the first policy.
        let mut changed = data.to_vec();
        changed.iter_mut().take(12).for_each(|byte| *byte = !*byte);
        units[0].mask(Link::Ethernet, data, 1, &mut out);
        units[0].mask(Link::Ethernet, &changed, 2, &mut other);
        assert_eq!(out, other);
    });
});
