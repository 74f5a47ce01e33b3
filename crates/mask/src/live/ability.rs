//! What the mask can do on this kernel.

use super::engine;
use crate::{
    machine::{Link, MappingName},
    policy::Policy,
};
use datapath::{
    kernel,
    mask::{Engine, Mask},
};
use job::Ability;

/// What it can do here, found out by loading the programs of a policy.
///
/// # Panics
///
/// Never: the policy is one of nigh's own.
pub fn ability() -> Ability {
    const WITHOUT: &str = "captures are masked as everywhere; live traffic is masked in the process: slower, and its original bytes reach it";
    let policy = Policy::shipped("strict").expect("it is shipped");
    let program = policy.compile().expect("it compiles");
    let settings = engine::settings(&program, MappingName::CryptoPan, Link::Ethernet);
    let settings = settings.expect("it names nothing of the application layer");
    let cipher = kernel::cipher();
    let engine = if cipher.is_ok() { Engine::Kernel } else { Engine::Process };
    match (Mask::open(&settings, engine), cipher) {
        (Err(error), _) => Ability::other_way(WITHOUT).without_program(&error),
        (Ok(_), Err(error)) => Ability::other_way(WITHOUT).and(&error.to_string()),
        (Ok(_), Ok(())) if !kernel::tcx() => Ability::other_way(
            "masks live traffic in the kernel, attached by clsact, as this kernel has no TCX",
        ),
        (Ok(_), Ok(())) => Ability::works("masks live traffic in the kernel"),
    }
}
