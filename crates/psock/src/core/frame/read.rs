//! The body of a frame, taken apart from its beginning.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{FrameError, FrameFault, HEADER_LEN, MAGIC, MAX_OFFSET, Purpose, VERSION};
use crate::core::driver_name::DriverName;

/// What is left of a body.
pub(super) struct Body<'a> {
    kind: u8,
    length: usize,
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    pub(super) fn new(kind: u8, body: &'a [u8]) -> Self {
        Self { kind, length: body.len(), rest: body }
    }

    /// That something is wrong `back` octets before what is left.
    fn wrong(&self, back: usize, fault: FrameFault) -> FrameError {
        FrameError { offset: HEADER_LEN + self.length - self.rest.len() - back, fault }
    }

    fn wrong_length(&self) -> FrameError {
        self.wrong(0, FrameFault::Length { kind: self.kind, length: self.length })
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or_else(|| self.wrong_length())?;
        self.rest = rest;
        Ok(*array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, FrameError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_be_bytes)
    }

    /// An offset that a stream can have.
    pub(super) fn offset(&mut self) -> Result<u64, FrameError> {
        let offset = self.u64()?;
        if offset > MAX_OFFSET {
            return Err(self.wrong(8, FrameFault::Offset(offset)));
        }
        Ok(offset)
    }

    pub(super) fn magic(&mut self) -> Result<(), FrameError> {
        if self.array()? != MAGIC {
            return Err(self.wrong(4, FrameFault::Magic));
        }
        Ok(())
    }

    pub(super) fn version(&mut self) -> Result<(), FrameError> {
        match self.u8()? {
            VERSION => Ok(()),
            other => Err(self.wrong(1, FrameFault::Version(other))),
        }
    }

    pub(super) fn driver(&mut self) -> Result<DriverName, FrameError> {
        let code = self.u8()?;
        DriverName::from_code(code).ok_or_else(|| self.wrong(1, FrameFault::Driver(code)))
    }

    pub(super) fn purpose(&mut self) -> Result<Purpose, FrameError> {
        match self.u8()? {
            0 => Ok(Purpose::Control),
            1 => Ok(Purpose::Data),
            other => Err(self.wrong(1, FrameFault::Purpose(other))),
        }
    }

    pub(super) fn flag(&mut self) -> Result<bool, FrameError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong(1, FrameFault::Flags(other))),
        }
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, FrameError> {
        let start = HEADER_LEN + self.length - self.rest.len();
        str::from_utf8(self.rest()).map_err(|error| FrameError {
            offset: start + error.valid_up_to(),
            fault: FrameFault::Text,
        })
    }

    pub(super) fn addresses(&mut self) -> Result<Vec<SocketAddr>, FrameError> {
        let mut list = Vec::new();
        while !self.rest.is_empty() {
            if list.len() == super::MAX_ADDRESSES {
                return Err(self.wrong_length());
            }
            let ip = match self.u8()? {
                4 => Ipv4Addr::from(self.array::<4>()?).into(),
                6 => Ipv6Addr::from(self.array::<16>()?).into(),
                other => return Err(self.wrong(1, FrameFault::Family(other))),
            };
            list.push(SocketAddr::new(ip, self.u16()?));
        }
        Ok(list)
    }

    /// That nothing is left.
    pub(super) fn end(&self) -> Result<(), FrameError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong_length()) }
    }
}
