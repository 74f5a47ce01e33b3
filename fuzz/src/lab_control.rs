//! Any bytes as a line on a lab's control socket: a request that reads back as it was written, or an
//! error that can be shown on one line; and any text as the name of a link, which is found or refused.

use lab::{
    Builder, LinkSettings, Network, Relation,
    control::{Answer, Finder, Request, parse},
};
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

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let answer = match parse(data) {
        Ok(request) => {
            let line = serde_json::to_string(&request).expect("a request is JSON");
            assert!(!line.contains('\n'));
            let read = parse(line.as_bytes()).expect("what is written is read");
            assert_eq!(std::mem::discriminant(&request), std::mem::discriminant(&read));
            let finder = Finder::new(&NETWORK, &[]);
            match request {
                Request::Link { link, .. } => match finder.link(&link) {
                    Ok(meant) => {
                        assert!(meant.link.0 < NETWORK.links());
                        return;
                    }
                    Err(error) => Answer::Error(error.to_string()),
                },
                _ => return,
            }
        }
        Err(error) => Answer::Error(error.to_string()),
    };
    let line = serde_json::to_string(&answer).expect("an answer is JSON");
    assert!(!line.contains('\n'));
}
