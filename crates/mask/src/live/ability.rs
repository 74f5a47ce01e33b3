//! What the mask can do on this kernel.

use super::engine;
use crate::{
    machine::{Link, MappingName},
    policy::Policy,
};
use datapath::{kernel, mask::Mask};
use job::Ability;

/// What it can do here, found out by loading the programs of a policy.
///
/// # Panics
///
/// Never: the policy is one of nigh's own.
pub fn ability() -> Ability {
    const WITHOUT: &str = "captures are masked as everywhere; live traffic is masked in user space behind a packet socket: slower, and its original bytes reach the process";
    let policy = Policy::shipped("strict").expect("it is shipped");
    let program = policy.compile().expect("it compiles");
    let settings = engine::settings(&program, MappingName::CryptoPan, Link::Ethernet);
    let without = Ability::other_way(WITHOUT);
    match Mask::open(&settings.expect("it names nothing of the application layer")) {
        Err(error) => without.without_program(&error),
        Ok(_) => match kernel::cipher() {
            Err(error) => without.and(&error.to_string()),
            Ok(()) if !kernel::tcx() => Ability::other_way(
                "masks live traffic in the kernel, attached by clsact, as this kernel has no TCX",
            ),
            Ok(()) => Ability::works("masks live traffic in the kernel"),
        },
    }
}
