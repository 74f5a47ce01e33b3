//! A lab under test: simulated networks as a test network.

use crate::{
    Error, Finished, LIMIT, Namespace, Process, folder,
    namespace::{self, FOLDER},
    process::run,
    programs, wait_until,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use std::{
    fmt::Display,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;

/// The processes of the labs that run.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A running `nigh lab run`; its namespaces go with it when it is dropped.
///
/// ```no_run
/// use testbed::{Lab, lab};
///
/// let scene = lab::row(["", ""], ["delay = \"10ms\""], lab::HOSTS);
/// let lab = Lab::start(&lab::binary().unwrap(), &scene).unwrap();
/// lab.check("pc", &["ping", "-c", "1", "server"]).unwrap();
/// ```
#[derive(Debug)]
pub struct Lab {
    process: Process,
    binary: PathBuf,
    prefix: String,
    folder: TempDir,
}

impl Lab {
    /// Runs a scene and waits until packets are carried.
    ///
    /// `binary` is the program: `env!("CARGO_BIN_EXE_nigh")` in tests of crate `nigh`, [`binary`]
    /// elsewhere. The scene's files are looked for beside a file of its own in a new folder.
    ///
    /// # Errors
    ///
    /// When it ends or is not ready in time; the error carries what it wrote.
    ///
    /// # Panics
    ///
    /// See [`need_root`](crate::need_root).
    pub fn start(binary: &Path, scene: &str) -> Result<Self, Error> {
        Self::start_with(binary, scene, &[])
    }

    /// As [`Lab::start`], with more words for `nigh lab run`.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn start_with(binary: &Path, scene: &str, words: &[&str]) -> Result<Self, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        crate::need_root();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // As the testbed's own namespaces, so that it can be seen whose they are.
        let prefix = format!("nigh.{}.{number}.lab-", std::process::id());
        let folder = folder::new()?;
        let path = folder.path().join("scene.toml");
        std::fs::write(&path, scene)
            .map_err(|error| Error::new(format!("writing {}", path.display()), error))?;
        let mut command = Command::new(binary);
        command.args(["lab", "run", "--json", "--prefix", &prefix]).args(words).arg(&path);
        let process = Process::start(command)?;
        running(|all| all.push(process.pid()));
        let mut lab = Self { process, binary: binary.to_owned(), prefix, folder };
        let mut ended = false;
        let up = wait_until("the lab", LIMIT, || {
            ended = lab.process.ended().is_some();
            ended || lab.started().is_some()
        });
        if up.is_err() || ended {
            return Err(Error::new("starting the lab", lab.wrote()));
        }
        Ok(lab)
    }

    /// What it says of itself once it runs.
    pub fn started(&self) -> Option<Value> {
        let text = self.process.stdout();
        let value: Value = serde_json::from_str(text.lines().next()?).ok()?;
        value.get("running").cloned()
    }

    /// What it has written since it was started, for error messages.
    pub fn wrote(&self) -> String {
        format!("the lab wrote:\n{}{}", self.process.stdout(), self.process.stderr())
    }

    /// The namespace of a host.
    pub fn namespace(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }

    /// Runs a closure in the namespace of a host, on a thread of its own, as
    /// [`Namespace::enter`](crate::Namespace::enter) does.
    ///
    /// # Errors
    ///
    /// When there is no such host.
    pub fn enter<R: Send>(
        &self,
        host: &str,
        closure: impl FnOnce() -> R + Send,
    ) -> Result<R, Error> {
        let path = Path::new(FOLDER).join(self.namespace(host));
        let handle = std::fs::File::open(&path)
            .map_err(|error| Error::new(format!("opening {}", path.display()), error))?;
        Ok(namespace::enter(&handle, closure))
    }

    /// The folder where its scene is.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// `nigh lab exec` with the words of a command for a host.
    pub fn command(&self, host: &str, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["lab", "exec", "--lab", &self.process.pid().to_string(), host]).args(words);
        command
    }

    /// Runs a program in a host to its end; another exit code than 0 is no error.
    ///
    /// # Errors
    ///
    /// When it cannot be started or still runs after `limit`.
    pub fn run(&self, host: &str, words: &[&str], limit: Duration) -> Result<Finished, Error> {
        named(words)?;
        run(self.command(host, words), limit)
    }

    /// Runs a program in a host to its end, for at most 30 seconds, and returns its standard output.
    ///
    /// # Errors
    ///
    /// When it cannot be started, takes longer, or its exit code is not 0.
    pub fn check(&self, host: &str, words: &[&str]) -> Result<String, Error> {
        named(words)?;
        crate::process::check(self.command(host, words))
    }

    /// What `nigh lab WORDS` says of it as JSON, such as that of `path pc server` or `status`.
    ///
    /// # Errors
    ///
    /// When it refuses or says no JSON.
    pub fn ask(&self, words: &[&str]) -> Result<Value, Error> {
        let mut command = Command::new(&self.binary);
        let pid = self.process.pid().to_string();
        command.arg("lab").args(words).args(["--json", "--lab", &pid]);
        let text = crate::process::check(command)?;
        serde_json::from_str(&text).map_err(|error| Error::new("asking the lab", error))
    }

    /// Starts a program in a host that runs until the returned guard is dropped.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn spawn(&self, host: &str, words: &[&str]) -> Result<Process, Error> {
        named(words)?;
        Process::start(self.command(host, words))
    }

    /// The process's number, by which `--lab` knows it.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The process, to signal, to kill, or to read what it wrote.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

