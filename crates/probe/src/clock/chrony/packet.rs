//! chrony's command protocol, version 6, as far as this station needs it: three questions and their answers.
//!
//! Every number is big-endian. A question has a header of 20 bytes and is padded to the length of its answer,
//! so that chronyd never sends more than it got; an answer has a header of 28 bytes.
//!
//! ```text
//!         0        1        2        3        4-5      6-7      8-11     12-15    16-19    20-23  24-27
//! question version  type 1   0        0        command  attempt  sequence 0        0        data...
//! answer   version  type 2   0        0        command  kind     status 0 0        sequence 0      0     data...
//! ```
//!
//! A floating-point number is a signed exponent of 7 bits and a signed coefficient *c* of 25 bits, and means
//! *c* · 2^(exponent - 25).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const VERSION: u8 = 6;
const QUESTION: u8 = 1;
const ANSWER: u8 = 2;
const QUESTION_HEADER: usize = 20;
const ANSWER_HEADER: usize = 28;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// How well the clock follows its reference.
    Tracking,
    /// How many sources there are.
    SourceCount,
    /// About one of them.
    Source(u32),
}

/// Of each question: the command's number, that of its answer, and bytes of the answer's data.
const TRACKING: (u16, u16, usize) = (33, 5, 76);
const SOURCE_COUNT: (u16, u16, usize) = (14, 2, 4);
const SOURCE: (u16, u16, usize) = (15, 3, 48);

impl Question {
    fn numbers(self) -> (u16, u16, usize) {
        match self {
            Self::Tracking => TRACKING,
            Self::SourceCount => SOURCE_COUNT,
            Self::Source(_) => SOURCE,
        }
    }

    /// The bytes of the question.
    pub fn emit(self, sequence: u32) -> Vec<u8> {
        let (command, _, data) = self.numbers();
        let mut out = Vec::with_capacity(ANSWER_HEADER + data);
        out.extend([VERSION, QUESTION, 0, 0]);
        out.extend(command.to_be_bytes());
        out.extend([0; 2]);
        out.extend(sequence.to_be_bytes());
        out.resize(QUESTION_HEADER, 0);
        if let Self::Source(index) = self {
            out.extend(index.to_be_bytes());
        }
        out.resize(ANSWER_HEADER + data, 0);
        out
    }
}

/// An answer is not one to the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Not enough bytes.
    #[error("the answer of {length} bytes ends before byte {needed}")]
    Short {
        /// What is there.
        length: usize,
        /// What there should be.
        needed: usize,
    },
    /// A byte or number of the header is not what it has to be.
    #[error("{what} at byte {offset} is {found} in place of {wanted}")]
    Header {
        /// What it is.
        what: &'static str,
        /// Where it begins.
        offset: usize,
        /// What is there.
        found: u32,
        /// What has to be there.
        wanted: u32,
    },
    /// chronyd refuses to answer.
    #[error("chronyd refuses with status {0}")]
    Refused(u16),
    /// An address of a family that is not known.
    #[error("the address family {family} at byte {offset} is not known")]
    Family {
        /// The number.
        family: u16,
        /// Where it is.
        offset: usize,
    },
}

/// How well the clock follows its reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tracking {
    /// Reference ID: of a reference clock its name, else the address or a hash of it.
    pub reference: [u8; 4],
    /// Address of the source, if it has one.
    pub address: Option<IpAddr>,
    /// Stratum of this machine.
    pub stratum: u16,
    /// Leap status; 3 is not synchronised.
    pub leap: u16,
    /// When the clock was last set by its source, nanoseconds since 1970.
    pub reference_ns: i64,
    /// What has yet to be added to the clock, in seconds.
    pub correction_s: f64,
    /// Root mean square of the offsets, in seconds.
    pub rms_offset_s: f64,
    /// Frequency of the clock before correction, in parts per million.
    pub frequency_ppm: f64,
    /// Error bound of the frequency, in parts per million.
    pub skew_ppm: f64,
    /// Delay to the primary source, there and back, in seconds.
    pub root_delay_s: f64,
    /// Dispersion to the primary source, in seconds.
    pub root_dispersion_s: f64,
    /// Time between the last two updates, in seconds.
    pub update_interval_s: f64,
}

/// A source of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Whether the clock follows it.
    pub selected: bool,
    /// Reach register.
    pub reach: u8,
}

