//! Finds Debian's libndpi and compiles the shim in front of it.

fn main() {
    println!("cargo:rerun-if-changed=c/shim.c");
    println!("cargo:rerun-if-changed=c/shim.h");
    // The structs of another version look otherwise: the shim is compiled against what is found here,
    // and refuses at run time a library that does not fit (docs/decisions/175-ndpi.md).
    let library = match pkg_config::Config::new().range_version("4.2".."4.3").probe("libndpi") {
        Ok(library) => library,
        Err(error) => {
            eprintln!("nDPI 4.2 is needed (Debian 12: apt-get install libndpi-dev): {error}");
            std::process::exit(1);
        }
    };
    cc::Build::new()
        .file("c/shim.c")
        .includes(&library.include_paths)
        .flag("-std=gnu11")
        .warnings(true)
        .warnings_into_errors(false)
        .compile("nigh_ndpi");
}
