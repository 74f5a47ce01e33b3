//! Any text as a policy: it is refused, or compiles to a program that removes what it does not name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mask::{
    layer::FIELDS,
    policy::{Action, Policy},
};

fuzz_target!(|text: &str| {
    let Ok(policy) = Policy::read(text) else { return };
    let Ok(program) = policy.compile() else { return };
    // Bits at an offset may be just those of a field.
    if policy.fields.keys().any(|name| name.contains('+')) {
        return;
    }
    for field in FIELDS.iter().filter(|field| !field.is_structure) {
        let has =
            program.of(field.kind).iter().any(|it| (it.at, it.mask) == (field.at, field.mask));
        assert_eq!(has, policy.of(field) != Action::Remove, "{}", field.name);
    }
});