impl Drop for Lab {
    /// Ends it as Ctrl-C does, so that it cleans up; when it does not end, it is killed.
    fn drop(&mut self) {
        let _ = self.process.signal(Signal::SIGINT);
        let _ = wait_until("the lab's end", LIMIT, || self.process.ended().is_some());
        running(|all| all.retain(|pid| *pid != self.process.pid()));
    }
}

/// The scene of routers `r1`, `r2` and so on in a row, with a link between each two and a host at each end;
/// everything is given by its keys in TOML.
pub fn row<const N: usize, const M: usize>(
    routers: [&str; N],
    links: [&str; M],
    hosts: [impl Display; 2],
) -> String {
    const { assert!(N == M + 1, "a row has a router more than links") };
    let names: Vec<_> = (1..=N).map(|number| format!("r{number}")).collect();
    let mut scene = String::new();
    for (name, keys) in names.iter().zip(routers) {
        scene += &format!("[[node]]\nname = {name:?}\n{keys}\n");
    }
    for (between, keys) in names.windows(2).zip(links) {
        scene += &format!("[[link]]\nbetween = {between:?}\n{keys}\n");
    }
    for (attach, keys) in [&names[0], &names[M]].into_iter().zip(hosts) {
        scene += &format!("[[host]]\nattach = {attach:?}\n{keys}\n");
    }
    scene
}

/// Two hosts of a [`row`] with addresses of IPv4 and IPv6.
pub const HOSTS: [&str; 2] = [
    "name = \"pc\"\naddress = [\"20.0.0.10/24\", \"2001:db8:20::10/64\"]",
    "name = \"server\"\naddress = [\"30.0.0.10/24\", \"2001:db8:30::10/64\"]",
];

/// The keys of a host that is a namespace of the test, and more of them.
pub fn host(name: &str, namespace: &Namespace, address: &[&str], more: &str) -> String {
    format!("name = {name:?}\nnamespace = {:?}\naddress = {address:?}\n{more}", namespace.name())
}

/// A host's program is started by the lab, not by the testbed.
fn named(words: &[&str]) -> Result<(), Error> {
    words.first().map_or(Ok(()), |program| programs::named(program.as_ref()))
}

fn running<R>(with: impl FnOnce(&mut Vec<u32>) -> R) -> R {
    with(&mut RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Ends all labs from outside, so that they clean up themselves; they are not reaped.
pub(crate) fn end_all() {
    let pids = running(std::mem::take);
    for pid in &pids {
        let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM);
    }
    // `PID (NAME) STATE ...`, proc(5).
    let has_ended = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
    };
    let _ = wait_until("the end of the labs", LIMIT, || pids.iter().all(has_ended));
}

/// The program `nigh` of the build that the calling test belongs to, for crates that do not make it.
///
/// # Errors
///
/// When it was not built: `cargo build -p nigh` does it.
pub fn binary() -> Result<PathBuf, Error> {
    let test = std::env::current_exe().map_err(|error| Error::new("finding nigh", error))?;
    // target/debug/deps/TEST and target/debug/examples/EXAMPLE.
    let path = test.ancestors().nth(2).unwrap_or(Path::new("")).join("nigh");
    match path.exists() {
        true => Ok(path),
        false => {
            let why = format!("there is no {}: run `cargo build -p nigh`", path.display());
            Err(Error::new("finding nigh", why))
        }
    }
}
