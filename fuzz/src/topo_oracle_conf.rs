//! Any text as files of the format oracle.conf: a main file, then files of routers, each after a line `@ADDRESS`. What
//! loads is written and loads back to the same.

use std::{collections::BTreeMap, path::Path};
use topo::{Builder, Change, Feed, Options, RouterId, dump, load};

/// The main file and those of routers.
type Files = (Vec<u8>, BTreeMap<RouterId, Vec<u8>>);

fn split(data: &[u8]) -> Files {
    let (mut main, mut routers) = (Vec::new(), BTreeMap::new());
    let mut current: Option<RouterId> = None;
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let name = line.strip_prefix(b"@").and_then(|name| std::str::from_utf8(name).ok());
        match (name.and_then(|name| name.trim().parse().ok()), current) {
            (Some(id), _) => current = Some(id),
            (None, Some(id)) => routers.entry(id).or_insert_with(Vec::new).extend(line),
            (None, None) => main.extend(line),
        }
    }
    (main, routers)
}

fn read((main, routers): &Files) -> Option<Builder> {
    let mut changes: Vec<Change> = Vec::new();
    let mut file = |_: &Path, id: RouterId| (id.to_string().into(), Ok(routers.get(&id).cloned()));
    match load::oracle_conf::parse(main, Path::new("main"), &mut file, &mut |c| changes.push(c)) {
        Ok(notices) => assert_eq!(notices.errors, 0),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    }
    let mut builder = Builder::new(Options::default());
    for change in changes {
        builder.apply(Feed::CONFIGURATION, change).expect("what loads is sound");
    }
    Some(builder)
}

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let Some(mut builder) = read(&split(data)) else { return };
    let view = builder.view();
    for router in 0..view.graph.routers().len().min(16) as u32 {
        view.tree(topo::RouterIndex(router));
    }
    let files = dump::oracle_conf(builder.topology());
    let routers = files.routers.into_iter().map(|(id, text)| (id, text.into_bytes())).collect();
    let again = read(&(files.main.into_bytes(), routers)).expect("what is written loads");
    let (before, after) = (builder.topology(), again.topology());
    assert!(before.routers().eq(after.routers()));
    // What waits for routers that are not declared is not written, and there is a note of it.
    let waits = !before.undeclared().is_empty();
    assert!(before.links().eq(after.links()));
    assert!(before.next_hops().eq(after.next_hops()));
    assert!(waits || before.internal().eq(after.internal()));
    assert!(waits || before.routes().eq(after.routes()));
}
