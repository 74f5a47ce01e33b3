//! Builds every program of `bpf/` with clang, or with what the variable `CLANG` names, and generates its
//! skeleton into `OUT_DIR`.

use std::{env, ffi::OsStr, fs, path::PathBuf};

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let bpf = here.join("../../bpf");
    println!("cargo::rerun-if-changed={}", bpf.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    // Where Debian keeps <asm/types.h>, of the machine that builds: the programs are the same for all.
    let host = env::var("HOST").expect("cargo sets it");
    let machine = host.split('-').next().unwrap_or_default();
    let system = format!("/usr/include/{machine}-linux-gnu");
    for entry in fs::read_dir(&bpf).expect("the folder bpf is in the repository") {
        let source = entry.expect("the folder bpf can be read").path();
        let name = source.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let Some(name) = name.strip_suffix(".bpf.c") else { continue };
        let arguments = [
            OsStr::new("-I"),
            bpf.as_os_str(),
            OsStr::new("-I"),
            OsStr::new(&system),
            OsStr::new("-mcpu=v3"),
            OsStr::new("-Wall"),
            OsStr::new("-Werror"),
        ];
        SkeletonBuilder::new()
            .source(&source)
            .clang(&clang)
            .clang_args(arguments)
            .build_and_generate(out.join(format!("{name}.skel.rs")))
            .unwrap_or_else(|error| panic!("{}: {error:#}", source.display()));
    }
}
