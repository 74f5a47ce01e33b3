//! Whole messages: a request or reply as read, and a request or reply as written.
//!
//! What is wrong with a request is looked for in the order of its bytes, and the first thing found
//! is what it is answered with. In the fixed header that is: version, operation, category, type of
//! authentication and service code (not supported), then the length of the datagram and a type of
//! authentication without a block (malformed).

use ipnet::{Ipv4Net, Ipv6Net};
use std::iter;

use super::{
    MAX_MIXED_REPLY, MAX_REQUEST,
    auth::{BLOCK, Key},
    header::{HEADER, Header, Rcode},
    tlv::{self, Fault, Kind, Lists, TLV_HEADER, push_candidate},
};
use crate::candidate::Candidate;

/// Authentication type 0: none.
pub const AUTH_NONE: u8 = 0;
/// Authentication type 1: SipHash-2-4.
pub const AUTH_SIPHASH: u8 = 1;

/// Why a datagram cannot be read as a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// There is no whole header; nothing can be answered.
    #[error("{0} bytes are too short for a header")]
    Short(usize),
    /// It is a reply; answering it could go on forever.
    #[error("it is a reply")]
    Reply,
    /// It is answered with the fault's code.
    #[error("{fault}")]
    Fault {
        /// Returned in the reply.
        identification: u32,
        /// What is wrong.
        fault: Fault,
    },
}

/// A request as read: a view over the bytes of its datagram, which were checked to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The fixed header.
    pub header: Header,
    /// The IPv4 source to rank from, with the host bits it came with.
    pub source4: Option<Ipv4Net>,
    /// The IPv6 source to rank from, with the host bits it came with.
    pub source6: Option<Ipv6Net>,
    /// The candidates.
    pub lists: Lists<'a>,
}

impl<'a> Request<'a> {
    /// Reads a request and checks everything that its bytes alone show: that leaves whether
    /// the server has the metric and the key, whether the tag is right and the source allowed.
    ///
    /// # Errors
    /// The first thing that is wrong, and with what it is answered.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, RequestError> {
        let (header, rest) = Header::parse(datagram).ok_or(RequestError::Short(datagram.len()))?;
        if header.reply {
            return Err(RequestError::Reply);
        }
        Self::behind(header, rest, datagram.len())
            .map_err(|fault| RequestError::Fault { identification: header.identification, fault })
    }

    fn behind(header: Header, rest: &'a [u8], length: usize) -> Result<Self, Fault> {
        check_fixed(&header)?;
        if header.servcode & header.servcode.wrapping_sub(1) != 0 {
            return Err(Fault::not_supported(0, "more than one metric is asked for"));
        }
        if length > MAX_REQUEST {
            return Err(Fault::malformed(MAX_REQUEST, "the datagram is longer than 1,498 bytes"));
        }
        let mut rest = skip_block(&header, rest)?;
        let at = |rest: &[u8]| length - rest.len();
        let mut source4 = None;
        if header.source4 {
            let (net, behind) = source(Kind::Net4, rest, at(rest))?;
            rest = behind;
            if let Candidate::Net4(net) = net {
                source4 = Some(net);
            }
        }
        let mut source6 = None;
        if header.source6 {
            let (net, behind) = source(Kind::Net6, rest, at(rest))?;
            rest = behind;
            if let Candidate::Net6(net) = net {
                source6 = Some(net);
            }
        }
        let lists = Lists::parse(rest, at(rest))?;
        Ok(Self { header, source4, source6, lists })
    }

    /// Whether a tag is with it.
    pub fn has_tag(&self) -> bool {
        self.header.authentication == AUTH_SIPHASH
    }

    /// The number of the metric that is asked for: 0 is the default.
    pub fn metric(&self) -> usize {
        self.header.servcode.checked_ilog2().unwrap_or(0) as usize
    }
}

