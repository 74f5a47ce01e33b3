//! One instruction of classic BPF, as the engine in the kernel does it.
//!
//! ```text
//! code:  size or operation | mode, or operand: constant, X | class
//!        loads: A or X = word, half or byte of the packet; constant; memory; the packet's length
//!        jumps: only forward, so that every program ends
//! ```
//!
//! What lies outside of the packet ends the program and the packet is not wanted; so does a division by zero.
//! A shift by more than 31 gives zero, as in libpcap.

use super::Instruction;

/// Classes (linux/bpf_common.h): the three lowest bits.
pub(super) const LD: u16 = 0;
pub(super) const LDX: u16 = 1;
pub(super) const ST: u16 = 2;
pub(super) const STX: u16 = 3;
pub(super) const ALU: u16 = 4;
pub(super) const JMP: u16 = 5;
pub(super) const RET: u16 = 6;
pub(super) const MISC: u16 = 7;
/// What loads fetch; the absolute and the indirect ones have a size, too.
pub(super) const IMMEDIATE: u16 = 0x00;
pub(super) const ABSOLUTE: u16 = 0x20;
pub(super) const INDIRECT: u16 = 0x40;
pub(super) const MEMORY: u16 = 0x60;
pub(super) const LENGTH: u16 = 0x80;
/// Four times the low half of a byte: the length of an IPv4 header.
pub(super) const HEADER: u16 = 0xa0;
/// Sizes of loads; words are 0.
pub(super) const HALF: u16 = 0x08;
pub(super) const BYTE: u16 = 0x10;
/// Operations of class ALU.
pub(super) const ADD: u16 = 0x00;
pub(super) const SUB: u16 = 0x10;
pub(super) const MUL: u16 = 0x20;
pub(super) const DIV: u16 = 0x30;
pub(super) const OR: u16 = 0x40;
pub(super) const AND: u16 = 0x50;
pub(super) const LSH: u16 = 0x60;
pub(super) const RSH: u16 = 0x70;
pub(super) const NEG: u16 = 0x80;
pub(super) const MOD: u16 = 0x90;
pub(super) const XOR: u16 = 0xa0;
/// Conditions of class JMP; the first is none.
pub(super) const ALWAYS: u16 = 0x00;
pub(super) const EQUAL: u16 = 0x10;
pub(super) const GREATER: u16 = 0x20;
pub(super) const NOT_LESS: u16 = 0x30;
pub(super) const ANY_BIT: u16 = 0x40;
/// The operand is X and not the constant.
pub(super) const BY_X: u16 = 0x08;
/// What is returned is A and not the constant.
pub(super) const RETURN_A: u16 = 0x10;
/// A = X; without it X = A.
pub(super) const TO_A: u16 = 0x80;
/// Words of memory.
pub(super) const WORDS: usize = 16;

/// What the machine holds between two instructions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// The number of the next instruction.
    pub(super) next: usize,
    pub(super) a: u32,
    pub(super) x: u32,
    pub(super) memory: [u32; WORDS],
}

impl State {
    /// Does one instruction on a packet of this length on the wire; what the program returns, if it ends.
    pub(super) fn step(&mut self, of: Instruction, packet: &[u8], length: u32) -> Option<u32> {
        let Instruction { code, jt, jf, k } = of;
        let operand = if code & BY_X != 0 { self.x } else { k };
        let slot = k as usize % WORDS;
        self.next += 1;
        match code & 7 {
            LD | LDX => {
                let Some(value) = self.load(code, k, packet, length) else { return Some(0) };
                *(if code & 7 == LD { &mut self.a } else { &mut self.x }) = value;
            }
            ST => self.memory[slot] = self.a,
            STX => self.memory[slot] = self.x,
            ALU => match calculate(code & 0xf0, self.a, operand) {
                Some(value) => self.a = value,
                None => return Some(0),
            },
            JMP => {
                let holds = match code & 0xf0 {
                    EQUAL => self.a == operand,
                    GREATER => self.a > operand,
                    NOT_LESS => self.a >= operand,
                    ANY_BIT => self.a & operand != 0,
                    _ => {
                        self.next = self.next.saturating_add(k as usize);
                        return None;
                    }
                };
                self.next += usize::from(if holds { jt } else { jf });
            }
            RET => return Some(if code & RETURN_A != 0 { self.a } else { k }),
            _ if code & TO_A != 0 => self.a = self.x,
            _ => self.x = self.a,
        }
        None
    }

    /// What a load fetches; `None` outside of the packet.
    fn load(&self, code: u16, k: u32, packet: &[u8], length: u32) -> Option<u32> {
        match code & 0xe0 {
            IMMEDIATE => Some(k),
            ABSOLUTE => word(packet, k, code),
            INDIRECT => word(packet, self.x.checked_add(k)?, code),
            MEMORY => Some(self.memory[k as usize % WORDS]),
            LENGTH => Some(length),
            _ => Some(u32::from(packet.get(k as usize)? & 15) * 4),
        }
    }
}

/// A big-endian number of the packet, of the size that the code says.
fn word(packet: &[u8], at: u32, code: u16) -> Option<u32> {
    let rest = packet.get(at as usize..)?;
    match code & 0x18 {
        BYTE => rest.first().map(|byte| u32::from(*byte)),
        HALF => rest.first_chunk().map(|half| u32::from(u16::from_be_bytes(*half))),
        _ => rest.first_chunk().map(|word| u32::from_be_bytes(*word)),
    }
}

fn calculate(operation: u16, a: u32, by: u32) -> Option<u32> {
    Some(match operation {
        ADD => a.wrapping_add(by),
        SUB => a.wrapping_sub(by),
        MUL => a.wrapping_mul(by),
        DIV => a.checked_div(by)?,
        MOD => a.checked_rem(by)?,
        OR => a | by,
        AND => a & by,
        XOR => a ^ by,
        LSH => a.checked_shl(by).unwrap_or(0),
        RSH => a.checked_shr(by).unwrap_or(0),
        _ => a.wrapping_neg(),
    })
}
