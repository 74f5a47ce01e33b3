//! One instruction on one header.

use super::secrets::{Domain, Secrets, ones};
use crate::program::{Instruction, Operation};

impl Secrets {
    /// Runs an instruction on a header, of which perhaps not all is there; `unique` is this offset's in
    /// this packet.
    #[inline]
    pub(super) fn execute(
        &mut self,
        instruction: &Instruction,
        header: &[u8],
        out: &mut [u8],
        unique: u128,
    ) {
        let (at, bytes) = (usize::from(instruction.at), usize::from(instruction.bytes));
        let (Some(source), Some(target)) =
            (header.get(at..at + bytes), out.get_mut(at..at + bytes))
        else {
            return;
        };
        // The usual case, without numbers of 128 bits.
        if let (Operation::Prefix, Some(address)) = (instruction.operation, source.first_chunk())
            && bytes == 4
        {
            target.copy_from_slice(&self.prefix4(u32::from_be_bytes(*address)).to_be_bytes());
            return;
        }
        let wide = source.iter().fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
        if bytes > 4 {
            let value = self.operate(instruction, wide, unique).to_be_bytes();
            target.copy_from_slice(&value[16 - bytes..]);
            return;
        }
        let shift = instruction.mask.trailing_zeros();
        let field = (wide as u32 & instruction.mask) >> shift;
        let value = self.operate(instruction, field.into(), unique) as u32;
        let value = value << shift & instruction.mask;
        for (byte, part) in target.iter_mut().zip(&value.to_be_bytes()[4 - bytes..]) {
            *byte |= part;
        }
    }

    /// The field's new value; more bits than it has are left to be cut.
    #[inline]
    fn operate(&mut self, instruction: &Instruction, value: u128, unique: u128) -> u128 {
        match instruction.operation {
            Operation::Hash | Operation::Encrypt | Operation::Permute(_) => {
                // The same fields have few values, and each takes several blocks of AES.
                if let Some(result) = self.remembered(instruction, value) {
                    return result;
                }
                let result = self.compute(instruction, value, unique);
                self.remember(instruction, value, result);
                result
            }
            _ => self.compute(instruction, value, unique),
        }
    }

    fn compute(&mut self, instruction: &Instruction, value: u128, unique: u128) -> u128 {
        let (bits, tag) = (instruction.bits(), instruction.tag);
        match instruction.operation {
            Operation::Keep => value,
            Operation::Constant(constant) => constant.into(),
            Operation::Xor(constant) => value ^ u128::from(constant),
            Operation::Shift(constant) => value.wrapping_add(constant.into()),
            Operation::Random => {
                self.number(Domain::Random, tag, unique + u128::from(instruction.at))
            }
            Operation::Hash => self.number(Domain::Hash, tag, value),
            Operation::Encrypt => self.permute(tag, 0, value, bits),
            Operation::Prefix if bits == 32 => self.prefix4(value as u32).into(),
            Operation::Prefix => self.prefix6(value),
            Operation::Truncate(kept) => value & !ones(bits - u32::from(kept)),
            Operation::Permute(kept) => {
                let rest = bits - u32::from(kept);
                let prefix = value & !ones(rest);
                prefix | self.permute(tag, prefix, value & ones(rest), rest)
            }
        }
    }
}
