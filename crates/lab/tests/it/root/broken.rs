//! A lab whose engine panics is taken down: the caller gets an error, and nothing is left behind.

use lab::{
    run::{Lab, Options, RunError},
    scene::{HostTable, LabTable, NodeTable, Scene},
};
use std::path::Path;

/// One node with one host.
fn scene() -> Scene {
    let node = NodeTable {
        name: "r".into(),
        address: Vec::new().into(),
        prefix: Vec::new().into(),
        prohibit: Vec::new().into(),
    };
    let host = HostTable::new("pc", "r", vec!["192.0.2.10/24".parse().unwrap()]);
    Scene { lab: LabTable::default(), nodes: vec![node], hosts: vec![host], ..Scene::default() }
}

#[test]
fn a_panic_leaves_nothing() {
    testbed::need_root();
    let scene = scene();
    let prefix = format!("nigh.{}.panic.", std::process::id());
    let namespace = Path::new("/run/netns").join(format!("{prefix}pc"));
    let options = Options { file: "scene.toml".into(), prefix };
    let mut lab = Lab::start(&scene, scene.stage(Path::new("")).unwrap(), &options).unwrap();
    assert!(namespace.exists());
    assert_eq!(lab.handle().call(|engine, _| engine.network().nodes()).unwrap(), 1);
    assert!(lab.handle().call(|_, _| panic!("as the test wants it")).is_err());
    assert!(matches!(lab.wait(None), Err(RunError::Broke)));
    assert!(lab.handle().call(|_, _| ()).is_err());
    drop(lab);
    assert!(!namespace.exists());
}
