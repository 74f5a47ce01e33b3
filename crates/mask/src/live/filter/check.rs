//! Whether a program is one that the engine may run: what the kernel asks of classic BPF (`bpf_check_classic` of
//! net/core/filter.c), and no loads from beside the packet.

use super::step::{
    ABSOLUTE, ADD, ALU, ALWAYS, AND, ANY_BIT, BY_X, BYTE, DIV, EQUAL, GREATER, HALF, HEADER,
    IMMEDIATE, INDIRECT, JMP, LD, LDX, LENGTH, LSH, MEMORY, MISC, MOD, MUL, NEG, NOT_LESS, OR, RET,
    RETURN_A, RSH, ST, STX, SUB, TO_A, WORDS, XOR,
};
use super::{Instruction, Why};

/// The first offset of what is not in the packet (linux/filter.h: SKF_LL_OFF and greater are negative).
const BESIDE: u32 = 1 << 31;

pub(super) fn check(program: &[Instruction]) -> Result<(), Why> {
    for (at, instruction) in program.iter().enumerate() {
        let Instruction { code, jt, jf, k } = *instruction;
        if !is_known(code) {
            return Err(Why::Unknown(*instruction));
        }
        let behind = (program.len() - at - 1) as u64;
        let right = match code & 7 {
            LD | LDX if matches!(code & 0xe0, ABSOLUTE | HEADER) && k >= BESIDE => {
                return Err(Why::Beside);
            }
            LD | LDX if code & 0xe0 == MEMORY => (k as usize) < WORDS,
            ST | STX => (k as usize) < WORDS,
            ALU if code & BY_X == 0 => match code & 0xf0 {
                DIV | MOD => k != 0,
                LSH | RSH => k < 32,
                _ => true,
            },
            // A jump back is a great number.
            JMP if code & 0xf0 == ALWAYS => {
                if u64::from(k) >= behind {
                    return Err(Why::Loop);
                }
                true
            }
            JMP => u64::from(jt.max(jf)) < behind,
            RET => true,
            _ => true,
        };
        if !right {
            return Err(Why::Unknown(*instruction));
        }
    }
    match program.last() {
        Some(last) if last.code & 7 == RET => Ok(()),
        _ => Err(Why::Loop),
    }
}

fn is_known(code: u16) -> bool {
    let (size, mode, operation) = (code & 0x18, code & 0xe0, code & 0xf0);
    if code > 0xff {
        return false;
    }
    match code & 7 {
        LD => match mode {
            ABSOLUTE | INDIRECT => matches!(size, 0 | HALF | BYTE),
            IMMEDIATE | MEMORY | LENGTH => size == 0,
            _ => false,
        },
        LDX => match mode {
            HEADER => size == BYTE,
            IMMEDIATE | MEMORY | LENGTH => size == 0,
            _ => false,
        },
        ST | STX => code < 8,
        ALU if operation == NEG => code & BY_X == 0,
        ALU => {
            matches!(operation, ADD | SUB | MUL | DIV | OR | AND | LSH | RSH | MOD | XOR)
        }
        JMP if operation == ALWAYS => code & BY_X == 0,
        JMP => matches!(operation, EQUAL | GREATER | NOT_LESS | ANY_BIT),
        RET => matches!(code - RET, 0 | RETURN_A),
        _ => matches!(code - MISC, 0 | TO_A),
    }
}
