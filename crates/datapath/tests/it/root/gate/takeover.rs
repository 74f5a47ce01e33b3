//! What is pinned outlives its process, and the next one takes it over.

use super::site::{Alive, SERVER, Site, kinds, of_side, settings};
use super::through::exchange;
use datapath::gate::{
    AttachError, FlowVerdict, Found, Gate, HookKind, Key, Manage, OnFailure, OpenError, Protocol,
    Rules, Settings,
};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use nix::sys::signal::Signal;
use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, TcpListener, TcpStream, UdpSocket},
    path::PathBuf,
    time::Duration,
};
use testbed::{LIMIT, wait_until};

/// Where the process that is killed finds the folder.
const PIN: &str = "NIGH_TEST_GATE_PIN";
/// Set if it is to drop what is undecided when it is gone.
const DROP: &str = "NIGH_TEST_GATE_DROP";
/// Set if it is to attach filters.
const CLSACT: &str = "NIGH_TEST_GATE_CLSACT";

/// A folder of the BPF file system that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(label: &str) -> Self {
        // Below the mount, where gates have folders named by program, part and namespace.
        datapath::gate::mount(None);
        let home = datapath::gate::home().unwrap();
        let mount = home.ancestors().nth(3).unwrap();
        Self(mount.join(format!("nigh-test-{}-{label}/gate", std::process::id())))
    }

    fn settings(&self, kind: HookKind, on_failure: OnFailure) -> Settings {
        let settings = Settings { hook_kind: Some(kind), ..settings() };
        let rules = Rules { on_failure, ..settings.rules };
        Settings { pin: Some(self.0.clone()), rules, ..settings }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for folder in [Some(self.0.as_path()), self.0.parent()].into_iter().flatten() {
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let _ = std::fs::remove_file(entry.path());
            }
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Packets from internal hosts that were passed and dropped because user space was silent, as the pinned ledger
/// has them.
fn failures(folder: &Folder) -> [u64; 2] {
    let map = MapHandle::from_pinned_path(folder.0.join("gate_ledger")).unwrap();
    let copies = map.lookup_percpu(&[0; 4], MapFlags::ANY).unwrap().unwrap();
    let count = |at: usize| -> u64 {
        copies.iter().map(|copy| u64::from_ne_bytes(copy.as_chunks().0[at])).sum()
    };
    [count(7), count(11)]
}

/// What the next test starts and kills: it passes every flow that it sees.
#[test]
#[ignore = "another test starts it"]
fn a_process_that_decides() {
    let pin = std::env::var_os(PIN).unwrap();
    let drop = std::env::var_os(DROP).is_some();
    let on_failure = if drop { OnFailure::Drop } else { OnFailure::Pass };
    // It is removed by who made it.
    let folder = std::mem::ManuallyDrop::new(Folder(pin.into()));
    let clsact = std::env::var_os(CLSACT).is_some();
    let kind = if clsact { HookKind::Clsact } else { HookKind::Tcx };
    let gate = Gate::open(&folder.settings(kind, on_failure)).unwrap();
    let internal = nix::net::if_::if_nametoindex("lan0").unwrap();
    gate.attach(internal).unwrap();
    let (mut reader, table) = (gate.reader().unwrap(), gate.table());
    println!("attached");
    loop {
        gate.heartbeat().unwrap();
        let decide = |record: datapath::gate::Record<'_>| {
            table.decide(&record.key, &FlowVerdict { label: 9, ..FlowVerdict::default() }).unwrap();
            println!("decided {}", record.key);
        };
        reader.poll(Duration::from_millis(100), decide).unwrap();
    }
}

