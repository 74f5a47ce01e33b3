//! Any bytes as a Proxidor reply to a client.

use oracle::proxidor::{Key, Query, Reply, Request, message::ReplyError};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let key = Key::new([7; 16]);
    let mut signed = data.to_vec();
    key.sign(&mut signed);
    let with_key = Reply::parse(&signed, Some(&key));
    let reply = match Reply::parse(&signed, None) {
        Ok(reply) => reply,
        // The key changes nothing about what cannot be read.
        Err(error) => {
            return assert!([error, ReplyError::NotAuthenticated].map(Err).contains(&with_key));
        }
    };
    assert!(reply.header.reply);
    assert_eq!(reply.candidates.is_empty(), !reply.header.rcode.has_ranking());
    if reply.header.authentication == 1 || reply.candidates.is_empty() {
        assert_eq!(with_key.as_ref(), Ok(&reply));
    } else {
        assert_eq!(with_key, Err(ReplyError::NotAuthenticated));
    }
    // What was read can be asked for.
    let query = Query { candidates: &reply.candidates, ..Query::default() };
    let mut bytes = Vec::new();
    if query.emit(&mut bytes).is_ok() {
        let request = Request::parse(&bytes).expect("a request");
        assert!(request.lists.candidates().eq(reply.candidates));
    }
}
