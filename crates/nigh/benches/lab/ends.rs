//! Two namespaces with something between them, and what can be measured from one to the other with the
//! kernel's own TCP, UDP and echo.

use nix::{
    sched::{CloneFlags, setns},
    sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, sendmmsg},
};
use serde_json::Value;
use std::{
    error::Error,
    fs::File,
    io::IoSlice,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::AsRawFd,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Two namespaces and the address of the second.
pub(crate) struct Ends {
    pub(crate) left: String,
    pub(crate) right: String,
    pub(crate) to: Ipv4Addr,
}

/// Port of iperf3, and one at which nobody reads.
const IPERF: u16 = 5201;
const SINK: u16 = 9;
/// UDP payload of a frame of 60 bytes.
const SMALL: usize = 18;
/// Datagrams to a system call.
const BATCH: usize = 64;

/// Runs a closure in a namespace of `ip netns`, on a thread of its own.
pub(crate) fn within<R: Send>(
    namespace: &str,
    closure: impl FnOnce() -> Result<R, Failure> + Send,
) -> Result<R, Failure> {
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let file = File::open(Path::new("/run/netns").join(namespace))?;
            setns(file, CloneFlags::CLONE_NEWNET)?;
            closure()
        });
        server.join().map_err(|_| "it panicked")?
    })
}

/// A server that is killed when it is not needed any more.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Ends {
    /// Lets TCP fill 10 Gbit/s over 20 ms and more, which Linux' own limits of 4 to 6 MB do not.
    pub(crate) fn tune(&self) -> Result<(), Failure> {
        for namespace in [&self.left, &self.right] {
            within(namespace, || {
                for name in ["tcp_rmem", "tcp_wmem"] {
                    let file = Path::new("/proc/sys/net/ipv4").join(name);
                    std::fs::write(file, "4096 1048576 134217728")?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Gbit/s of one TCP connection over some seconds, after two to come up to speed.
    pub(crate) fn tcp(&self, seconds: u32) -> Result<f64, Failure> {
        let seconds = seconds.to_string();
        let report = self.iperf(&["-O", "2", "-t", &seconds])?;
        number(&report, "/end/sum_received/bits_per_second").map(|bits| bits / 1e9)
    }

    /// Seconds that it takes to send so many bytes in writes of so many.
    pub(crate) fn upload(&self, bytes: usize, write: usize) -> Result<f64, Failure> {
        let report = self.iperf(&["-n", &bytes.to_string(), "-l", &write.to_string()])?;
        number(&report, "/end/sum_received/seconds")
    }

    fn iperf(&self, words: &[&str]) -> Result<Value, Failure> {
        let mut server = command_in(&self.right, &["iperf3", "-s", "-1"]);
        let server = Server(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        self.wait_for_server()?;
        let to = self.to.to_string();
        let client = ["iperf3", "-J", "-c", &to];
        let output = command_in(&self.left, &[&client, words].concat()).output()?;
        drop(server);
        let report: Value = serde_json::from_slice(&output.stdout)?;
        match report.get("error") {
            Some(why) => Err(format!("iperf3 says {why}").into()),
            None => Ok(report),
        }
    }

    /// Until iperf3 listens, by the listening sockets of the namespace.
    fn wait_for_server(&self) -> Result<(), Failure> {
        let listening = format!(":{IPERF:04X} ");
        within(&self.right, || {
            let mut last = String::new();
            testbed::wait_until("iperf3", Duration::from_secs(10), || {
                last.clear();
                for name in ["tcp", "tcp6"] {
                    let file = Path::new("/proc/thread-self/net").join(name);
                    last += &std::fs::read_to_string(file).unwrap_or_default();
                }
                last.contains(&listening)
            })?;
            Ok(())
        })
    }

    /// UDP packets of 60 bytes a second that arrive, sent as fast as one core can.
    pub(crate) fn small_packets(&self, time: Duration) -> Result<f64, Failure> {
        let sink = within(&self.right, || Ok(UdpSocket::bind((Ipv4Addr::UNSPECIFIED, SINK))?))?;
        let received = || within(&self.right, received_packets);
        let (before, begin) = (received()?, Instant::now());
        within(&self.left, || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            let to = SockaddrIn::from(SocketAddrV4::new(self.to, SINK));
            let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
            let payload = [IoSlice::new(&[0; SMALL])];
            let packets = [payload; BATCH];
            let addresses = [Some(to); BATCH];
            while begin.elapsed() < time {
                let fd = socket.as_raw_fd();
                // A full queue is no reason to end.
                let _ = sendmmsg(fd, &mut headers, &packets, addresses, [], MsgFlags::empty());
            }
            Ok(())
        })?;
        let (after, elapsed) = (received()?, begin.elapsed());
        drop(sink);
        Ok((after - before) as f64 / elapsed.as_secs_f64())
    }
}

/// A program in a namespace, for at most a minute.
fn command_in(namespace: &str, words: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "timeout", "60"]).args(words).stdin(Stdio::null());
    command
}

fn number(report: &Value, path: &str) -> Result<f64, Failure> {
    let value = report.pointer(path).and_then(Value::as_f64);
    value.ok_or_else(|| format!("iperf3 reports no {path}").into())
}

/// Packets that all interfaces of the calling thread's namespace have received, but for `lo`.
fn received_packets() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let packets = text.lines().filter_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        let packets = numbers.split_whitespace().nth(1)?.parse::<u64>().ok()?;
        (name.trim() != "lo").then_some(packets)
    });
    Ok(packets.sum())
}
