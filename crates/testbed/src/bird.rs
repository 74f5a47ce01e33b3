//! BIRD 2 in a namespace, with its own control socket.
//!
//! The control socket speaks lines: a command goes in, answers come out as `NNNN-text` (more of the
//! same follows), ` text` (goes on with the last number) or `NNNN text` (the end), BIRD 2.0
//! programmer's documentation, "Client/server protocol".

use crate::{Error, LIMIT, Namespace, Process, folder, wait_until};
use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
};
use tempfile::TempDir;

/// A running BIRD; killed, and its files removed, when dropped.
#[derive(Debug)]
pub struct Bird {
    process: Process,
    folder: TempDir,
}

impl Bird {
    /// Starts BIRD with a configuration, and waits until its control socket answers.
    ///
    /// # Errors
    ///
    /// When BIRD is not installed or refuses the configuration; the error carries what it wrote.
    pub fn start(namespace: &Namespace, configuration: &str) -> Result<Self, Error> {
        let folder = folder::new()?;
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (conf, socket, pid) = (path("bird.conf"), path("bird.ctl"), path("bird.pid"));
        std::fs::write(&conf, configuration).map_err(|error| Error::new(&conf, error))?;
        let process = namespace.spawn(&["bird", "-f", "-c", &conf, "-s", &socket, "-P", &pid])?;
        let mut bird = Self { process, folder };
        let mut ended = false;
        let up = wait_until("BIRD's control socket", LIMIT, || {
            ended = bird.process.ended().is_some();
            ended || bird.query("show status").is_ok()
        });
        if up.is_err() || ended {
            let wrote = format!("{}{}", bird.process.stdout(), bird.process.stderr());
            return Err(Error::new(format!("starting BIRD in {}", namespace.name()), wrote));
        }
        Ok(bird)
    }

    /// Where its control socket is.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("bird.ctl")
    }

    /// The process, to signal or to kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Sends a command to the control socket and returns the answer without its numbers.
    ///
    /// # Errors
    ///
    /// When BIRD does not answer, or answers with an error (numbers from 8000 on).
    pub fn query(&self, command: &str) -> Result<String, Error> {
        let failed = |why: String| Error::new(format!("BIRD: {command}"), why);
        self.exchange(command).map_err(|error| failed(error.to_string()))?.map_err(failed)
    }

    fn exchange(&self, command: &str) -> std::io::Result<Result<String, String>> {
        let mut stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        stream.write_all(format!("{command}\n").as_bytes())?;
        let mut answer = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(Err(format!("closed the connection\n{answer}")));
            }
            let numbered = line.len() > 4 && line.as_bytes()[..4].iter().all(u8::is_ascii_digit);
            let text =
                if numbered { &line[5.min(line.len())..] } else { line.get(1..).unwrap_or("") };
            answer.push_str(text.trim_end());
            answer.push('\n');
            if numbered && line.as_bytes()[4] == b' ' {
                let refused = line.as_bytes()[0] >= b'8';
                let answer = answer.trim_end().to_owned();
                return Ok(if refused { Err(answer) } else { Ok(answer) });
            }
        }
    }

    /// Whether the named BGP protocol's session is established.
    pub fn established(&self, protocol: &str) -> bool {
        self.query(&format!("show protocols {protocol}"))
            .is_ok_and(|answer| answer.contains("Established"))
    }
}

/// The configuration of a BIRD that a node steers, as docs/decisions/031-bird.md has it: AS 12 at
/// 172.16.0.30, with a session `isp` to AS 4 at 172.16.0.29 and this next hop for IPv6.
pub fn steered(next_hop6: &str) -> String {
    format!(
        r#"
router id 172.16.0.30;
protocol device {{}}
protocol static nigh4 {{ disabled; ipv4; route 50.0.0.0/8 blackhole; }}
protocol static nigh6 {{ disabled; ipv6; route 2001:db8:50::/48 blackhole; }}
protocol static nigh4_gshut {{ disabled; ipv4 {{ preference 250; }}; route 50.0.0.0/8 blackhole; }}
protocol static nigh6_gshut {{
  disabled;
  ipv6 {{ preference 250; }};
  route 2001:db8:50::/48 blackhole;
}}
filter to_isp {{
  if proto ~ "nigh?_gshut" then bgp_community.add((65535, 0));
  if proto ~ "nigh*" then accept;
  reject;
}}
protocol bgp isp {{
  local 172.16.0.30 as 12;
  neighbor 172.16.0.29 as 4;
  connect delay time 1;
  connect retry time 1;
  error wait time 1, 2;
  ipv4 {{ import none; export filter to_isp; }};
  ipv6 {{ import none; export filter to_isp; next hop address {next_hop6}; }};
}}
"#
    )
}
