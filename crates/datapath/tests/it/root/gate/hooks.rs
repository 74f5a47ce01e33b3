//! Filters of clsact, for kernels without TCX: nobody else's are touched, and none of ours stays.

use super::site::{Alive, Site, settings};
use super::through::exchange;
use datapath::gate::{Gate, HookKind, Settings};
use nix::sys::signal::Signal;
use testbed::{LIMIT, wait_until};

fn filtering() -> Settings {
    Settings { hook_kind: Some(HookKind::Clsact), ..settings() }
}

impl Site {
    fn tc(&self, arguments: &str) -> String {
        let words: Vec<&str> = ["tc"].into_iter().chain(arguments.split(' ')).collect();
        self.router.check(&words).unwrap()
    }
}

#[test]
fn filters_of_others_stay_as_they_are_and_come_first() {
    let site = Site::new();
    // All packets of IPv4 from internal hosts; none.
    let others = [
        "ingress prio 7 protocol ip u32 match u32 0 0 flowid 1:1",
        "ingress prio 65000 u32 match u32 0 0 flowid 1:1",
        "egress protocol all u32 match u32 1 0xffffffff flowid 1:1",
    ];
    site.tc("qdisc add dev lan0 clsact");
    for other in others {
        site.tc(&format!("filter add dev lan0 {other}"));
    }
    let show =
        || ["ingress", "egress"].map(|hook| site.tc(&format!("filter show dev lan0 {hook}")));
    let before = show();
    let gate = Alive::new(Gate::open(&filtering()).unwrap());
    site.attach(&gate);
    let [ingress, egress] = show();
    let preference = |text: &str| -> u32 {
        let ours = text.lines().find(|line| line.contains("nigh-gate")).unwrap();
        ours.split(' ').skip_while(|word| *word != "pref").nth(1).unwrap().parse().unwrap()
    };
    assert_eq!([preference(&ingress), preference(&egress)], [65001, 49153]);
    // What matches theirs does not come to ours.
    exchange(&site, 0, 1000);
    let ledger = gate.ledger().unwrap();
    assert!(ledger.from_internal.received < 4 && ledger.to_internal.received > 4, "{ledger:?}");
    drop(gate);
    assert_eq!(show(), before);
}

#[test]
fn a_filter_that_was_removed_by_hand_is_missed_and_made_anew() {
    let site = Site::new();
    let gate = Alive::new(Gate::open(&filtering()).unwrap());
    site.attach(&gate);
    let internal = site.internal();
    assert!(gate.is_attached(internal));
    site.tc("filter del dev lan0 egress");
    assert!(!gate.is_attached(internal));
    gate.detach(internal);
    site.shows_nothing();
    site.attach(&gate);
    assert!(gate.is_attached(internal));
    exchange(&site, 0, 1000);
    let ledger = gate.ledger().unwrap();
    assert!(ledger.from_internal.received > 4 && ledger.to_internal.received > 4, "{ledger:?}");
    // Nor is it on an interface that has gone.
    site.router.check(&["ip", "link", "del", "lan0"]).unwrap();
    assert!(!gate.is_attached(internal));
    gate.detach(internal);
}

#[test]
fn a_qdisc_of_kind_ingress_is_left_alone() {
    let site = Site::new();
    site.tc("qdisc add dev lan0 ingress");
    let gate = Gate::open(&filtering()).unwrap();
    let internal = site.internal();
    let error = site.router.enter(|| gate.attach(internal)).unwrap_err();
    assert!(error.to_string().contains("kind ingress"), "{error}");
    assert!(site.tc("qdisc show dev lan0").contains("qdisc ingress"));
}

/// What the next test starts and kills.
#[test]
#[ignore = "another test starts it"]
fn a_process_that_pins_nothing() {
    let gate = Gate::open(&filtering()).unwrap();
    gate.attach(nix::net::if_::if_nametoindex("lan0").unwrap()).unwrap();
    println!("attached");
    loop {
        std::thread::park();
    }
}

#[test]
fn what_was_to_go_with_a_process_that_is_killed_goes_when_the_next_attaches() {
    let site = Site::new();
    let command = testbed::itself(module_path!(), "a_process_that_pins_nothing");
    let mut process = site.router.start(command).unwrap();
    let attached = || process.stdout().contains("attached");
    wait_until("the gate to be attached", LIMIT, attached).unwrap();
    // Another process is none of its business while it lives.
    let filters = || site.tc("filter show dev lan0 ingress").matches("nigh-gate-").count();
    let gate = Gate::open(&filtering()).unwrap();
    site.attach(&gate);
    assert_eq!(filters(), 2);
    drop(gate);
    assert_eq!(filters(), 1);
    process.signal(Signal::SIGKILL).unwrap();
    wait_until("the process to end", LIMIT, || process.ended().is_some()).unwrap();
    // What it has left is the last filter, with which the qdisc goes.
    site.tc("filter del dev lan0 egress");
    let gate = Gate::open(&filtering()).unwrap();
    site.attach(&gate);
    assert_eq!(filters(), 1);
    drop(gate);
    site.shows_nothing();
}
