use super::{super::undisturbed, *};
use libbpf_rs::{
    MapType,
    skel::{OpenSkel as _, SkelBuilder as _},
};
use std::{io, mem::MaybeUninit};

#[allow(missing_docs, unreachable_pub, clippy::all, clippy::undocumented_unsafe_blocks)]
#[allow(clippy::multiple_unsafe_ops_per_block, dead_code)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/refused.skel.rs"));
}
use skeleton::{OpenRefusedSkel, RefusedSkelBuilder};

const OBJECT: Object = Object { name: "test" };

fn told(errno: i32, said: &str, missing: &[Capability]) -> LoadError {
    OBJECT.classify(io::Error::from_raw_os_error(errno).into(), said, missing)
}

fn log(lines: &str) -> String {
    format!(
        "prog 'a': BPF program load failed: -EACCES\nprog 'a': -- BEGIN PROG LOAD LOG --\n{lines}\nprocessed 2 insns (limit 1000000)\n-- END PROG LOAD LOG --\nfailed to load object 'test'\n"
    )
}

#[test]
fn a_missing_right_is_named() {
    use Capability::{CAP_BPF, CAP_PERFMON};
    let error = told(libc::EPERM, "Error in bpf_object__probe_loading(): -EPERM.", &[CAP_BPF]);
    assert!(
        matches!(&error, LoadError::NotPermitted { why: Denied::Missing(these), .. } if *these == [CAP_BPF])
    );
    assert_eq!(
        error.to_string(),
        "this process may not load the test program: it lacks CAP_BPF; run as root or give it these (systemd: AmbientCapabilities=)"
    );
    // What the verifier refuses only because of that.
    let error = told(libc::EACCES, &log("R1 pointer comparison prohibited"), &[CAP_PERFMON]);
    assert!(
        matches!(&error, LoadError::NotPermitted { why: Denied::Missing(these), .. } if *these == [CAP_PERFMON])
    );
    // With all rights and no log something else is in the way.
    for errno in [libc::EPERM, libc::EACCES] {
        let error = told(errno, "", &[]);
        assert!(matches!(&error, LoadError::NotPermitted { why: Denied::Else(_), .. }), "{error}");
    }
}

#[test]
fn what_the_verifier_refuses_is_told_with_the_end_of_its_log() {
    let long =
        format!("{}\nR4 invalid zero-sized read", "r1 = r1\n".repeat(100_000) + &"x".repeat(500));
    for errno in [libc::EACCES, libc::EINVAL, libc::E2BIG, libc::ENOSPC] {
        let error = told(errno, &log(&long), &[]);
        let LoadError::Refused { log, kernel, .. } = &error else { panic!("{error}") };
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines[LINES - 3], format!("  {} ...", "x".repeat(LINE)));
        assert_eq!(lines[LINES - 2], "  R4 invalid zero-sized read");
        assert_eq!(lines[LINES - 1], "  processed 2 insns (limit 1000000)");
        assert!(error.to_string().contains(kernel), "{error}");
        assert!(error.to_string().contains("RUST_LOG=libbpf=debug nigh check --kernel"), "{error}");
    }
}

#[test]
fn what_a_kernel_lacks_is_named() {
    for (errno, said, what) in [
        (libc::EINVAL, log("0: (85) call unknown#211\ninvalid func unknown#211"), "helper function number 211"),
        (libc::EINVAL, log("unknown func bpf_loop#181"), "helper function bpf_loop"),
        (libc::EINVAL, log("program of this type cannot use helper bpf_loop#181"), "helper function bpf_loop"),
        (libc::EINVAL, log("unknown opcode e5"), "code 0xe5"),
        (libc::EINVAL, log("BPF_MOV uses reserved fields"), "BPF_MOV uses reserved fields"),
        (libc::EINVAL, log("kfunc 'bpf_new' is referenced but wasn't resolved"), "kernel function bpf_new"),
        (libc::ESRCH, "extern (func ksym) 'bpf_new': not found in kernel or module BTFs\n".into(), "kernel function bpf_new"),
        (libc::ESRCH, "kernel BTF is missing at '/sys/kernel/btf/vmlinux', was CONFIG_DEBUG_INFO_BTF enabled?\nError loading vmlinux BTF: -ESRCH\n".into(), "CONFIG_DEBUG_INFO_BTF"),
        (libc::EINVAL, "map 'rows': failed to create: -EINVAL\n".into(), "type of the map rows"),
        (libc::EINVAL, "prog 'main': BPF program load failed: -EINVAL\n".into(), "type of main"),
        (524, "prog 'main': BPF program load failed: -ENOTSUPP\n".into(), "CONFIG_BPF_JIT"),
        (libc::ENOSYS, String::new(), "CONFIG_BPF_SYSCALL"),
    ] {
        let error = told(errno, &said, &[]);
        let LoadError::Lacks { lacks, kernel, .. } = &error else { panic!("{said}: {error}") };
        assert!(lacks.contains(what), "{lacks}");
        assert_eq!(*kernel, version());
    }
}

#[test]
fn a_limit_of_memory_is_told_with_who_sets_it() {
    let error = told(libc::ENOMEM, "map 'flows': failed to create: -ENOMEM\n", &[]);
    assert!(
        matches!(&error, LoadError::Memory { what, .. } if what == "the test program, its map flows"),
        "{error}"
    );

    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("a.slice/b.service")).unwrap();
    let limit = || memory_limit(root.path(), "1:memory:/x\n0::/a.slice/b.service\n");
    assert!(limit().contains("kB available"), "{}", limit());
    for (group, most) in [("a.slice/b.service", "max"), ("a.slice", "16777216"), ("", "33554432")] {
        std::fs::write(root.path().join(group).join("memory.max"), format!("{most}\n")).unwrap();
    }
    assert!(limit().contains("a.slice may have 16384 KB"), "{}", limit());
}

