//! TLVs: lists of candidates of one type, chained by their N flag.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use super::header::Rcode;
use crate::candidate::Candidate;

/// Bytes of a TLV's header.
pub const TLV_HEADER: usize = 4;
/// N: another TLV follows.
pub const NEXT: u8 = 0x80;

/// The type of a list of candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Type 1: IPv4 addresses.
    V4,
    /// Type 2: IPv6 addresses.
    V6,
    /// Type 3: IPv4 prefixes.
    Net4,
    /// Type 4: IPv6 prefixes.
    Net6,
}

impl Kind {
    /// All types, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::V4, Self::V6, Self::Net4, Self::Net6];

    /// The type with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::V4,
            2 => Self::V6,
            3 => Self::Net4,
            4 => Self::Net6,
            _ => return None,
        })
    }

    /// The number in a TLV's header.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Bytes of a candidate.
    pub fn width(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
            Self::Net4 => 5,
            Self::Net6 => 17,
        }
    }

    /// Candidates of this type that a datagram may hold.
    pub fn limit(self) -> usize {
        match self {
            Self::V4 => 363,
            Self::V6 => 90,
            Self::Net4 => 290,
            Self::Net6 => 85,
        }
    }

    /// The type of a candidate.
    pub fn of(candidate: &Candidate) -> Self {
        match candidate {
            Candidate::V4(_) => Self::V4,
            Candidate::V6(_) => Self::V6,
            Candidate::Net4(_) => Self::Net4,
            Candidate::Net6(_) => Self::Net6,
        }
    }
}

/// What is wrong with a message, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {what}")]
pub struct Fault {
    /// Offset in bytes from the start of the datagram.
    pub offset: usize,
    /// What is wrong, as the end of a sentence.
    pub what: &'static str,
    /// The code that a server answers it with.
    pub rcode: Rcode,
}

impl Fault {
    pub(super) fn malformed(offset: usize, what: &'static str) -> Self {
        Self { offset, what, rcode: Rcode::MALFORMED }
    }

    pub(super) fn not_supported(offset: usize, what: &'static str) -> Self {
        Self { offset, what, rcode: Rcode::NOT_SUPPORTED }
    }
}

/// One TLV that was found whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<'a> {
    /// The type of its candidates.
    pub kind: Kind,
    /// The candidates' bytes, a whole number of them, without the attribute.
    pub bytes: &'a [u8],
}

impl<'a> List<'a> {
    /// Its candidates.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> + use<'a> {
        let kind = self.kind;
        self.bytes.chunks_exact(kind.width()).filter_map(move |bytes| candidate(kind, bytes))
    }
}

/// Reads a candidate; none when the bytes are too few or the prefix length is too large.
pub(super) fn candidate(kind: Kind, bytes: &[u8]) -> Option<Candidate> {
    Some(match kind {
        Kind::V4 => Candidate::V4(Ipv4Addr::from(*bytes.first_chunk::<4>()?)),
        Kind::V6 => Candidate::V6(Ipv6Addr::from(*bytes.first_chunk::<16>()?)),
        Kind::Net4 => {
            let (address, rest) = bytes.split_first_chunk::<4>()?;
            Candidate::Net4(Ipv4Net::new(Ipv4Addr::from(*address), *rest.first()?).ok()?)
        }
        Kind::Net6 => {
            let (address, rest) = bytes.split_first_chunk::<16>()?;
            Candidate::Net6(Ipv6Net::new(Ipv6Addr::from(*address), *rest.first()?).ok()?)
        }
    })
}

/// Appends a candidate's bytes.
pub(super) fn push_candidate(out: &mut Vec<u8>, candidate: &Candidate) {
    match candidate {
        Candidate::V4(address) => out.extend_from_slice(&address.octets()),
        Candidate::V6(address) => out.extend_from_slice(&address.octets()),
        Candidate::Net4(net) => {
            out.extend_from_slice(&net.addr().octets());
            out.push(net.prefix_len());
        }
        Candidate::Net6(net) => {
            out.extend_from_slice(&net.addr().octets());
            out.push(net.prefix_len());
        }
    }
}

/// A chain of TLVs that was checked to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lists<'a> {
    bytes: &'a [u8],
    counts: [u16; 4],
}