/// What both requests and replies must have in their header.
fn check_fixed(header: &Header) -> Result<(), Fault> {
    if header.version != 0 {
        return Err(Fault::not_supported(0, "the version is not 0"));
    }
    if header.opcode != 0 {
        return Err(Fault::not_supported(2, "the operation is not 0"));
    }
    if header.category != 0 {
        return Err(Fault::not_supported(10, "the service category is not 0"));
    }
    if header.authentication > AUTH_SIPHASH {
        return Err(Fault::not_supported(11, "the type of authentication is neither 0 nor 1"));
    }
    Ok(())
}

/// The bytes behind the block, if there is one.
fn skip_block<'a>(header: &Header, rest: &'a [u8]) -> Result<&'a [u8], Fault> {
    if !header.block {
        if header.authentication != AUTH_NONE {
            return Err(Fault::malformed(11, "a type of authentication without its block"));
        }
        return Ok(rest);
    }
    let short = Fault::malformed(HEADER, "the bytes end before the authentication block does");
    rest.get(BLOCK..).ok_or(short)
}

/// A source, and the bytes behind it.
fn source(kind: Kind, rest: &[u8], at: usize) -> Result<(Candidate, &[u8]), Fault> {
    let Some((bytes, behind)) = rest.split_at_checked(kind.width()) else {
        return Err(Fault::malformed(at, "the bytes end before a source does"));
    };
    let longer = Fault::malformed(at, "the source's prefix is longer than its address");
    Ok((tlv::candidate(kind, bytes).ok_or(longer)?, behind))
}

/// A request to be written.
#[derive(Clone, Debug, Default)]
pub struct Query<'a> {
    /// Returned in the reply.
    pub identification: u32,
    /// The metric that is asked for; none: whatever the server ranks by.
    pub metric: Option<u8>,
    /// Rank from here instead of the sender's address.
    pub source4: Option<Ipv4Net>,
    /// Rank from here instead of the sender's address.
    pub source6: Option<Ipv6Net>,
    /// Authenticate with this key.
    pub key: Option<&'a Key>,
    /// What is to be ranked.
    pub candidates: &'a [Candidate],
}

/// A request cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// A request asks for at least one candidate.
    #[error("there is no candidate to be ranked")]
    Empty,
    /// There are more candidates of a type than one request may hold.
    #[error(
        "{count} candidates are too many: a request holds 363 IPv4 or 90 IPv6 addresses, 290 IPv4 or 85 IPv6 prefixes"
    )]
    TooMany {
        /// How many of the type there are.
        count: usize,
    },
    /// It would be longer than the longest datagram.
    #[error("the request would be longer than 1,498 bytes: ask for fewer candidates")]
    TooLong,
    /// The service code has 12 bits.
    #[error("there is no metric {0}: they are numbered 0 to 11")]
    Metric(u8),
}

impl Query<'_> {
    /// Writes the request over what is in the buffer; each run of one type becomes a TLV. Without a tag, empty TLVs
    /// before them make it as long as the longest reply, because a server sends no longer one.
    ///
    /// # Errors
    /// When it has no candidate, or too many.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), QueryError> {
        if self.candidates.is_empty() {
            return Err(QueryError::Empty);
        }
        for kind in Kind::ALL {
            let count = self.candidates.iter().filter(|c| Kind::of(c) == kind).count();
            if count > kind.limit() {
                return Err(QueryError::TooMany { count });
            }
        }
        let servcode = match self.metric {
            None => 0,
            Some(metric @ 0..12) => 1 << metric,
            Some(metric) => return Err(QueryError::Metric(metric)),
        };
        let header = Header {
            reply: false,
            block: self.key.is_some(),
            source4: self.source4.is_some(),
            source6: self.source6.is_some(),
            authentication: if self.key.is_some() { AUTH_SIPHASH } else { AUTH_NONE },
            ..Header::reply(self.identification, Rcode::NO_ERROR, servcode)
        };
        out.clear();
        out.extend_from_slice(&header.emit());
        if self.key.is_some() {
            out.extend_from_slice(&[0; BLOCK]);
        }
        if let Some(net) = self.source4 {
            push_candidate(out, &Candidate::Net4(net));
        }
        if let Some(net) = self.source6 {
            push_candidate(out, &Candidate::Net6(net));
        }
        let begin = out.len();
        if tlv::push_runs(out, self.candidates, MAX_REQUEST) < self.candidates.len() {
            return Err(QueryError::TooLong);
        }
        if self.key.is_none() {
            let room = MAX_MIXED_REPLY.saturating_sub(out.len()) / TLV_HEADER;
            let padding = missing_runs(self.candidates).min(room);
            let empty = tlv::header(Kind::V4, true, 0);
            out.splice(begin..begin, iter::repeat_n(empty, padding).flatten());
        }
        if let Some(key) = self.key {
            key.sign(out);
        }
        Ok(())
    }
}