#[test]
fn anything_else_is_told_as_it_is() {
    let error = told(libc::EMFILE, "map 'flows': failed to create: -EMFILE\n", &[]);
    assert!(matches!(&error, LoadError::Other { .. }), "{error}");
    assert!(error.to_string().ends_with("; map 'flows': failed to create: -EMFILE"), "{error}");
}

mod root {
    use super::*;
    use caps::CapSet;
    use std::cell::RefCell;
    use tracing::{
        Event, Id, Level, Metadata, Subscriber,
        field::Field,
        span::{Attributes, Record},
    };

    /// Tries to load one of the programs of `bpf/refused.bpf.c`.
    fn load(change: impl FnOnce(&mut OpenRefusedSkel<'_>)) -> LoadError {
        testbed::need_root();
        let mut storage = MaybeUninit::uninit();
        let mut open = RefusedSkelBuilder::default().open(&mut storage).unwrap();
        let programs = &mut open.progs;
        for program in [
            &mut programs.refused_packet,
            &mut programs.refused_function,
            &mut programs.refused_helper,
            &mut programs.refused_lookup,
        ] {
            program.set_autoload(false);
        }
        change(&mut open);
        let loaded = undisturbed(|| open.load());
        OBJECT.error(loaded.err().expect("no kernel loads it"))
    }

    /// Chooses the program that the verifier refuses after so many rounds.
    fn rounds(open: &mut OpenRefusedSkel<'_>, rounds: u32) {
        open.progs.refused_packet.set_autoload(true);
        open.maps.rodata_data.as_deref_mut().unwrap().refused_rounds = rounds;
    }

    #[test]
    fn the_verifier_is_quoted() {
        let error = load(|open| rounds(open, 0));
        let LoadError::Refused { log, .. } = &error else { panic!("{error}") };
        assert!(log.contains("invalid access to packet"), "{log}");
        assert!(log.lines().last().unwrap().starts_with("  processed "), "{log}");
        assert!(log.lines().count() <= LINES, "{log}");
    }

    /// Takes the verifier seconds, as it is asked several times with more and more room for its log.
    #[test]
    fn soak_a_program_that_is_too_long_is_one_that_the_verifier_refuses() {
        let error = load(|open| rounds(open, 1_000_000));
        let LoadError::Refused { log, .. } = &error else { panic!("{error}") };
        assert!(log.contains("BPF program is too large"), "{log}");
    }

    #[test]
    fn what_this_kernel_lacks_is_named() {
        let error = load(|open| open.progs.refused_function.set_autoload(true));
        assert!(error.to_string().contains("no kernel function nigh_no_such_function"), "{error}");
        let error = load(|open| open.progs.refused_helper.set_autoload(true));
        assert!(error.to_string().contains("no helper function number 100000"), "{error}");
        let error = load(|open| {
            open.progs.refused_lookup.set_autoload(true);
            open.maps.refused_map.set_type(MapType::Unknown).unwrap();
        });
        assert!(error.to_string().contains("type of the map refused_map"), "{error}");
    }

    #[test]
    fn memory_that_there_is_not_is_told() {
        let error = load(|open| {
            open.progs.refused_lookup.set_autoload(true);
            // Four terabytes.
            open.maps.refused_map.set_max_entries(1 << 30).unwrap();
        });
        let expected = "not enough memory to load the test program, its map refused_map: ";
        assert!(error.to_string().starts_with(expected), "{error}");
    }

    #[test]
    fn exactly_the_missing_capabilities_are_named() {
        use Capability::{CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_ADMIN};
        for without in
            [&[CAP_PERFMON][..], &[CAP_NET_ADMIN], &[CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN]]
        {
            // Capabilities are those of a thread.
            let error = std::thread::scope(|scope| {
                let load = || {
                    for capability in without.iter().chain(&[CAP_SYS_ADMIN]) {
                        caps::drop(None, CapSet::Effective, *capability).unwrap();
                    }
                    load(|open| rounds(open, 0))
                };
                scope.spawn(load).join().unwrap()
            });
            let LoadError::NotPermitted { why: Denied::Missing(missing), .. } = &error else {
                panic!("{error}")
            };
            assert_eq!(missing, without, "{error}");
        }
    }

    thread_local! {
        /// Levels and lengths of this thread's events.
        static EVENTS: RefCell<Vec<(Level, usize)>> = const { RefCell::new(Vec::new()) };
    }

    struct Lengths;

    impl Subscriber for Lengths {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            let level = *event.metadata().level();
            event.record(&mut |_: &Field, value: &dyn std::fmt::Debug| {
                EVENTS.with_borrow_mut(|events| events.push((level, format!("{value:?}").len())));
            });
        }
    }

    #[test]
    fn the_whole_log_is_at_level_debug_and_nothing_of_it_above() {
        tracing::subscriber::set_global_default(Lengths).unwrap();
        let error = load(|open| rounds(open, 20_000));
        assert!(matches!(&error, LoadError::Refused { .. }), "{error}");
        assert!(error.to_string().len() < 2_000, "{error}");
        let events = EVENTS.take();
        assert!(events.iter().all(|(level, _)| *level >= Level::DEBUG), "{events:?}");
        assert!(events.iter().any(|(_, length)| *length > 1_000_000), "{events:?}");
    }
}