#[test]
fn decided_flows_go_on_when_the_process_is_killed_and_the_next_takes_them_over() {
    let both = |kind| [(kind, OnFailure::Pass), (kind, OnFailure::Drop)];
    for (kind, on_failure) in kinds().flat_map(both) {
        let (site, folder) = (Site::new(), Folder::new("kill"));
        let mut command = testbed::itself(module_path!(), "a_process_that_decides");
        command.env(PIN, &folder.0);
        if on_failure == OnFailure::Drop {
            command.env(DROP, "1");
        }
        if kind == HookKind::Clsact {
            command.env(CLSACT, "1");
        }
        let mut process = site.router.start(command).unwrap();
        let attached = || process.stdout().contains("attached");
        wait_until("the gate to be attached", LIMIT, attached).unwrap();

        let server: IpAddr = SERVER[0].parse().unwrap();
        let listener = site.server.enter(|| TcpListener::bind((server, 0))).unwrap();
        let to = listener.local_addr().unwrap();
        let mut client = site.client.enter(|| TcpStream::connect(to)).unwrap();
        let mut server = listener.accept().unwrap().0;
        for end in [&client, &server] {
            end.set_read_timeout(Some(LIMIT)).unwrap();
        }
        let key = Key::new(Protocol::Tcp, client.local_addr().unwrap(), to);
        client.write_all(b"begin").unwrap();
        server.read_exact(&mut [0; 5]).unwrap();
        let decided = || process.stdout().contains(&format!("decided {key}"));
        wait_until("the flow to be decided", LIMIT, decided).unwrap();

        // In the middle of a transfer.
        let bytes: Vec<u8> = (0..8_000_000_u32).map(|at| (at % 251) as u8).collect();
        let mut back = vec![0; bytes.len()];
        std::thread::scope(|scope| {
            scope.spawn(|| server.write_all(&bytes).unwrap());
            client.read_exact(&mut back[..1_000_000]).unwrap();
            process.signal(Signal::SIGKILL).unwrap();
            wait_until("the process to end", LIMIT, || process.ended().is_some()).unwrap();
            client.read_exact(&mut back[1_000_000..]).unwrap();
        });
        assert!(back == bytes);

        // New flows follow the rule once its silence was long enough.
        let socket = site.client.enter(|| UdpSocket::bind("0.0.0.0:0")).unwrap();
        let silent = || {
            socket.send_to(b"hello", (SERVER[0], 6881)).unwrap();
            failures(&folder)[usize::from(on_failure == OnFailure::Drop)] > 0
        };
        wait_until("the process to be taken for gone", LIMIT, silent).unwrap();
        assert_eq!(failures(&folder)[usize::from(on_failure == OnFailure::Pass)], 0);

        let open = || Gate::open(&folder.settings(kind, on_failure)).unwrap();
        let found = Alive::new(site.router.enter(open));
        assert_eq!((found.found(), found.interfaces()), (Found::TakenOver, vec![site.internal()]));
        assert!(found.is_attached(site.internal()));
        let flow = found.table().get(&key).unwrap().unwrap();
        assert_eq!(flow.verdict.unwrap().label, 9);
        assert!(flow.sent(key.side_of(to).unwrap()).bytes > 8_000_000);
        let ledger = found.ledger().unwrap();
        for counts in [ledger.from_internal, ledger.to_internal] {
            assert_eq!(counts.accounted(), counts.received, "{counts:?}");
            assert_eq!(
                counts.dropped(),
                counts.dropped_failure,
                "no packet of a decided flow is lost: {counts:?}"
            );
        }
        // The old flow goes on through the new programs, and new ones are seen again.
        client.write_all(b"again").unwrap();
        server.read_exact(&mut [0; 5]).unwrap();
        let (from, to) = exchange(&site, 1, 1000);
        let new = found.table().get(&Key::new(Protocol::Tcp, from, to)).unwrap();
        assert_eq!(new.unwrap().verdict, None);
        drop(found);
        site.router.enter(open).close().unwrap();
        assert!(!folder.0.exists());
        site.shows_nothing();
        exchange(&site, 0, 1000);
    }
}

#[test]
fn maps_that_do_not_fit_are_made_anew_and_bypass_outlives_a_process() {
    for kind in kinds() {
        let (site, folder) = (Site::new(), Folder::new("fit"));
        let settings = folder.settings(kind, OnFailure::Pass);
        let open = |settings: &Settings| site.router.enter(|| Gate::open(settings)).unwrap();
        let gate = open(&settings);
        assert_eq!(gate.found(), Found::Nothing);
        site.attach(&gate);
        let (from, to) = exchange(&site, 0, 1000);
        let key = Key::new(Protocol::Tcp, from, to);
        gate.table().decide(&key, &FlowVerdict::default()).unwrap();
        let side = key.side_of(from).unwrap();
        let copy = Manage { copy: true, ..Manage::default() };
        assert!(gate.table().manage(&key, of_side(side, copy)).unwrap());
        gate.bypass(true).unwrap();
        drop(gate);
        let gate = open(&settings);
        assert_eq!((gate.found(), gate.is_bypassed()), (Found::TakenOver, true));
        assert_eq!(gate.table().get(&key).unwrap().unwrap().sent(side).manage, copy);
        gate.bypass(false).unwrap();
        drop(gate);
        let larger = Settings { max_flows: settings.max_flows * 2, ..settings };
        let gate = open(&larger);
        assert_eq!((gate.found(), gate.interfaces()), (Found::Replaced, vec![]));
        assert_eq!(gate.table().get(&key).unwrap(), None);
        site.attach(&gate);
        exchange(&site, 0, 1000);
        gate.detach(site.internal());
        assert!(!gate.is_attached(site.internal()));
        let before = gate.ledger().unwrap();
        exchange(&site, 0, 1000);
        assert_eq!(gate.ledger().unwrap(), before);
        gate.close().unwrap();
        // A folder elsewhere is refused.
        let elsewhere = tempfile::tempdir().unwrap();
        let settings = Settings { pin: Some(elsewhere.path().into()), ..larger };
        let error = Gate::open(&settings).unwrap_err();
        assert!(error.to_string().contains("not a folder of a BPF file system"), "{error}");
    }
}