/// How many more runs of one type the same candidates may have in another order.
fn missing_runs(candidates: &[Candidate]) -> usize {
    let runs = candidates.chunk_by(|a, b| Kind::of(a) == Kind::of(b)).count();
    let count = |kind| candidates.iter().filter(|candidate| Kind::of(candidate) == kind).count();
    let most = Kind::ALL.into_iter().map(count).max().unwrap_or_default();
    // Between each two of the most frequent type another one.
    let others = candidates.len() - most;
    (2 * others + 1).min(candidates.len()) - runs
}

/// A reply as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The fixed header.
    pub header: Header,
    /// The candidates, best first. Empty unless the code is one with a ranking.
    pub candidates: Vec<Candidate>,
}

/// Why a datagram cannot be read as a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// There is no whole header.
    #[error("{0} bytes are too short for a header")]
    Short(usize),
    /// It is a request.
    #[error("it is a request")]
    Request,
    /// It does not keep to the format.
    #[error("{0}")]
    Fault(Fault),
    /// It carries a tag and the tag is wrong, or no tag where one is expected.
    #[error("it is not authenticated")]
    NotAuthenticated,
}

impl Reply {
    /// Reads a reply. With a key, one that has a ranking must carry the right tag; an error is
    /// taken without one, as servers send them.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(datagram: &[u8], key: Option<&Key>) -> Result<Self, ReplyError> {
        let (header, rest) = Header::parse(datagram).ok_or(ReplyError::Short(datagram.len()))?;
        if !header.reply {
            return Err(ReplyError::Request);
        }
        check_fixed(&header).map_err(ReplyError::Fault)?;
        if header.source4 || header.source6 {
            let fault = Fault::malformed(2, "a reply carries a source");
            return Err(ReplyError::Fault(fault));
        }
        let rest = skip_block(&header, rest).map_err(ReplyError::Fault)?;
        if !header.rcode.has_ranking() {
            if !rest.is_empty() {
                let fault = Fault::malformed(datagram.len() - rest.len(), "bytes follow an error");
                return Err(ReplyError::Fault(fault));
            }
            return Ok(Self { header, candidates: Vec::new() });
        }
        if let Some(key) = key
            && (header.authentication != AUTH_SIPHASH || !key.verifies(datagram))
        {
            return Err(ReplyError::NotAuthenticated);
        }
        let at = datagram.len() - rest.len();
        let lists = Lists::parse(rest, at).map_err(ReplyError::Fault)?;
        Ok(Self { header, candidates: lists.candidates().collect() })
    }
}

/// Begins a reply with a ranking over what is in the buffer: header and, if a tag is to come, block.
pub fn begin_reply(out: &mut Vec<u8>, request: &Header, servcode: u16, ttl: u16) {
    let tag = request.authentication == AUTH_SIPHASH;
    let header = Header {
        ttl,
        block: tag,
        authentication: if tag { AUTH_SIPHASH } else { AUTH_NONE },
        ..Header::reply(request.identification, Rcode::NO_ERROR, servcode)
    };
    out.clear();
    out.extend_from_slice(&header.emit());
    if tag {
        out.extend_from_slice(&[0; BLOCK]);
    }
}

/// Appends the candidates of a request of one type as one TLV, in the order of the request, and
/// returns where they begin.
pub fn push_one_list(out: &mut Vec<u8>, kind: Kind, lists: &Lists<'_>) -> usize {
    out.extend_from_slice(&tlv::header(kind, false, lists.count_of(kind) * kind.width()));
    let at = out.len();
    for list in lists.iter() {
        out.extend_from_slice(list.bytes);
    }
    debug_assert_eq!(out.len(), at + lists.count_of(kind) * kind.width());
    at
}

