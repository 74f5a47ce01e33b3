use super::*;
use crate::AttachMode;
use libbpf_rs::btf::{Btf, types::Enum};

/// Whether the kernel's own description of its types has a value.
fn described(kind: &str, value: &str) -> bool {
    let btf = Btf::from_vmlinux().expect("the kernel has BTF");
    let kind: Enum<'_> = btf.type_by_name(kind).expect("the type is known");
    kind.iter().any(|it| it.name.is_some_and(|name| name == value))
}

#[test]
fn keys_are_different_words() {
    let mut keys: Vec<_> = FEATURES.iter().map(|it| it.key).collect();
    assert!(keys.iter().all(|key| key.chars().all(|it| it.is_ascii_lowercase() || it == '_')));
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), FEATURES.len());
}

mod root {
    use super::*;
    use caps::CapSet;

    #[test]
    fn probes_agree_with_the_kernels_description_of_itself() {
        testbed::need_root();
        for (found, kind, value) in [
            (tcx(), "bpf_attach_type", "BPF_TCX_INGRESS"),
            (arena(), "bpf_map_type", "BPF_MAP_TYPE_ARENA"),
            (ring_buffer(), "bpf_map_type", "BPF_MAP_TYPE_RINGBUF"),
            (bpf_loop(), "bpf_func_id", "BPF_FUNC_loop"),
            // Both came with the same version.
            (may_goto(), "bpf_map_type", "BPF_MAP_TYPE_ARENA"),
        ] {
            assert_eq!(found, described(kind, value), "{value}");
        }
        assert!(btf());
    }

    #[test]
    fn probes_leave_nothing_behind() {
        let namespace = testbed::Namespace::new("probes").unwrap();
        let state = || {
            let links = namespace.check(&["ip", "link"]).unwrap();
            links + &namespace.check(&["tc", "qdisc"]).unwrap()
        };
        let before = state();
        let found = namespace.enter(|| FEATURES.map(|feature| feature.probe()));
        assert!(found.iter().all(Result::is_ok), "{found:?}");
        assert_eq!(state(), before);
    }

    #[test]
    fn what_a_process_may_not_find_out_is_said_with_the_capabilities() {
        testbed::need_root();
        std::thread::scope(|scope| {
            let probe = || {
                caps::clear(None, CapSet::Effective).unwrap();
                for feature in FEATURES {
                    match feature.probe() {
                        Ok(_) => assert!(feature.needs.is_empty(), "{}", feature.key),
                        Err(missing) => assert_eq!(missing, feature.needs, "{}", feature.key),
                    }
                }
            };
            scope.spawn(probe).join().unwrap();
        });
    }

    #[test]
    fn interfaces_say_what_they_can() {
        let namespace = testbed::Namespace::new("interfaces").unwrap();
        let peer = testbed::Namespace::new("peer").unwrap();
        testbed::link(testbed::End::new(&namespace, "eth0"), testbed::End::new(&peer, "eth0"))
            .unwrap();
        namespace.check(&["ip", "link", "add", "br0", "type", "bridge"]).unwrap();
        let all = namespace.enter(Interface::all);
        assert_eq!(all.len(), 2, "{all:?}");
        let of = |name: &str| namespace.enter(|| Interface::of(name));
        let veth = of("eth0");
        assert_eq!((veth.exists, veth.driver.as_deref()), (true, Some("veth")));
        // Drivers say it if the kernel has enum netdev_xdp_act.
        let btf = Btf::from_vmlinux().unwrap();
        let says = btf.type_by_name::<Enum<'_>>("netdev_xdp_act").is_some();
        let expected = says.then_some(AttachMode::Native);
        assert_eq!((veth.xdp, veth.zero_copy), (expected, says.then_some(false)));
        let software = Timestamps { hardware: false, software: true };
        assert_eq!(veth.send_timestamps, Some(software));
        assert_eq!(veth.receive_timestamps, Some(software));
        let bridge = of("br0");
        assert_eq!(bridge.xdp, says.then_some(AttachMode::Generic));
        assert_eq!(bridge.xdp_program, None);

        let program = crate::stamp::StampProgram::load(0).unwrap();
        let attach = || {
            let index = nix::net::if_::if_nametoindex("br0").unwrap();
            program.attach(index, AttachMode::Generic).unwrap()
        };
        let _attached = namespace.enter(attach);
        assert!(of("br0").xdp_program.is_some());
        assert!(!of("eth9").exists);
    }
}
