//! Requests with random candidates, built before they are needed.

use super::{ClientError, Server};
use crate::{candidate::Candidate, proxidor::Query};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use std::net::Ipv4Addr;

/// Different requests that a client sends in turn.
const DIFFERENT: usize = 64;

/// Requests that differ in their candidates; each gets its identification when it is sent.
pub(super) struct Questions {
    requests: Vec<Vec<u8>>,
    next: usize,
    server: Server,
}

impl Questions {
    /// Requests for `candidates` random unicast IPv4 addresses each.
    pub(super) fn random(
        server: &Server,
        candidates: usize,
        seed: u64,
    ) -> Result<Self, ClientError> {
        let mut random = SmallRng::seed_from_u64(seed);
        let requests = (0..DIFFERENT)
            .map(|_| {
                let asked: Vec<_> = (0..candidates).map(|_| unicast(&mut random)).collect();
                let mut bytes = Vec::new();
                let query = Query { metric: server.metric, candidates: &asked, ..Query::default() };
                // The block's room; the tag is put there with the identification.
                let query = Query { key: server.key.as_ref(), ..query };
                query.emit(&mut bytes).map(|()| bytes)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { requests, next: 0, server: server.clone() })
    }

    /// Bytes of each.
    pub(super) fn bytes(&self) -> usize {
        self.requests.first().map_or(0, Vec::len)
    }

    /// The next request, under this identification.
    pub(super) fn next(&mut self, identification: u32) -> &[u8] {
        self.next = (self.next + 1) % self.requests.len();
        let Some(request) = self.requests.get_mut(self.next) else { return &[] };
        if let Some(field) = request.get_mut(4..8) {
            field.copy_from_slice(&identification.to_be_bytes());
        }
        if let Some(key) = &self.server.key {
            key.sign(request);
        }
        request
    }
}

/// A random address that is neither 0/8, 127/8, multicast nor reserved.
fn unicast(random: &mut SmallRng) -> Candidate {
    loop {
        let address = Ipv4Addr::from(random.random::<u32>());
        if !wire::space::is_bogon_source(address.into()) {
            return Candidate::V4(address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxidor::Request;

    fn server(key: Option<&str>) -> Server {
        let key = key.map(|key| key.parse().unwrap());
        Server { address: ([127, 0, 0, 1], 1).into(), key, metric: Some(3) }
    }

    #[test]
    fn every_question_is_a_request_of_its_own() {
        let mut questions = Questions::random(&server(None), 100, 7).unwrap();
        assert_eq!(questions.bytes(), 16 + 400);
        let first = questions.next(1).to_vec();
        let second = questions.next(0x0102_0304).to_vec();
        let (one, two) = (Request::parse(&first).unwrap(), Request::parse(&second).unwrap());
        assert_eq!((one.header.identification, two.header.identification), (1, 0x0102_0304));
        assert_eq!((one.metric(), one.lists.count()), (3, 100));
        assert!(!one.lists.candidates().eq(two.lists.candidates()));
        let again = Questions::random(&server(None), 100, 7).unwrap().next(1).to_vec();
        assert_eq!(again, first, "the same seed asks the same");
    }

    #[test]
    fn an_authenticated_question_is_signed_when_it_is_sent() {
        let server = server(Some("000102030405060708090a0b0c0d0e0f"));
        let mut questions = Questions::random(&server, 2, 7).unwrap();
        for identification in 0..100 {
            assert!(server.key.as_ref().unwrap().verifies(questions.next(identification)));
        }
    }
}