#[test]
fn a_gate_belongs_to_one_process_and_its_version() {
    testbed::need_root();
    let folder = Folder::new("lock");
    let settings = folder.settings(HookKind::of_kernel(), OnFailure::Pass);
    let gate = Gate::open(&settings).unwrap();
    let key =
        Key::new(Protocol::Udp, "10.0.0.5:1".parse().unwrap(), "192.0.2.7:1".parse().unwrap());
    gate.table().decide(&key, &FlowVerdict::default()).unwrap();
    let second = Gate::open(&settings).unwrap_err();
    assert!(matches!(second, OpenError::Held { .. }), "{second}");
    drop(gate);
    let gate = Gate::open(&settings).unwrap();
    assert_eq!(gate.found(), Found::TakenOver);
    assert!(gate.table().get(&key).unwrap().is_some());
    drop(gate);
    // What another version has left may mean something else: the last word says which it was.
    let control = MapHandle::from_pinned_path(folder.0.join("gate_control")).unwrap();
    let mut value = control.lookup(&[0; 4], MapFlags::ANY).unwrap().unwrap();
    *value.last_mut().unwrap() ^= 1;
    control.update(&[0; 4], &value, MapFlags::ANY).unwrap();
    let gate = Gate::open(&settings).unwrap();
    assert_eq!(gate.found(), Found::Replaced);
    assert_eq!(gate.table().get(&key).unwrap(), None);
    gate.close().unwrap();
}

#[test]
fn each_namespace_has_its_folder_and_what_dead_ones_left_is_removed() {
    for kind in kinds() {
        let (site, other) = (Site::new(), Site::new());
        let plain = Settings { hook_kind: Some(kind), ..settings() };
        let home = |site: &Site| site.router.enter(datapath::gate::home).unwrap();
        let folders = [home(&site), home(&other)];
        assert_ne!(folders[0], folders[1]);
        for (site, folder) in [&site, &other].into_iter().zip(&folders) {
            let settings = Settings { pin: Some(folder.clone()), ..plain.clone() };
            let gate = site.router.enter(|| Gate::open(&settings)).unwrap();
            site.attach(&gate);
        }
        // Its process is gone, its network is not.
        datapath::gate::purge();
        assert!(folders.iter().all(|folder| folder.exists()));
        drop(site);
        let purged = || {
            datapath::gate::purge();
            !folders[0].exists()
        };
        wait_until("the dead gate to be removed", LIMIT, purged).unwrap();
        assert!(folders[1].exists());
        let settings = Settings { pin: Some(folders[1].clone()), ..plain };
        let gate = other.router.enter(|| Gate::open(&settings)).unwrap();
        assert_eq!(gate.found(), Found::TakenOver);
        gate.close().unwrap();
        assert!(!folders[1].exists());
    }
}

#[test]
fn an_interface_that_has_no_ethernet_frames_is_refused() {
    let site = Site::new();
    let gate = Gate::open(&settings()).unwrap();
    site.router.check(&["ip", "tuntap", "add", "tun0", "mode", "tun"]).unwrap();
    let index = site.router.enter(|| nix::net::if_::if_nametoindex("tun0")).unwrap();
    let error = site.router.enter(|| gate.attach(index)).unwrap_err();
    assert!(matches!(error, AttachError::NoEthernet { .. }), "{error}");
    site.attach(&gate);
}
