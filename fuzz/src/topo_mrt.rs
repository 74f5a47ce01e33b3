//! Any bytes as a dump of routing tables, plain or compressed: what is counted is what was handed on.

use std::{collections::BTreeMap, path::Path};
use topo::{
    Change, RouterId,
    load::{
        LoadError,
        mrt::{self, Exits},
    },
};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let exit: RouterId = "10.8.0.1".parse().expect("an address");
    let peers = BTreeMap::from([("192.0.2.1".parse().expect("an address"), exit)]);
    for exits in [Exits::One(exit), Exits::Peers(peers)] {
        let mut routes = 0;
        let mut each = |change| match change {
            Change::Route { prefix, exit: at, .. } => {
                assert_eq!((prefix, at), (prefix.trunc(), exit));
                routes += 1;
            }
            other => panic!("{other:?}"),
        };
        match mrt::read(data, None, Path::new("rib"), &exits, &mut each, &mut |_| ()) {
            Ok(summary) => {
                assert_eq!(summary.routes, routes);
                assert!(summary.prefixes + summary.other <= summary.records);
            }
            Err(LoadError::Bad(notices)) => assert_eq!((notices.errors, routes), (1, 0)),
            Err(LoadError::Read { .. }) => {}
        }
    }
}
