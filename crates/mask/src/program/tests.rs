//! Programs that somebody else wrote: what the verifier refuses.

use super::*;
use crate::{layer::field, policy::Policy};

/// The lists of `research`.
fn lists() -> [Vec<Instruction>; KINDS] {
    let program = Policy::shipped("research").expect("a policy").compile().expect("a program");
    std::array::from_fn(|kind| program.lists[kind].clone())
}

/// What the verifier says of `research` with one change, where all that is no structure is to be removed
/// that `research` removes.
fn changed(change: impl FnOnce(&mut [Vec<Instruction>; KINDS])) -> Result<(), Refusal> {
    let policy = Policy::shipped("research").expect("a policy");
    let mut lists = lists();
    change(&mut lists);
    let is_removed = |field: &Field, _| policy.of(field) == crate::policy::Action::Remove;
    Program::verify(lists, false, [None; PARTS.len()], is_removed).map(|_| ())
}

fn instruction(at: u8, bytes: u8, mask: u32, operation: Operation) -> Instruction {
    Instruction { at, bytes, mask, operation, tag: 0 }
}

fn with(kind: Kind, at: u8, bytes: u8, mask: u32, operation: Operation) -> Result<(), Refusal> {
    changed(|lists| lists[kind as usize].push(instruction(at, bytes, mask, operation)))
}

#[test]
fn what_is_to_be_removed_cannot_be_read_in_any_way() {
    assert_eq!(changed(|_| {}), Ok(()));
    // IPv4's identification, whole and in part, by each operation that reads.
    for operation in [
        Operation::Keep,
        Operation::Xor(1),
        Operation::Shift(1),
        Operation::Hash,
        Operation::Encrypt,
        Operation::Truncate(1),
        Operation::Permute(1),
    ] {
        for (at, bytes, mask) in [(4, 2, 0xffff), (4, 1, 0xff), (5, 1, 0x01), (4, 2, 0x0ff0)] {
            assert_eq!(
                with(Kind::Ipv4, at, bytes, mask, operation),
                Err(Refusal::Leak { field: "ipv4.identification", at }),
                "{operation:?}"
            );
        }
    }
    // What does not read it may write there.
    assert_eq!(with(Kind::Ipv4, 4, 2, 0xffff, Operation::Constant(7)), Ok(()));
    assert_eq!(with(Kind::Ipv4, 4, 2, 0xffff, Operation::Random), Ok(()));
    // A wide one over a field that is kept and one that is not.
    let over = changed(|lists| {
        lists[Kind::Ipv4 as usize].retain(|it| it.at < 4 || it.at > 7);
        lists[Kind::Ipv4 as usize].push(instruction(4, 4, u32::MAX, Operation::Keep));
    });
    assert_eq!(over, Err(Refusal::Leak { field: "ipv4.identification", at: 4 }));
}

#[test]
fn what_is_no_field_cannot_be_written() {
    let nothing = |kind, at| Err(Refusal::Instruction { kind, at, what: "there is no field" });
    // Checksums reveal what was removed.
    assert_eq!(with(Kind::Ipv4, 10, 2, 0xffff, Operation::Keep), nothing(Kind::Ipv4, 10));
    assert_eq!(with(Kind::Tcp, 16, 2, 0xffff, Operation::Keep), nothing(Kind::Tcp, 16));
    assert_eq!(with(Kind::Vxlan, 1, 1, 0xff, Operation::Keep), nothing(Kind::Vxlan, 1));
}

#[test]
fn structure_is_kept_as_it_is() {
    let length = field("ipv4.total_length").expect("a field");
    for operation in [None, Some(Operation::Constant(20)), Some(Operation::Xor(1))] {
        let refused = changed(|lists| {
            let list = &mut lists[Kind::Ipv4 as usize];
            list.retain(|it| it.at != length.at || it.mask != length.mask);
            list.extend(operation.map(|operation| Instruction::new(length, operation)));
        });
        assert_eq!(refused, Err(Refusal::Structure("ipv4.total_length")), "{operation:?}");
    }
    // A header of which nothing is left.
    for kind in [Kind::Ethernet, Kind::Ipv6Segments, Kind::Udp] {
        let refused = changed(|lists| lists[kind as usize].clear());
        assert!(matches!(refused, Err(Refusal::Structure(_))), "{kind:?}");
    }
    // An option goes with its structure, or stays with it, also where only what is in it is named.
    assert_eq!(changed(|lists| lists[Kind::TcpMss as usize].clear()), Ok(()));
    let refused = changed(|lists| lists[Kind::TcpSack as usize].clear());
    assert_eq!(refused, Err(Refusal::Structure("tcp.sack.kind_and_length")));
}

#[test]
fn instructions_that_the_unit_cannot_run_are_refused() {
    let is_refused = |kind, at, bytes, mask, operation| {
        matches!(with(kind, at, bytes, mask, operation), Err(Refusal::Instruction { .. }))
    };
    let keep = Operation::Keep;
    assert!(is_refused(Kind::Ipv4, 4, 3, 0xff, keep), "a width that there is not");
    assert!(is_refused(Kind::Ipv4, 19, 2, 0xffff, keep), "beyond the header");
    assert!(is_refused(Kind::Ipv4, 255, 16, 0, keep), "far beyond the header");
    assert!(is_refused(Kind::Ipv4, 4, 2, 0, keep), "no bits");
    assert!(is_refused(Kind::Ipv4, 4, 2, 0x1_0000, keep), "bits outside");
    assert!(is_refused(Kind::Ipv4, 4, 2, 0x0101, keep), "bits apart");
    assert!(is_refused(Kind::Ipv4, 12, 4, u32::MAX, keep), "written twice");
    assert!(is_refused(Kind::Ipv4, 4, 2, 0xffff, Operation::Constant(0x1_0000)), "too wide");
    assert!(is_refused(Kind::Ipv4, 4, 2, 0xffff, Operation::Prefix), "no address");
    assert!(is_refused(Kind::Ipv4, 4, 2, 0xffff, Operation::Truncate(17)), "too many bits");
    assert!(is_refused(Kind::Ethernet, 0, 6, 0, Operation::Xor(1)), "too wide for a constant");
    let other = changed(|lists| {
        let list = &mut lists[Kind::TcpSackPermitted as usize];
        list[0].operation = Operation::Constant(1);
    });
    assert!(matches!(other, Err(Refusal::Instruction { .. })));
    let many = changed(|lists| {
        let one = lists[Kind::Ipv4 as usize][0];
        lists[Kind::Ipv4 as usize].extend([one; MOST]);
    });
    assert!(matches!(many, Err(Refusal::Long { kind: Kind::Ipv4, .. })));
}

#[test]
fn words_keep_the_bits_of_their_mask_and_no_others() {
    for length in 0..=HEADER {
        let mask: Vec<u8> = (0..length).map(|n| if n % 11 < 7 { n as u8 } else { 0 }).collect();
        let mut kept = vec![0; length.max(8)];
        for (at, word) in words(&mask) {
            let room = kept[usize::from(at)..].iter_mut();
            room.zip(word).for_each(|(kept, word)| *kept |= word);
        }
        assert_eq!(kept[..length], mask);
        assert!(kept[length..].iter().all(|byte| *byte == 0));
    }
    assert_eq!(words(&[0; 20]), []);
}
