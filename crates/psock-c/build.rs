//! Gives the shared library the name under which programs look for it. Its number grows when a program that
//! was built before no longer works with it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpsock.so.1");
}
