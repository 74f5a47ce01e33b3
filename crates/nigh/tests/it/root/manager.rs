//! What the service manager (systemd) hears of the daemon.

use nix::{
    sys::{
        ptrace,
        signal::Signal,
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};
use std::{
    fs,
    io::ErrorKind,
    os::unix::net::UnixDatagram,
    process::{Command, Stdio},
};
use tempfile::TempDir;
use testbed::{End, LIMIT, Namespace, Process, link};

const BINARY: &str = env!("CARGO_BIN_EXE_nigh");
const ALIVE: &str = "WATCHDOG=1";

/// A daemon, and its service manager's end.
struct Managed {
    _node: [Namespace; 2],
    _folder: TempDir,
    socket: UnixDatagram,
    daemon: Process,
}

impl Managed {
    fn start(sections: &str) -> Self {
        let node = [Namespace::new("node").unwrap(), Namespace::new("peer").unwrap()];
        let address = |of, address| End::new(of, "eth0").address(address);
        link(address(&node[0], "192.0.2.1/30"), address(&node[1], "192.0.2.2/30")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display();
        let notify = folder.path().join("notify");
        let socket = UnixDatagram::bind(&notify).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let file = folder.path().join("nigh.toml");
        let text = format!("[node]\ncontrol = \"{here}/c\"\nstate = \"{here}/state\"\n{sections}");
        fs::write(&file, text).unwrap();
        let mut command = Command::new(BINARY);
        command
            .args(["run", "--user", "root", "-c"])
            .arg(&file)
            .env("NOTIFY_SOCKET", &notify)
            .stdin(Stdio::null());
        let daemon = node[0].start(command).unwrap();
        Self { _node: node, _folder: folder, socket, daemon }
    }

    fn next(&self) -> String {
        let mut buffer = [0; 512];
        loop {
            match self.socket.recv(&mut buffer) {
                // A signal ends a wait that has a timeout (signal(7)).
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => {
                    let length = received.unwrap();
                    return String::from_utf8(buffer[..length].to_vec()).unwrap();
                }
            }
        }
    }

    /// All messages until one begins so, with that one.
    fn until(&self, begins: &str) -> Vec<String> {
        let mut messages = vec![self.next()];
        while !messages.last().is_some_and(|last| last.starts_with(begins)) {
            messages.push(self.next());
        }
        messages
    }

    /// What has come and was not read.
    fn forget(&self) {
        self.socket.set_nonblocking(true).unwrap();
        while self.socket.recv(&mut [0; 512]).is_ok() {}
        self.socket.set_nonblocking(false).unwrap();
    }

    /// The daemon's thread of this name.
    fn thread(&self, name: &str) -> Pid {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.daemon.pid())).unwrap();
        let mut tasks = tasks.map(|task| task.unwrap());
        let is_it = |comm: String| comm.trim_end() == name;
        let task = tasks.find(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(is_it));
        Pid::from_raw(task.unwrap().file_name().to_str().unwrap().parse().unwrap())
    }
}

#[test]
fn it_hears_of_start_reload_health_and_stop() {
    let echo = "[echo]\ninterfaces = [\"eth0\"]\naddresses = [\"198.51.100.1\"]\n";
    let managed = Managed::start(echo);
    assert_eq!(managed.next(), "READY=1");
    managed.until("STATUS=echo is healthy");
    managed.until(ALIVE);
    managed.daemon.signal(Signal::SIGHUP).unwrap();
    managed.until("RELOADING=1\nMONOTONIC_USEC=");
    managed.until("READY=1");
    managed._node[0].check(&["ip", "link", "set", "eth0", "down"]).unwrap();
    let status = managed.until("STATUS=echo: ").pop().unwrap();
    assert!(status.contains("eth0 is down"), "{status}");
    managed.daemon.signal(Signal::SIGTERM).unwrap();
    managed.until("STOPPING=1");
    assert!(managed.daemon.finish(LIMIT).unwrap().success());
}

/// A debugger that stops one thread is a hang without a hook for it in the program.
#[test]
fn a_thread_that_hangs_stops_the_watchdog_from_being_fed() {
    let managed = Managed::start("[gate]\ninternal = [\"eth0\"]\n");
    managed.until(ALIVE);
    let thread = managed.thread("gate");
    ptrace::seize(thread, ptrace::Options::empty()).unwrap();
    let stop = || {
        ptrace::interrupt(thread).unwrap();
        waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
    };
    stop();
    managed.forget();
    let messages = managed.until("STATUS=no answer from gate (worker)");
    let fed = messages.iter().filter(|message| *message == ALIVE).count();
    assert!(fed <= 1, "it had beaten once since the watchdog was fed: {messages:?}");
    ptrace::cont(thread, None).unwrap();
    managed.until(ALIVE);
    managed.until("STATUS=gate is healthy");
    // One that makes a step in each turn of the watchdog is busy.
    for _ in 0..3 {
        stop();
        ptrace::cont(thread, None).unwrap();
        managed.until(ALIVE);
    }
    stop();
    ptrace::detach(thread, None).unwrap();
    managed.daemon.signal(Signal::SIGTERM).unwrap();
    assert!(managed.daemon.finish(LIMIT).unwrap().success());
}