impl Tracking {
    /// Reads an answer to [`Question::Tracking`].
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn parse(bytes: &[u8], sequence: u32) -> Result<Self, AnswerError> {
        let mut data = open(bytes, Question::Tracking, sequence)?;
        let reference = data.take();
        let address = data.address()?;
        let (stratum, leap) = (data.u16(), data.u16());
        let reference_ns = data.time();
        let correction_s = data.float();
        let _last_offset = data.float();
        let rms_offset_s = data.float();
        let frequency_ppm = data.float();
        let _residual = data.float();
        Ok(Self {
            reference,
            address,
            stratum,
            leap,
            reference_ns,
            correction_s,
            rms_offset_s,
            frequency_ppm,
            skew_ppm: data.float(),
            root_delay_s: data.float(),
            root_dispersion_s: data.float(),
            update_interval_s: data.float(),
        })
    }
}

impl Source {
    /// Reads an answer to [`Question::SourceCount`].
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn parse_count(bytes: &[u8], sequence: u32) -> Result<u32, AnswerError> {
        Ok(u32::from_be_bytes(open(bytes, Question::SourceCount, sequence)?.take()))
    }

    /// Reads an answer to [`Question::Source`].
    ///
    /// # Errors
    ///
    /// It is none.
    pub fn parse(bytes: &[u8], sequence: u32) -> Result<Self, AnswerError> {
        let mut data = open(bytes, Question::Source(0), sequence)?;
        data.address()?;
        let [_poll, _stratum, state, _mode, _flags, reach] = std::array::from_fn(|_| data.u16());
        Ok(Self { selected: state == 0, reach: reach as u8 })
    }
}

/// Checks the header and the length.
fn open(bytes: &[u8], question: Question, sequence: u32) -> Result<Data<'_>, AnswerError> {
    let (command, kind, data) = question.numbers();
    let short = |needed| AnswerError::Short { length: bytes.len(), needed };
    let Some((header, rest)) = bytes.split_at_checked(ANSWER_HEADER) else {
        return Err(short(ANSWER_HEADER));
    };
    let mut fields = Data { bytes, at: 0 };
    let [version, packet, _, _] = fields.take();
    let (found_command, found_kind, status) = (fields.u16(), fields.u16(), fields.u16());
    fields.at = 16;
    let found_sequence = u32::from_be_bytes(fields.take());
    debug_assert!(fields.at <= header.len());
    let expect = |what, offset, found, wanted| {
        if found == wanted {
            Ok(())
        } else {
            Err(AnswerError::Header { what, offset, found, wanted })
        }
    };
    expect("the version", 0, version.into(), VERSION.into())?;
    expect("the type", 1, packet.into(), ANSWER.into())?;
    expect("the command", 4, found_command.into(), command.into())?;
    expect("the sequence number", 16, found_sequence, sequence)?;
    if status != 0 {
        return Err(AnswerError::Refused(status));
    }
    expect("the kind of answer", 6, found_kind.into(), kind.into())?;
    if rest.len() < data {
        return Err(short(ANSWER_HEADER + data));
    }
    Ok(Data { bytes, at: ANSWER_HEADER })
}

