//! Any bytes on a connection of a lab's control socket, however they are cut: each line is a request that reads back
//! as it was written, or an error that can be shown on one line; any text as the name of a link is found or refused.

use crate::conversation;
use ::control::{Answer, Reply, converse};
use lab::{
    Builder, LinkSettings, Network, Relation,
    control::{Finder, Request, parse},
};
use serde_json::Value;
use std::sync::LazyLock;

/// Names with hyphens, and two parallel links.
static NETWORK: LazyLock<Network> = LazyLock::new(|| {
    let mut builder = Builder::new();
    let [a, b, c] = ["a", "a-b", "b-c"].map(|name| builder.node(name).expect("a node"));
    for (from, to) in [(a, b), (a, b), (b, c)] {
        builder.link(from, to, &LinkSettings::default(), 1, Relation::None).expect("a link");
    }
    builder.finish().expect("a network")
});

/// What is read of a line: the request, and of a link what is meant.
async fn reply(line: Vec<u8>) -> Result<Reply, String> {
    let request = parse(&line)?;
    let text = serde_json::to_string(&request).expect("a request is JSON");
    assert!(!text.contains('\n'));
    let read = parse(text.as_bytes()).expect("what is written is read");
    assert_eq!(std::mem::discriminant(&request), std::mem::discriminant(&read));
    if let Request::Link { link, .. } = request {
        let finder = Finder::new(&NETWORK, &[]);
        let meant = finder.link(&link).map_err(|error| error.to_string())?;
        assert!(meant.link.0 < NETWORK.links());
    }
    Ok(Reply::Value(Value::Null))
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let answers = conversation(data, usize::MAX, |stream| converse(stream, reply));
    assert_eq!(conversation(data, 7, |stream| converse(stream, reply)), answers);
    for answer in answers.split_inclusive(|byte| *byte == b'\n') {
        serde_json::from_slice::<Answer>(answer).expect("an answer on one line");
    }
}
