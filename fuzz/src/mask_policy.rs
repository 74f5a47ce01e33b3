//! Any text as a policy: it is refused, or compiles to a program that removes what it does not name.

use mask::{
    layer::FIELDS,
    policy::{Action, Policy},
};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let text = data.utf8_chunks().next().map_or("", |chunk| chunk.valid());
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
}