/// Bytes whose length has been checked; beyond them there are zeroes.
struct Data<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Data<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        self.at += N;
        bytes.copied().unwrap_or([0; N])
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    /// Sixteen bytes, of which IPv4 uses the first four, the family, and two bytes of padding.
    fn address(&mut self) -> Result<Option<IpAddr>, AnswerError> {
        let octets: [u8; 16] = self.take();
        let offset = self.at;
        let (family, _padding) = (self.u16(), self.u16());
        let [a, b, c, d, ..] = octets;
        match family {
            0 | 3 => Ok(None), // none, or a source that has only a number
            1 => Ok(Some(Ipv4Addr::new(a, b, c, d).into())),
            2 => Ok(Some(Ipv6Addr::from(octets).into())),
            _ => Err(AnswerError::Family { family, offset }),
        }
    }

    /// Seconds, high and low, and nanoseconds; the high part of ones alone means that there is none.
    fn time(&mut self) -> i64 {
        let (high, low, nanoseconds) = (self.u32(), self.u32(), self.u32());
        let high = if high == 0x7fff_ffff { 0 } else { high };
        let seconds = (u64::from(high) << 32 | u64::from(low)).cast_signed();
        seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.into())
    }

    fn float(&mut self) -> f64 {
        let bits = self.u32().cast_signed();
        let exponent = bits >> 25;
        let coefficient = bits << 7 >> 7;
        f64::from(coefficient) * f64::from(exponent - 25).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(question: Question, sequence: u32, data: &[u8]) -> Vec<u8> {
        let (command, kind, length) = question.numbers();
        let mut bytes = vec![VERSION, ANSWER, 0, 0];
        bytes.extend(command.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend(sequence.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend(data);
        bytes.resize(ANSWER_HEADER + length, 0);
        bytes
    }

    #[test]
    fn a_question_is_as_long_as_its_answer() {
        for (question, length) in
            [(Question::Tracking, 104), (Question::SourceCount, 32), (Question::Source(7), 76)]
        {
            let bytes = question.emit(0x0102_0304);
            assert_eq!(bytes.len(), length);
            assert_eq!(bytes[8..12], [1, 2, 3, 4]);
        }
        assert_eq!(Question::Source(7).emit(1)[20..24], [0, 0, 0, 7]);
    }

    #[test]
    fn numbers_with_a_point() {
        let float = |bits: u32| Data { bytes: &bits.to_be_bytes(), at: 0 }.float();
        // 1.0 is 2^23 with exponent 2; -1.0 the same with the coefficient's sign.
        assert_eq!(float(2 << 25 | 1 << 23), 1.0);
        assert_eq!(float(2 << 25 | (0x01ff_ffff & (-(1i32 << 23)).cast_unsigned())), -1.0);
        assert_eq!(float(0), 0.0);
        // A negative exponent: 2^23 · 2^(-30-25).
        assert_eq!(float((-30i32 << 25).cast_unsigned() | 1 << 23), (-32f64).exp2());
    }

    #[test]
    fn what_is_no_answer_is_refused_and_reported() {
        let good = answer(Question::SourceCount, 9, &5u32.to_be_bytes());
        assert_eq!(Source::parse_count(&good, 9), Ok(5));
        let header =
            |what, offset, found, wanted| Err(AnswerError::Header { what, offset, found, wanted });
        assert_eq!(Source::parse_count(&good, 8), header("the sequence number", 16, 9, 8));
        let with = |offset: usize, value| {
            let mut bytes = good.clone();
            bytes[offset] = value;
            Source::parse_count(&bytes, 9)
        };
        assert_eq!(with(0, 5), header("the version", 0, 5, 6));
        assert_eq!(with(1, 1), header("the type", 1, 1, 2));
        assert_eq!(with(5, 33), header("the command", 4, 33, 14));
        assert_eq!(with(7, 5), header("the kind of answer", 6, 5, 2));
        assert_eq!(with(9, 2), Err(AnswerError::Refused(2)));
        for length in 0..good.len() {
            let short = Source::parse_count(&good[..length], 9);
            assert!(matches!(short, Err(AnswerError::Short { .. })), "{length}: {short:?}");
        }
        let mut family = [0; 24];
        family[21] = 9;
        let tracking = answer(Question::Tracking, 1, &family);
        assert_eq!(
            Tracking::parse(&tracking, 1),
            Err(AnswerError::Family { family: 9, offset: ANSWER_HEADER + 20 })
        );
    }

    /// What chronyd 4.3 answered that was configured with `local stratum 3`.
    #[test]
    fn a_real_answer_is_read() {
        let mut data = vec![0x7f, 0x7f, 1, 1];
        data.resize(24, 0);
        data.extend([0, 3, 0, 0, 0, 0, 0, 0, 0x6b, 0x02, 0xd5, 0x2d, 0x34, 0x3c, 0xe5, 0xcd]);
        let tracking = Tracking::parse(&answer(Question::Tracking, 77, &data), 77).unwrap();
        assert_eq!((tracking.reference, tracking.address), ([127, 127, 1, 1], None));
        assert_eq!((tracking.stratum, tracking.leap), (3, 0));
        assert_eq!(tracking.reference_ns, 1_795_347_757_876_406_221);
        assert_eq!((tracking.correction_s, tracking.root_dispersion_s), (0.0, 0.0));
    }

    #[test]
    fn addresses_and_times() {
        let mut data = vec![0xc0, 0, 2, 1];
        data.extend([192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        data.extend([0, 3, 0, 0]);
        data.extend([0x7f, 0xff, 0xff, 0xff, 0x60, 0, 0, 0, 0, 0, 0, 7]);
        let tracking = Tracking::parse(&answer(Question::Tracking, 1, &data), 1).unwrap();
        assert_eq!(tracking.reference, [192, 0, 2, 1]);
        assert_eq!(tracking.address, Some("192.0.2.1".parse().unwrap()));
        assert_eq!((tracking.stratum, tracking.leap), (3, 0));
        assert_eq!(tracking.reference_ns, 0x6000_0000 * 1_000_000_000 + 7);
    }
}
