//! C programs with the installed library, compiled with what pkg-config says, alone and under valgrind.

use std::{
    fs::File,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use testbed::{Process, wait_until};

/// Long enough for valgrind on a machine that does other things as well.
const TIMEOUT: Duration = Duration::from_secs(240);

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

/// A port that is free on two addresses, and that the system gives to nobody else in the meantime: below the
/// ephemeral ones, and other processes begin elsewhere. `calls.c` begins at 10,000.
fn port() -> u16 {
    let begin = 20_000 + (std::process::id() % 1000) as u16 * 10;
    let free = |port: &u16| {
        ["127.0.0.1", "127.0.0.2"].iter().all(|at| TcpListener::bind((*at, *port)).is_ok())
    };
    (begin..30_010).find(free).unwrap()
}

fn all_calls(under: &[&str], plain: bool) {
    let installed = Installed::new();
    let program = installed.compile("tests/it/calls.c");
    let mut command = installed.command(under, &program);
    match plain {
        true => command.args(["plain", "yes"]),
        false => command.arg("key").arg(installed.key()),
    };
    let finished = testbed::process::run(command, TIMEOUT).unwrap();
    assert!(finished.success(), "{}{}", finished.stdout, finished.stderr);
    assert_eq!(finished.stdout, "all calls did what psock.h says\n", "{}", finished.stderr);
}

/// The example sends so many bytes over two paths to itself.
fn a_file(bytes: usize) {
    let installed = Installed::new();
    let program = installed.compile("examples/file.c");
    let (original, copy) = (installed.path("original"), installed.path("copy"));
    let content = (0..bytes).map(|n| (n * n % 251) as u8).collect::<Vec<_>>();
    std::fs::write(&original, &content).unwrap();
    let port = port().to_string();
    let mut receive = installed.command(&[], Path::new("sh"));
    // The testbed reads what a program writes, so the shell sends it elsewhere.
    let script = format!(
        "exec {} receive {} 127.0.0.1 127.0.0.2 {port} > {}",
        program.display(),
        installed.key().display(),
        copy.display()
    );
    receive.args(["-c", &script]);
    let receiver = Process::start(receive).unwrap();
    wait_until("the receiver", TIMEOUT, || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let wanted = format!("0200007F:{:04X} 00000000:0000 0A", port.parse::<u16>().unwrap());
        table.contains(&wanted)
    })
    .unwrap();
    let mut send = installed.command(&[], &program);
    send.arg("send").arg(installed.key());
    send.args([format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}")]);
    let send = send.stdin(File::open(&original).unwrap()).stderr(Stdio::piped()).output().unwrap();
    assert!(send.status.success(), "{}", String::from_utf8_lossy(&send.stderr));
    let received = receiver.finish(TIMEOUT).unwrap();
    assert!(received.success(), "{}", received.stderr);
    assert!(received.stderr.contains("a session from 127.0.0.1"), "{}", received.stderr);
    assert!(std::fs::read(&copy).unwrap() == content, "not the same bytes");
}

#[test]
fn every_call_does_what_the_header_says() {
    all_calls(&[], false);
}

#[test]
fn every_call_is_clean_under_valgrind() {
    all_calls(&VALGRIND, true);
}

/// Encryption takes minutes there.
#[test]
fn soak_every_call_is_clean_under_valgrind_with_encryption() {
    all_calls(&ENCRYPTED, false);
}

#[test]
fn the_example_carries_a_file_over_two_paths() {
    a_file(40_000_000);
}
