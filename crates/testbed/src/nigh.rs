//! The daemon under test.

use crate::{Error, LIMIT, Namespace, Process, folder, wait_until};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// The port of the daemon's HTTP service, on the namespace's loopback address.
pub const HTTP_PORT: u16 = 9160;

/// Where the files are that make it panic; see [`Nigh::panic`].
const PANIC: &str = "panic";

/// A running `nigh run`; killed (SIGKILL), and its files removed, when dropped.
#[derive(Debug)]
pub struct Nigh {
    process: Process,
    folder: TempDir,
}

impl Nigh {
    /// Starts `nigh run` and waits until its control socket answers.
    ///
    /// `binary` is the program (`env!("CARGO_BIN_EXE_nigh")` in tests of crate `nigh`), `sections`
    /// the configuration without `[node]`, which is written here.
    ///
    /// # Errors
    ///
    /// When it ends or does not answer within a minute; the error carries what it wrote.
    pub fn start(
        namespace: &Namespace,
        binary: &Path,
        name: &str,
        sections: &str,
    ) -> Result<Self, Error> {
        let folder = folder::new()?;
        Self::launch(folder, namespace, binary, name, sections)
    }

    /// As [`Nigh::start`], and [`Nigh::panic`] works.
    ///
    /// # Errors
    ///
    /// As [`Nigh::start`].
    pub fn start_to_panic(
        namespace: &Namespace,
        binary: &Path,
        name: &str,
        sections: &str,
    ) -> Result<Self, Error> {
        let folder = folder::new()?;
        std::fs::create_dir(folder.path().join(PANIC))
            .map_err(|error| Error::new("making the folder of panics", error))?;
        Self::launch(folder, namespace, binary, name, sections)
    }

    fn launch(
        folder: TempDir,
        namespace: &Namespace,
        binary: &Path,
        name: &str,
        sections: &str,
    ) -> Result<Self, Error> {
        let process = launch(namespace, binary, name, sections, folder.path())?;
        let mut nigh = Self { process, folder };
        nigh.wait()?;
        Ok(nigh)
    }

    /// Starts it again in the same folder after it has ended or was killed, perhaps with other sections.
    ///
    /// # Errors
    ///
    /// As [`Nigh::start`].
    pub fn restart(
        &mut self,
        namespace: &Namespace,
        binary: &Path,
        name: &str,
        sections: &str,
    ) -> Result<(), Error> {
        self.process.kill();
        self.process = launch(namespace, binary, name, sections, self.folder.path())?;
        self.wait()
    }

    fn wait(&mut self) -> Result<(), Error> {
        let mut ended = false;
        let socket = self.socket();
        let up = wait_until("nigh's control socket", LIMIT, || {
            ended = self.process.ended().is_some();
            ended || ask(&socket, &serde_json::json!({"do": "status"})).is_ok()
        });
        if up.is_err() || ended {
            return Err(Error::new("starting nigh", self.wrote()));
        }
        Ok(())
    }

    /// Makes it panic where its code has `panics::point(name)`, the next time it gets there. Only a binary
    /// with debug assertions does.
    ///
    /// # Errors
    ///
    /// When the file that asks for it cannot be written.
    pub fn panic(&self, name: &str) -> Result<(), Error> {
        let path = self.folder.path().join(PANIC).join(name);
        std::fs::write(&path, "")
            .map_err(|error| Error::new(format!("writing {}", path.display()), error))
    }

    /// Whether it has panicked there.
    pub fn has_panicked(&self, name: &str) -> bool {
        !self.folder.path().join(PANIC).join(name).exists()
    }

    /// What it has written since it was started, for error messages.
    pub fn wrote(&self) -> String {
        format!("nigh wrote:\n{}{}", self.process.stdout(), self.process.stderr())
    }

    /// Where its control socket is, for `--socket`.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("control.sock")
    }

    /// Its state directory, `node.state`.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Where its configuration file is: write a new one and send SIGHUP to have it read.
    pub fn configuration(&self) -> PathBuf {
        self.folder.path().join("nigh.toml")
    }

    /// Replaces all sections of the configuration file but `[node]`; nothing reads it yet.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn configure(&self, name: &str, sections: &str) -> Result<(), Error> {
        write_configuration(self.folder.path(), name, sections).map(drop)
    }

    /// The process, to signal, to kill, or to read what it wrote.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Sends one request to the control socket and returns what stands under `ok`.
    ///
    /// # Errors
    ///
    /// When it does not answer, or answers with an error.
    pub fn control(&self, request: &Value) -> Result<Value, Error> {
        ask(&self.socket(), request)
    }

    /// Fetches a path from its HTTP service: the status code and the body.
    ///
    /// # Errors
    ///
    /// When there is no answer.
    pub fn http(&self, namespace: &Namespace, path: &str) -> Result<(u16, String), Error> {
        let what = format!("GET {path} from nigh in {}", namespace.name());
        let answer = namespace
            .enter(|| get(path))
            .map_err(|error: std::io::Error| Error::new(&what, error))?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        match status {
            Some(status) => Ok((status, body.to_owned())),
            None => Err(Error::new(what, format!("no HTTP answer: {head}"))),
        }
    }
}

fn launch(
    namespace: &Namespace,
    binary: &Path,
    name: &str,
    sections: &str,
    folder: &Path,
) -> Result<Process, Error> {
    let configuration = write_configuration(folder, name, sections)?;
    let mut command = Command::new(binary);
    // The folder is root's.
    command.args(["run", "--user", "root", "-c"]).arg(configuration);
    command.env("NIGH_PANIC", folder.join(PANIC));
    namespace.start(command)
}

fn write_configuration(folder: &Path, name: &str, sections: &str) -> Result<PathBuf, Error> {
    let path = folder.join("nigh.toml");
    let text = format!(
        "[node]\nname = \"{name}\"\ncontrol = \"{0}/control.sock\"\nhttp = \"127.0.0.1:{HTTP_PORT}\"\n\
         state = \"{0}/state\"\n\n{sections}",
        folder.display()
    );
    std::fs::write(&path, text)
        .map_err(|error| Error::new(format!("writing {}", path.display()), error))?;
    Ok(path)
}

fn ask(socket: &Path, request: &Value) -> Result<Value, Error> {
    let failed = |why: String| Error::new(format!("asking nigh {request}"), why);
    let exchange = || -> std::io::Result<String> {
        let mut stream = UnixStream::connect(socket)?;
        // A drain takes its time: anycast.drain_timeout is 30 seconds by default.
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(line)
    };
    let line = exchange().map_err(|error| failed(error.to_string()))?;
    let answer: Value =
        serde_json::from_str(&line).map_err(|error| failed(format!("{error}: {line}")))?;
    match answer.get("ok") {
        Some(value) => Ok(value.clone()),
        None => Err(failed(answer.to_string())),
    }
}

fn get(path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, HTTP_PORT))?;
    stream.set_read_timeout(Some(LIMIT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