/// Appends candidates of several types, best first, a TLV for each run. What has no room in `longest` bytes is left
/// out, and the code in the header shows it.
pub fn push_mixed<'c>(
    out: &mut Vec<u8>,
    count: usize,
    candidates: impl IntoIterator<Item = &'c Candidate>,
    longest: usize,
) -> Rcode {
    if tlv::push_runs(out, candidates, longest.min(MAX_MIXED_REPLY)) == count {
        return Rcode::NO_ERROR;
    }
    if let Some(byte) = out.get_mut(3) {
        *byte = Rcode::CUT.0;
    }
    Rcode::CUT
}

const _: () = assert!(HEADER + BLOCK + 5 + 17 + TLV_HEADER + 363 * 4 == MAX_REQUEST);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidates(text: &str) -> Vec<Candidate> {
        text.split(' ').map(|word| word.parse().unwrap()).collect()
    }

    #[test]
    fn a_plain_request_is_sixteen_bytes_and_the_addresses() {
        let candidates = candidates("192.0.2.1 198.51.100.2");
        let mut bytes = Vec::new();
        Query { identification: 0x0102_0304, candidates: &candidates, ..Query::default() }
            .emit(&mut bytes)
            .unwrap();
        let expected =
            [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 1, 0, 0, 12, 192, 0, 2, 1, 198, 51, 100, 2];
        assert_eq!(bytes, expected);
        let request = Request::parse(&bytes).unwrap();
        assert_eq!(request.lists.only(), Some(Kind::V4));
        assert!(request.lists.candidates().eq(candidates));
    }

    #[test]
    fn all_that_a_request_can_carry_is_read_back() {
        let key: Key = "000102030405060708090a0b0c0d0e0f".parse().unwrap();
        let candidates = candidates("192.0.2.1 192.0.2.9/24 2001:db8::/32 2001:db8::1 192.0.2.2");
        let query = Query {
            identification: 7,
            metric: Some(11),
            source4: Some("192.0.2.7/25".parse().unwrap()),
            source6: Some("2001:db8:7::/48".parse().unwrap()),
            key: Some(&key),
            candidates: &candidates,
        };
        let mut bytes = vec![1, 2, 3];
        query.emit(&mut bytes).unwrap();
        assert!(key.verifies(&bytes));
        let request = Request::parse(&bytes).unwrap();
        assert_eq!((request.metric(), request.has_tag()), (11, true));
        assert_eq!((request.source4, request.source6), (query.source4, query.source6));
        assert_eq!((request.lists.count(), request.lists.only()), (5, None));
        assert!(request.lists.candidates().eq(candidates));
    }

    #[test]
    fn a_mixed_request_is_as_long_as_its_longest_reply() {
        for (text, padding) in [
            ("192.0.2.1 192.0.2.2", 0),
            ("192.0.2.1 2001:db8::1", 0),
            ("192.0.2.1 192.0.2.2 2001:db8::1", 1),
            ("192.0.2.1 2001:db8::1 192.0.2.2", 0),
            ("192.0.2.1 192.0.2.2 2001:db8::1 2001:db8::2 192.0.2.0/24", 2),
        ] {
            let candidates = candidates(text);
            assert_eq!(missing_runs(&candidates), padding, "{text}");
            let (mut bytes, mut bare) = (Vec::new(), Vec::new());
            Query { candidates: &candidates, ..Query::default() }.emit(&mut bytes).unwrap();
            tlv::push_runs(&mut bare, &candidates, MAX_REQUEST);
            assert_eq!(bytes.len(), HEADER + padding * TLV_HEADER + bare.len(), "{text}");
            assert!(Request::parse(&bytes).unwrap().lists.candidates().eq(candidates), "{text}");
        }
    }

    #[test]
    fn a_query_that_no_datagram_holds_is_refused() {
        let mut out = Vec::new();
        let mut refused = |candidates: &[Candidate], metric| {
            Query { candidates, metric, ..Query::default() }.emit(&mut out).unwrap_err()
        };
        let address = candidates("192.0.2.1");
        assert_eq!(refused(&[], None), QueryError::Empty);
        assert_eq!(refused(&address.repeat(364), None), QueryError::TooMany { count: 364 });
        assert_eq!(refused(&address, Some(12)), QueryError::Metric(12));
        let mixed = candidates("192.0.2.1 2001:db8::1").repeat(60);
        assert_eq!(refused(&mixed, None), QueryError::TooLong);
    }

    #[test]
    fn a_mixed_reply_is_cut_at_1472_bytes_and_says_so() {
        let candidates = candidates("192.0.2.1 2001:db8::1").repeat(60);
        let request = Header { reply: false, ..Header::reply(9, Rcode::NO_ERROR, 0) };
        let mut out = Vec::new();
        begin_reply(&mut out, &request, 1, 60);
        let rcode = push_mixed(&mut out, candidates.len(), &candidates, MAX_REQUEST);
        // 12 bytes, then 28 bytes for each pair: 52 pairs are 1,468 bytes, one more IPv4 run 1,476.
        assert_eq!((rcode, out.len()), (Rcode::CUT, 1468));
        let reply = Reply::parse(&out, None).unwrap();
        assert_eq!((reply.header.rcode, reply.header.ttl), (Rcode::CUT, 60));
        assert_eq!(reply.candidates, candidates[..104]);
    }

    #[test]
    fn a_reply_must_carry_the_tag_that_is_expected_unless_it_is_an_error() {
        let key = Key::new([7; 16]);
        let mut out = Vec::new();
        let mut request = Header { reply: false, ..Header::reply(9, Rcode::NO_ERROR, 0) };
        let list = candidates("192.0.2.1");
        begin_reply(&mut out, &request, 1, 60);
        push_mixed(&mut out, 1, &list, MAX_REQUEST);
        assert_eq!(Reply::parse(&out, Some(&key)), Err(ReplyError::NotAuthenticated));
        (request.block, request.authentication) = (true, AUTH_SIPHASH);
        begin_reply(&mut out, &request, 1, 60);
        push_mixed(&mut out, 1, &list, MAX_REQUEST);
        assert_eq!(Reply::parse(&out, Some(&key)), Err(ReplyError::NotAuthenticated));
        key.sign(&mut out);
        assert_eq!(Reply::parse(&out, Some(&key)).unwrap().candidates, list);
        let error = Header::reply(9, Rcode::NOT_AUTHENTICATED, 0).emit();
        assert!(Reply::parse(&error, Some(&key)).unwrap().candidates.is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = Reply::parse(&bytes, None);
            if let Ok(request) = Request::parse(&bytes) {
                prop_assert_eq!(request.lists.candidates().count(), request.lists.count());
            }
        }

        /// Headers that are right, lists that may be: deeper than wholly random bytes come.
        #[test]
        fn almost_right_bytes_are_read_or_refused(
            flags in 0u8..8, authentication in 0u8..2,
            lists in proptest::collection::vec((1u8..5, 0u8..4, 0u16..40, any::<bool>()), 1..5),
            filler: u8,
        ) {
            let mut bytes = vec![0, 0, flags, 0, 1, 2, 3, 4, 0, 0, 0, authentication];
            let [block, source4, source6] = [flags >> 2 & 1, flags >> 1 & 1, flags & 1];
            bytes.resize(12 + usize::from(8 * block + 5 * source4 + 17 * source6), filler);
            for (kind, attribute, size, next) in lists {
                bytes.extend([kind, u8::from(next) << 7 | attribute << 5, 0, size as u8]);
                bytes.resize(bytes.len() + usize::from(size), filler);
            }
            if let Ok(request) = Request::parse(&bytes) {
                prop_assert_eq!(request.lists.candidates().count(), request.lists.count());
                prop_assert!(request.lists.count() > 0);
            }
        }
    }
}
