//! The program on interfaces of network namespaces: real pings, both modes, and what is left behind.

use super::{SERVICE4, SERVICE6};
use datapath::echo::{AttachError, AttachMode, Attachment, EchoProgram};
use std::io::Read as _;
use std::process::Stdio;
use testbed::{End, Namespace, link};

/// Two namespaces; the far one has the service addresses behind it and no address of its own for them.
fn pair() -> (Namespace, Namespace) {
    let near = Namespace::new("near").unwrap();
    let far = Namespace::new("far").unwrap();
    link(
        End::new(&near, "eth0").address("172.16.0.30/30").address("2001:db8:ff00::30/64"),
        End::new(&far, "eth0").address("172.16.0.29/30").address("2001:db8:ff00::29/64"),
    )
    .unwrap();
    near.check(&["ip", "route", "add", "50.0.0.0/8", "via", "172.16.0.29"]).unwrap();
    near.check(&["ip", "route", "add", "2001:db8:50::/48", "via", "2001:db8:ff00::29"]).unwrap();
    (near, far)
}

pub(crate) fn index(namespace: &Namespace, interface: &str) -> u32 {
    namespace.enter(|| nix::net::if_::if_nametoindex(interface)).unwrap()
}

fn attach(
    program: &EchoProgram,
    namespace: &Namespace,
    mode: AttachMode,
) -> Result<Attachment, AttachError> {
    let ifindex = index(namespace, "eth0");
    namespace.enter(|| program.attach(ifindex, mode))
}

fn shows_program(namespace: &Namespace) -> bool {
    namespace.check(&["ip", "-d", "link", "show", "eth0"]).unwrap().contains("prog/xdp")
}

#[test]
fn real_pings_are_answered_in_both_modes() {
    let (near, far) = pair();
    // A veth gives frames that a program sent back only to a peer that has a program too.
    let peer = EchoProgram::load().unwrap();
    let _peer = attach(&peer, &near, AttachMode::Native).unwrap();
    for mode in [AttachMode::Native, AttachMode::Generic] {
        let program = super::program(&super::settings());
        let attachment = attach(&program, &far, mode).unwrap();
        assert_eq!(attachment.mode(), mode);
        assert!(attachment.is_attached());
        for (target, size) in
            [("50.50.50.50", "56"), ("50.50.50.50", "1472"), ("2001:db8:50::50", "1400")]
        {
            let out = near
                .check(&["ping", "-c", "3", "-i", "0.05", "-W", "2", "-s", size, target])
                .unwrap();
            assert!(out.contains("3 received") && out.contains("ttl=64"), "{mode} {out}");
        }
        let ledger = program.ledger().unwrap();
        let answered = |address: std::net::IpAddr| {
            ledger.rows.iter().find(|row| row.address == address).unwrap().counters.answered
        };
        assert_eq!((answered(SERVICE4.into()), answered(SERVICE6.into())), (6, 3), "{mode}");

        attachment.detach();
        assert!(!shows_program(&far));
        let lost = near.check(&["ping", "-c", "1", "-W", "0.2", "50.50.50.50"]);
        assert!(lost.is_err(), "nobody answers after detaching");
    }
}

#[test]
fn refusals_say_what_is_the_matter() {
    let (_near, far) = pair();
    let program = EchoProgram::load().unwrap();
    let other = EchoProgram::load().unwrap();
    let attachment = attach(&program, &far, AttachMode::Native).unwrap();
    let busy = attach(&other, &far, AttachMode::Native).unwrap_err();
    assert!(matches!(busy, AttachError::Busy { .. }), "{busy:?}");
    let busy = attach(&other, &far, AttachMode::Generic).unwrap_err();
    assert!(matches!(busy, AttachError::Busy { .. }), "{busy:?}");
    let none = far.enter(|| program.attach(9_999_999, AttachMode::Generic)).unwrap_err();
    assert!(matches!(none, AttachError::NoInterface { .. }), "{none:?}");
    let loopback = index(&far, "lo");
    let cannot = far.enter(|| program.attach(loopback, AttachMode::Native)).unwrap_err();
    assert!(matches!(cannot, AttachError::Unsupported { .. }), "{cannot:?}");

    assert!(attachment.is_attached());
    far.check(&["ip", "link", "delete", "eth0"]).unwrap();
    assert!(!attachment.is_attached(), "the interface is gone");
}

/// What the test below starts and kills: it attaches in the namespace it runs in.
#[test]
#[ignore = "another test starts it"]
fn a_process_that_attaches() {
    let ifindex = std::env::var("NIGH_ATTACH").unwrap();
    let program = EchoProgram::load().unwrap();
    let _attachment = program.attach(ifindex.parse().unwrap(), AttachMode::Native).unwrap();
    println!("attached");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_process_leaves_nothing_attached() {
    let (_near, far) = pair();
    let ifindex = index(&far, "eth0").to_string();
    let mut child = far.enter(|| {
        testbed::itself(module_path!(), "a_process_that_attaches")
            .env("NIGH_ATTACH", &ifindex)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    });
    let mut printed = String::new();
    let mut out = child.stdout.take().unwrap();
    while !printed.contains("attached") {
        let mut bytes = [0; 64];
        let length = out.read(&mut bytes).unwrap();
        assert_ne!(length, 0, "the child ended: {printed}");
        printed.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    assert!(shows_program(&far));
    child.kill().unwrap();
    child.wait().unwrap();
    let limit = std::time::Duration::from_secs(5);
    testbed::wait_until("the killed process's program to go", limit, || !shows_program(&far))
        .unwrap();
}
