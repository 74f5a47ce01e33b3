//! Programs as the kernel's unit reads them, and keys as its ciphers do.

use super::{LiveError, filter::Filter};
use crate::{
    key::Key,
    layer::KINDS,
    machine::{Link, MappingName, Secrets},
    program::{Instruction, Operation, Program, kept_bits, kinds},
};
use datapath::mask as kernel;
use kernel::{FilterInstruction, Header, Keys};

const _: () = assert!(KINDS == kernel::KINDS);

/// Bytes of the ring between the kernel and this process.
const RING: u32 = 32 << 20;

/// The settings of the kernel's unit for all packets of an interface.
///
/// # Errors
/// When the program masks the application layer, which the kernel does not.
pub fn settings(
    program: &Program,
    name: MappingName,
    link: Link,
) -> Result<kernel::Settings, LiveError> {
    Ok(kernel::Settings {
        headers: headers(program)?,
        payload: program.keeps_payload(),
        mapping: match name {
            MappingName::CryptoPan => kernel::Mapping::CryptoPan,
            MappingName::IpcryptPfx => kernel::Mapping::IpcryptPfx,
        },
        link: self::link(link),
        filter: Vec::new(),
        snap: kernel::SNAP,
        sample: 1,
        ring_bytes: RING,
    })
}

/// The treatment of each kind of header.
fn headers(program: &Program) -> Result<[Header; KINDS], LiveError> {
    if let Some(part) = program.named_parts().next() {
        return Err(LiveError::Application { part });
    }
    let mut headers = [const { Header { kept: Vec::new(), instructions: Vec::new() } }; KINDS];
    for kind in kinds() {
        let list = program.of(kind);
        let instructions = list.iter().map(instruction).collect();
        headers[kind as usize] = Header { kept: kept_bits(list), instructions };
    }
    Ok(headers)
}

fn instruction(it: &Instruction) -> kernel::Instruction {
    use kernel::Operation as To;
    let (operation, kept, constant) = match it.operation {
        Operation::Keep => (To::Keep, 0, 0),
        Operation::Constant(value) => (To::Constant, 0, value),
        Operation::Xor(value) => (To::Xor, 0, value),
        Operation::Shift(value) => (To::Shift, 0, value),
        Operation::Random => (To::Random, 0, 0),
        Operation::Hash => (To::Hash, 0, 0),
        Operation::Encrypt => (To::Encrypt, 0, 0),
        Operation::Prefix => (To::Prefix, 0, 0),
        Operation::Truncate(kept) => (To::Truncate, kept, 0),
        Operation::Permute(kept) => (To::Permute, kept, 0),
    };
    kernel::Instruction {
        at: it.at,
        bytes: it.bytes,
        mask: it.mask,
        bits: it.bits() as u8,
        operation,
        kept,
        constant,
        tag: it.tag,
    }
}

/// A filter as the kernel's unit runs it.
pub(super) fn instructions(filter: &Filter) -> Vec<FilterInstruction> {
    let all = filter.instructions().iter();
    all.map(|it| FilterInstruction { code: it.code(), jt: it.jt(), jf: it.jf(), k: it.k() })
        .collect()
}

/// The ciphers of a key.
pub fn keys(key: &Key, mapping: MappingName) -> Keys {
    let mut keys = Keys { numbers: *Secrets::derived(key), ..Keys::default() };
    let (first, second) = key.split_at(16);
    keys.first.copy_from_slice(first);
    match mapping {
        MappingName::CryptoPan => keys.pad = crate::mapping::CryptoPan::new(key).pad(),
        MappingName::IpcryptPfx => keys.second.copy_from_slice(second),
    }
    keys
}

/// What packets begin with, as the kernel's unit calls it.
pub(super) fn link(link: Link) -> kernel::Link {
    match link {
        Link::Ethernet => kernel::Link::Ethernet,
        Link::Ip => kernel::Link::Ip,
    }
}
