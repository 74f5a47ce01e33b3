//! A parser's process as the system shows it; only root may look into one that cannot be traced.

use crate::parsers::open;
use classify::Settings;
use gate::parser::{Parser, link::Link, names::Names};
use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    process::Command,
};

fn proc_file<P: Parser>(link: &Link<P>, name: &str) -> String {
    fs::read_to_string(format!("/proc/{}/{name}", link.pid().unwrap())).unwrap()
}

#[test]
fn a_parser_has_no_rights_and_no_descriptor_but_its_socket() {
    // Something that a library forgot to close.
    let file = fs::File::open("/dev/null").unwrap();
    nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty())).unwrap();
    let link = open::<Names>(Settings::default());
    let status = proc_file(&link, "status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!((field("NoNewPrivs:").as_str(), field("Seccomp:").as_str()), ("1", "2"));
    assert_eq!(field("Threads:"), "1");
    let open = fs::read_dir(format!("/proc/{}/fd", link.pid().unwrap())).unwrap().count();
    assert_eq!(open, 1);
    let limits = proc_file(&link, "limits");
    for name in ["Max open files", "Max core file size", "Max file size"] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let values: Vec<_> = line[name.len()..].split_whitespace().take(2).collect();
        assert_eq!(values, ["0", "0"], "{name}");
    }
    assert!(proc_file(&link, "environ").is_empty());
}

/// The daemon may have given up all rights, and be one that nobody may look into, when a parser dies.
#[test]
fn a_daemon_without_rights_starts_a_parser_again() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("gate-parser");
    fs::copy(env!("CARGO_BIN_EXE_gate-parser"), &program).unwrap();
    let mut daemon = Command::new(program);
    let output = daemon.uid(65534).gid(65534).current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.starts_with("1 died"), "{output:?}");
}
