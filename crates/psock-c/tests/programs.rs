//! C programs with the installed library, compiled with what pkg-config says, alone and under valgrind.
#![forbid(unsafe_code)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use tempfile::TempDir;

/// Long enough for valgrind on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(240);

/// It ends with 99 when it has found an error, or memory that nobody can free any more.
const VALGRIND: [&str; 6] = [
    "valgrind",
    "--quiet",
    "--error-exitcode=99",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
];
/// valgrind cannot follow which bytes the assembler of AES-GCM in crate ring has written, and takes
/// ciphertext for memory that nobody set. With encryption it watches everything else: what is read and
/// written out of bounds or after it was freed, and leaks.
const ENCRYPTED: [&str; 7] = {
    let [a, b, c, d, e, f] = VALGRIND;
    [a, b, c, d, e, f, "--undef-value-errors=no"]
};

/// psock below a prefix of its own, and a key.
struct Installed {
    folder: TempDir,
}

impl Installed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let test = std::env::current_exe().unwrap();
        let built = test.parent().unwrap();
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut install = Command::new(top.join("scripts/install-psock"));
        install.arg(folder.path().join("usr")).arg(built).arg("library");
        assert!(install.status().unwrap().success());
        let installed = Self { folder };
        psock::PresharedKey::generate().unwrap().write(&installed.key()).unwrap();
        installed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn key(&self) -> PathBuf {
        self.path("key")
    }

    /// Compiles a program of this crate, with the flags that pkg-config gives for the prefix.
    fn compile(&self, source: &str) -> PathBuf {
        let flags = Command::new("pkg-config")
            .args(["--cflags", "--libs", "psock"])
            .env("PKG_CONFIG_PATH", self.path("usr/lib/pkgconfig"))
            .output()
            .unwrap();
        assert!(flags.status.success(), "{}", String::from_utf8_lossy(&flags.stderr));
        let flags = String::from_utf8(flags.stdout).unwrap();
        let program = self.path(Path::new(source).file_stem().unwrap().to_str().unwrap());
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu99", "-g", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
        compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source));
        compiler.args(flags.split_whitespace());
        assert!(compiler.status().unwrap().success());
        program
    }

    /// A command with the installed library, of which `words` may be the first words.
    fn command(&self, words: &[&str], program: &Path) -> Command {
        let mut command = match words {
            [] => Command::new(program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        command.env("LD_LIBRARY_PATH", self.path("usr/lib"));
        command
    }
}

fn all_calls(under: &[&str], plain: bool) {
    let installed = Installed::new();
    let program = installed.compile("tests/calls.c");
    let mut command = installed.command(under, &program);
    match plain {
        true => command.args(["plain", "yes"]),
        false => command.arg("key").arg(installed.key()),
    };
    let finished = testbed::process::run(command, PATIENCE).unwrap();
    assert!(finished.success(), "{}{}", finished.stdout, finished.stderr);
    assert_eq!(finished.stdout, "all calls did what psock.h says\n", "{}", finished.stderr);
}

#[test]
fn every_call_does_what_the_header_says() {
    all_calls(&[], false);
}

#[test]
fn every_call_is_clean_under_valgrind() {
    all_calls(&VALGRIND, true);
    all_calls(&ENCRYPTED, false);
}
