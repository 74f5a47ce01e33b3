//! Every target on every one of its seeds, as `make fuzz` begins with them.
#![forbid(unsafe_code)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The package's folder.
fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn entries(folder: &str) -> Vec<PathBuf> {
    let path = package().join(folder);
    let entries = fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Runs a target on all files of its folder; which one it was is written before a panic.
fn replay(target: &str, run: fn(&[u8])) {
    let seeds = entries(&format!("seeds/{target}"));
    assert!(!seeds.is_empty(), "seeds/{target} is empty");
    for seed in seeds {
        println!("{}", seed.display());
        run(&fs::read(&seed).unwrap());
    }
}

/// A test for each target, and their names.
macro_rules! targets {
    ($($target:ident),* $(,)?) => {
        const TARGETS: &[&str] = &[$(stringify!($target)),*];
        $(
            #[test]
            fn $target() {
                replay(stringify!($target), nigh_fuzz::$target::run);
            }
        )*
    };
}

targets! {
    alto_digest,
    alto_request,
    alto_stream_input,
    alto_updates,
    bfd_session,
    bgp_input,
    bgp_ls_input,
    bird_reply,
    bmp_input,
    capture_unpack,
    chrony_reply,
    config,
    control,
    gate_bencode,
    gate_capture,
    gate_chat,
    gate_clamd,
    gate_classify,
    gate_dns,
    gate_files,
    gate_p2p,
    gate_parser,
    gate_stream,
    gate_tls,
    http_input,
    lab_control,
    lab_engine,
    lab_file,
    lab_gso,
    lab_import,
    lab_settings,
    mask_check,
    mask_file,
    mask_policy,
    mask_unit,
    ntp_packet,
    probe_dns,
    probe_icmp,
    probe_iperf3_json,
    probe_station_input,
    probe_throughput_control,
    proxidor_reply,
    proxidor_request,
    psock_core,
    psock_frame,
    stamp_packet,
    stamp_reflector,
    topo_mrt,
    topo_oracle_conf,
    topo_toml,
    wire_frame,
}

/// Names without the ending, of files or of folders.
fn names(folder: &str, folders: bool) -> BTreeSet<String> {
    let wanted = entries(folder).into_iter().filter(|path| path.is_dir() == folders);
    wanted.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn each_target_has_seeds_a_test_and_a_program() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|&name| name.to_owned()).collect();
    let mut modules = names("src", false);
    assert!(modules.remove("lib"));
    assert_eq!(targets, modules, "targets of this test, and modules");
    assert_eq!(targets, names("programs", false), "targets, and programs");
    assert_eq!(targets, names("seeds", true), "targets, and folders of seeds");
    let manifest = fs::read_to_string(package().join("Cargo.toml")).unwrap();
    for name in &targets {
        let entry = format!("name = \"{name}\"\npath = \"programs/{name}.rs\"\n");
        assert!(manifest.contains(&entry), "Cargo.toml has no program {name}");
    }
}
