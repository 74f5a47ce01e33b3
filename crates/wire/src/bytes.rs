//! Reads and writes of big-endian numbers at fixed places.
//!
//! The views check the length of their bytes before any of these is called.

use crate::{EmitError, Fault, Layer, ParseError};

pub(crate) fn u16_at(data: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([data[at], data[at + 1]])
}

pub(crate) fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(data, at))
}

pub(crate) fn array_at<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&data[at..at + N]);
    out
}

pub(crate) fn put_u16(data: &mut [u8], at: usize, value: u16) {
    data[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The bytes must be at least `need` long.
pub(crate) fn need(layer: Layer, data: &[u8], need: usize) -> Result<(), ParseError> {
    if data.len() < need {
        let fault = Fault::Truncated { need, have: data.len() };
        return Err(ParseError { layer, offset: data.len(), fault });
    }
    Ok(())
}

/// The first `need` bytes of a buffer that is written to.
pub(crate) fn room(layer: Layer, data: &mut [u8], need: usize) -> Result<&mut [u8], EmitError> {
    let have = data.len();
    data.get_mut(..need).ok_or(EmitError::Buffer { layer, need, have })
}
