//! Captures masked, beside traceanon, tcprewrite and pktanon, in one run: `make bench-mask`.
//!
//! Each program runs as a process of its own on one core (`taskset`), from a file in memory to a file in
//! memory, in turn; of each the fastest of some rounds counts, as the others had company on the machine.
//! What is counted is the whole process: start, reading, masking, writing.
//!
//! The others do less: traceanon changes the addresses of IPv4 headers and nothing else, tcprewrite the same
//! without keeping prefixes, pktanon hashes fields and removes payload.
//!
//! Prints a table and writes `target/bench/mask.json`. Nothing here fails for being slow.
#![forbid(unsafe_code)]

mod captures;
mod live;

use mask::{file::Job, machine::MappingName, policy::Policy};
use std::{
    error::Error,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};
use testbed::Figures;
use zeroize::Zeroizing;

const PACKETS: usize = 2_000_000;
const ROUNDS: usize = 3;
/// Bytes of the stream over which memory must stay flat.
const STREAM: u64 = 10_000_000_000;
/// What traceanon takes for a key of Crypto-PAn.
const KEY: &str = "0123456789abcdef0123456789abcdef";
/// pktanon's own example, which hashes addresses and removes payload.
const PKTANON: &str = "/usr/share/doc/pktanon/examples/profiles/profile.xml";

/// A folder in memory that goes with the run.
fn folder() -> io::Result<tempfile::TempDir> {
    tempfile::tempdir_in("/dev/shm")
}

/// This program again, as `nigh mask file` does its work; what it says.
fn nigh(cores: &str, policy: &str, threads: usize) -> Command {
    let mut command = Command::new("taskset");
    let itself = std::env::current_exe().expect("this program");
    command.args(["-c", cores]).arg(itself).args(["one", policy, &threads.to_string()]);
    command
}

/// Does one capture from standard input to standard output; its peak of memory, in bytes, to standard
/// error.
fn one(policy: &str, threads: usize) -> Result<(), Box<dyn Error>> {
    let policy = Policy::shipped(policy).ok_or("no policy")?;
    let key = Zeroizing::new(std::array::from_fn(|n| KEY.as_bytes()[n]));
    let job = Job::new(&policy, key, MappingName::CryptoPan)?;
    job.run(io::stdin(), &mut io::stdout(), threads)?;
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kilobytes: f64 = peak.trim().trim_end_matches(" kB").parse()?;
    eprintln!("{}", kilobytes * 1024.0);
    Ok(())
}