impl<'a> Lists<'a> {
    /// Checks a chain that begins at this offset of the datagram and must end where the bytes end.
    ///
    /// # Errors
    /// The first thing that is wrong, in the order of the bytes.
    pub fn parse(bytes: &'a [u8], offset: usize) -> Result<Self, Fault> {
        let mut counts = [0u16; 4];
        let mut rest = bytes;
        loop {
            let at = offset + bytes.len() - rest.len();
            let (list, next, behind) = split(rest, at)?;
            rest = behind;
            let limit = list.kind.limit();
            let count = &mut counts[list.kind as usize];
            *count = count.saturating_add((list.bytes.len() / list.kind.width()) as u16);
            if usize::from(*count) > limit {
                return Err(Fault::malformed(
                    at,
                    "more candidates of a type than a datagram may hold",
                ));
            }
            let longest = match list.kind {
                Kind::Net4 => {
                    list.bytes.chunks_exact(5).map(|net| net[4]).max().filter(|&l| l > 32)
                }
                Kind::Net6 => {
                    list.bytes.chunks_exact(17).map(|net| net[16]).max().filter(|&l| l > 128)
                }
                _ => None,
            };
            if longest.is_some() {
                return Err(Fault::malformed(at, "a prefix is longer than its address"));
            }
            match (next, rest.is_empty()) {
                (true, _) => (),
                (false, true) => break,
                (false, false) => {
                    let at = offset + bytes.len() - rest.len();
                    return Err(Fault::malformed(at, "bytes follow the last TLV"));
                }
            }
        }
        if counts == [0; 4] {
            return Err(Fault::malformed(offset, "there is no candidate"));
        }
        Ok(Self { bytes, counts })
    }

    /// How many candidates there are of a type.
    pub fn count_of(&self, kind: Kind) -> usize {
        self.counts[kind as usize].into()
    }

    /// How many candidates there are: at least 1.
    pub fn count(&self) -> usize {
        self.counts.iter().map(|&count| usize::from(count)).sum()
    }

    /// The type of the candidates, if all are of one.
    pub fn only(&self) -> Option<Kind> {
        let mut kinds = Kind::ALL.into_iter().filter(|&kind| self.count_of(kind) > 0);
        kinds.next().filter(|_| kinds.next().is_none())
    }

    /// The lists one after the other; some may be empty.
    pub fn iter(&self) -> impl Iterator<Item = List<'a>> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (list, _, behind) = split(rest, 0).ok()?;
            rest = behind;
            Some(list)
        })
    }

    /// All candidates, in the order of the datagram.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> + use<'a> {
        self.iter().flat_map(|list| list.candidates())
    }
}

/// The first TLV, whether another should follow, and the bytes behind it.
fn split(bytes: &[u8], at: usize) -> Result<(List<'_>, bool, &[u8]), Fault> {
    let Some((&[kind, flags, s0, s1], _)) = bytes.split_first_chunk::<TLV_HEADER>() else {
        return Err(Fault::malformed(at, "the bytes end before a TLV's header does"));
    };
    let Some(kind) = Kind::from_number(kind) else {
        return Err(Fault::not_supported(at, "the type of a TLV is not known"));
    };
    let attribute = match flags >> 5 & 3 {
        0 => 0,
        1 => 4,
        2 => 8,
        _ => 16,
    };
    let size = usize::from(u16::from_be_bytes([s0, s1]));
    let Some((whole, behind)) = bytes.split_at_checked(size) else {
        return Err(Fault::malformed(at + 2, "the bytes end before a TLV's size is reached"));
    };
    let Some(bytes) = whole.get(TLV_HEADER + attribute..) else {
        return Err(Fault::malformed(at + 2, "a TLV's size is less than its header and attribute"));
    };
    if !bytes.len().is_multiple_of(kind.width()) {
        return Err(Fault::malformed(at + 2, "a TLV's size is not a whole number of candidates"));
    }
    Ok((List { kind, bytes }, flags & NEXT != 0, behind))
}

/// A TLV's header, without attribute. The size must fit in 16 bits, which datagrams see to.
pub(super) fn header(kind: Kind, next: bool, candidates: usize) -> [u8; TLV_HEADER] {
    let [s0, s1] = ((TLV_HEADER + candidates) as u16).to_be_bytes();
    [kind.number(), if next { NEXT } else { 0 }, s0, s1]
}

/// Writes candidates in their order, each run of one type as a TLV, while the message stays within
/// `limit` bytes. Returns how many were written.
pub(super) fn push_runs<'c>(
    out: &mut Vec<u8>,
    candidates: impl IntoIterator<Item = &'c Candidate>,
    limit: usize,
) -> usize {
    // Where the header of the run being written is, and its type.
    let mut run: Option<(usize, Kind)> = None;
    let mut written = 0;
    for candidate in candidates {
        let kind = Kind::of(candidate);
        let same = run.is_some_and(|(_, of)| of == kind);
        let need = kind.width() + if same { 0 } else { TLV_HEADER };
        if out.len() + need > limit {
            break;
        }
        if !same {
            close(out, run, true);
            run = Some((out.len(), kind));
            out.extend_from_slice(&header(kind, false, 0));
        }
        push_candidate(out, candidate);
        written += 1;
    }
    close(out, run, false);
    written
}

/// Completes the header of a run that ends here.
fn close(out: &mut [u8], run: Option<(usize, Kind)>, next: bool) {
    let Some((at, kind)) = run else { return };
    let end = out.len();
    if let Some(slot) = out.get_mut(at..at + TLV_HEADER) {
        slot.copy_from_slice(&header(kind, next, end - at - TLV_HEADER));
    }
}
