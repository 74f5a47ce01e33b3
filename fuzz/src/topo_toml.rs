//! Any bytes as a topology file in TOML: it is refused with places that are in it, or what loads is
//! written and loads back to the same.

use std::path::Path;
use topo::{
    Builder, Change, Feed, Options, dump,
    load::{self, LoadError},
};

fn read(data: &[u8]) -> Option<Builder> {
    let mut changes: Vec<Change> = Vec::new();
    let name = Path::new("network.toml");
    match load::toml::parse(data, name, &mut |change| changes.push(change), &mut |_| ()) {
        Ok(notices) => assert_eq!(notices.errors, 0),
        Err(LoadError::Bad(notices)) => {
            assert!(notices.errors > 0, "refused without saying why");
            let lines = data.split(|byte| *byte == b'\n').count();
            assert!(notices.first.iter().all(|n| (1..=lines).contains(&n.line)), "{notices}");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let mut builder = Builder::new(Options::default());
    for change in changes {
        builder.apply(Feed::CONFIGURATION, change).expect("what loads is sound");
    }
    Some(builder)
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some(mut builder) = read(data) else { return };
    builder.view();
    let mut text = Vec::new();
    let notes = dump::toml(builder.topology(), &mut text).expect("memory can be written");
    assert!(notes.is_empty(), "{notes:?}");
    let again = read(&text).expect("what is written loads");
    let (before, after) = (builder.topology(), again.topology());
    assert!(before.routers().eq(after.routers()));
    assert!(before.links().eq(after.links()));
    assert!(before.next_hops().eq(after.next_hops()));
    assert!(before.internal().eq(after.internal()));
    assert!(before.routes().eq(after.routes()));
}