/// Seconds of the fastest of some rounds.
fn fastest(mut run: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn succeed(command: &mut Command) -> io::Result<()> {
    let done = command.stderr(Stdio::piped()).output()?;
    let errors = || String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() { Ok(()) } else { Err(io::Error::other(errors())) }
}

/// Packets a second, in millions, by each program.
struct Bench {
    folder: tempfile::TempDir,
    figures: Figures,
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Measures and notes; none where the program is not there.
    fn measure(
        &mut self,
        name: &str,
        goal: Option<&'static str>,
        run: impl FnMut() -> io::Result<()>,
    ) -> io::Result<Option<f64>> {
        let seconds = match fastest(run) {
            Ok(seconds) => seconds,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                println!("  {name:<58} is not installed: scripts/setup bench-mask");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let rate = PACKETS as f64 / seconds / 1e6;
        self.figures.add(name, rate, "Mpps", goal);
        Ok(Some(rate))
    }

    fn nigh(
        &mut self,
        capture: &str,
        policy: &str,
        threads: usize,
        goal: Option<&'static str>,
    ) -> io::Result<f64> {
        let (input, out) = (self.path(capture), self.path("out"));
        let (cores, of) = match threads {
            1 => ("0".to_owned(), "one core".to_owned()),
            _ => (format!("0-{}", threads - 1), format!("{threads} cores")),
        };
        let name = format!("{capture}: nigh, {policy}, {of}");
        let rate = self.measure(&name, goal, || {
            let files = (File::open(&input)?, File::create(&out)?);
            succeed(nigh(&cores, policy, threads).stdin(files.0).stdout(files.1))
        })?;
        Ok(rate.unwrap_or_default())
    }

    fn peer(
        &mut self,
        capture: &str,
        program: &str,
        words: impl Fn(&Path, &Path) -> Vec<String>,
    ) -> io::Result<Option<f64>> {
        let (input, out) = (self.path(capture), self.path("out"));
        let words = words(&input, &out);
        // Otherwise it is taskset that is there, and says that the program is not.
        let there = Command::new("which").arg(program).stdout(Stdio::null()).status()?.success();
        self.measure(&format!("{capture}: {program}"), None, || {
            if !there {
                return Err(io::ErrorKind::NotFound.into());
            }
            succeed(Command::new("taskset").args(["-c", "0", program]).args(&words))
        })
    }

    fn times(&mut self, name: &str, one: f64, other: Option<f64>, goal: Option<&'static str>) {
        if let Some(other) = other {
            self.figures.add(name, one / other, "times", goal);
        }
    }
}

fn traceanon(input: &Path, out: &Path) -> Vec<String> {
    let [input, out] = [input, out].map(|path| format!("pcapfile:{}", path.display()));
    ["-s", "-d", "-c", KEY, &input, &out].map(str::to_owned).to_vec()
}

fn tcprewrite(input: &Path, out: &Path) -> Vec<String> {
    let files = [("--infile", input), ("--outfile", out)];
    let files = files.map(|(name, path)| format!("{name}={}", path.display()));
    ["--seed=7".to_owned()].into_iter().chain(files).collect()
}

fn pktanon(input: &Path, out: &Path) -> Vec<String> {
    let [input, out] = [input, out].map(|path| path.display().to_string());
    vec!["-c".to_owned(), PKTANON.to_owned(), input, out]
}

/// Peak memory over a stream that is the capture again and again.
fn memory(bench: &Bench, bytes: u64) -> io::Result<f64> {
    let capture = fs::read(bench.path("ipv4"))?;
    let (header, packets) = capture.split_at(captures::HEADER);
    let mut child = nigh("0-1", "research", 2)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(header)?;
    let mut left = bytes;
    while left > 0 {
        input.write_all(packets)?;
        left = left.saturating_sub(packets.len() as u64);
    }
    drop(input);
    let mut printed = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut printed)?;
    child.wait()?;
    printed.trim().parse().map_err(|_| io::Error::other(printed))
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    if let [_, mode, policy, threads] = &words[..]
        && mode == "one"
    {
        return one(policy, threads.parse()?);
    }
    let mut bench = Bench { folder: folder()?, figures: Figures::new("mask") };
    if words.get(1).is_some_and(|mode| mode == "live") {
        return live::measure(&mut bench.figures).map_err(|error| error.to_string().into());
    }
    println!("\n{PACKETS} packets of each kind, the fastest of {ROUNDS} runs\n");
    for (name, capture) in captures::all(PACKETS) {
        fs::write(bench.path(name), capture)?;
    }
    let rate = bench.nigh("ipv4", "research", 1, None)?;
    let peer = bench.peer("ipv4", "traceanon", traceanon)?;
    bench.times("ipv4: times traceanon", rate, peer, Some("20"));
    bench.peer("ipv4", "tcprewrite", tcprewrite)?;
    bench.peer("ipv4", "pktanon", pktanon)?;
    for policy in ["strict", "flows", "debug"] {
        bench.nigh("ipv4", policy, 1, None)?;
    }
    bench.nigh("ipv6", "research", 1, None)?;
    // It writes IPv6 as it is.
    bench.peer("ipv6", "traceanon", traceanon)?;
    bench.peer("ipv6", "pktanon", pktanon)?;
    let rate = bench.nigh("mixed", "research", 1, None)?;
    let peer = bench.peer("mixed", "pktanon", pktanon)?;
    bench.times("mixed: times pktanon", rate, peer, Some("40"));
    let cores = std::thread::available_parallelism()?.get();
    bench.nigh("ipv4", "research", cores, None)?;
    for (name, bytes) in [("a stream of 100 MB", STREAM / 100), ("a stream of 10 GB", STREAM)] {
        let peak = memory(&bench, bytes)?;
        bench.figures.add(&format!("memory, {name}"), peak / 1e6, "MB", None);
    }
    live::measure(&mut bench.figures).map_err(|error| error.to_string())?;
    bench.figures.write()?;
    Ok(())
}
