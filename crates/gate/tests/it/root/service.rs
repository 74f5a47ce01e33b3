//! The gate's start and end in namespaces: what it leaves behind when it cannot start, what it finds of a
//! process before it, and interfaces that go and come again.

use gate::{
    config::{Config, GateConfig},
    parser::link::Program,
    service::{Opened, Service, StartError},
};
use job::Service as _;
use std::path::Path;
use tempfile::TempDir;
use testbed::{End, Namespace, link, wait_until};

/// A router with an internal interface, and its state.
struct Scene {
    router: Namespace,
    host: Namespace,
    state: TempDir,
}

impl Scene {
    fn new() -> Self {
        let router = Namespace::new("router").unwrap();
        let host = Namespace::new("host").unwrap();
        let scene = Self { router, host, state: tempfile::tempdir().unwrap() };
        scene.plug();
        scene
    }

    fn plug(&self) {
        link(
            End::new(&self.router, "internal").address("192.0.2.1/24"),
            End::new(&self.host, "eth0").address("192.0.2.2/24"),
        )
        .unwrap();
    }

    fn open(&self, text: &str) -> Result<Opened, StartError> {
        let gate: GateConfig =
            toml::from_str(&format!("internal = [\"internal\"]\n{text}")).unwrap();
        assert_eq!(gate.problems(), []);
        let config = Config { node: "test".into(), state: self.state.path().into(), gate };
        gate::service::mount(None);
        self.router.enter(|| Opened::open(config, None, Program::Here))
    }

    fn start(&self, text: &str) -> Result<Service, StartError> {
        let opened = self.open(text)?;
        self.router.enter(|| opened.start())
    }

    fn stop(&self, service: &Service) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(service.stop());
    }

    /// Takes off what a stopped or killed process has left in force.
    fn take_off(&self) {
        assert!(self.router.enter(gate::service::take_off).unwrap());
        assert!(!self.has_shaper());
    }

    /// Whether the internal interface has a shaper.
    fn has_shaper(&self) -> bool {
        self.router.check(&["tc", "qdisc", "show", "dev", "internal"]).unwrap().contains("htb")
    }
}

/// Whether a service found the gate of a process before it.
fn took_over(service: &Service) -> bool {
    service.status()["taken_over"] == true
}

const LIMIT: &str = r#"
[[limit]]
name = "slow"
to_internal = "1mbit"
[[rule]]
name = "slowly"
category = ["peer-to-peer"]
action = "limit"
limit = "slow"
"#;

/// An audit whose folder cannot be.
fn no_audit(folder: &Path) -> String {
    let file = folder.join("file");
    std::fs::write(&file, "").unwrap();
    format!("{LIMIT}\n[audit]\nfolder = {:?}", file.join("audit"))
}

#[test]
fn a_start_that_fails_leaves_nothing_but_what_was_there_before() {
    let scene = Scene::new();
    let broken = no_audit(scene.state.path());
    assert!(matches!(scene.start(&broken), Err(StartError::Audit(_))));
    assert!(!scene.has_shaper());
    let service = scene.start(LIMIT).unwrap();
    assert!(!took_over(&service) && scene.has_shaper());
    scene.stop(&service);
    assert!(scene.has_shaper(), "a stopped gate stays in force");
    scene.take_off();
    // An opened gate that is dropped is like one whose process was killed.
    drop(scene.open(LIMIT).unwrap());
    assert!(matches!(scene.start(&broken), Err(StartError::Audit(_))));
    assert!(scene.has_shaper(), "the gate of the process before stays in force");
    let service = scene.start(LIMIT).unwrap();
    assert!(took_over(&service));
    scene.stop(&service);
    scene.take_off();
}

#[test]
fn what_limits_left_behind_goes_and_a_bypass_in_the_file_is_heeded() {
    let scene = Scene::new();
    drop(scene.open(LIMIT).unwrap());
    let service = scene.start("bypass = true").unwrap();
    assert!(took_over(&service) && !scene.has_shaper());
    let status = service.status();
    assert_eq!(status["bypass"], true, "{status:#}");
    assert_eq!(status["internal"][0], "internal", "there is a status as soon as it runs");
    scene.stop(&service);
}

#[test]
fn an_interface_that_comes_again_is_governed_again() {
    let scene = Scene::new();
    let service = scene.start(&format!("refuse_at = \"driver\"\n{LIMIT}")).unwrap();
    let sees = || {
        let received = || service.status()["packets"]["from_internal"]["received"].as_u64();
        let before = received();
        let more = || {
            scene.host.check(&["ping", "-c", "1", "192.0.2.1"]).unwrap();
            received() > before
        };
        wait_until("packets are seen", testbed::LIMIT, more).unwrap();
    };
    sees();
    scene.router.check(&["ip", "link", "del", "internal"]).unwrap();
    let gone =
        || service.problems().iter().any(|why| why == "an interface does not exist: internal");
    wait_until("the interface is missed", testbed::LIMIT, gone).unwrap();
    scene.plug();
    wait_until("it is governed", testbed::LIMIT, || scene.has_shaper()).unwrap();
    sees();
    let driver = scene.router.check(&["ip", "link", "show", "dev", "internal"]).unwrap();
    assert!(driver.contains("prog/xdp"), "{driver}");
    scene.stop(&service);
    scene.take_off();
}
