//! Two namespaces with something between them, and what can be measured from one to the other with the
//! kernel's own TCP, UDP and echo.

use nix::{
    sched::{CloneFlags, setns},
    sys::socket::{
        ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn, recvmsg, sendmmsg, setsockopt,
        sockopt,
    },
};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    error::Error,
    fs::File,
    io::{IoSlice, IoSliceMut},
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    os::fd::AsRawFd,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Two namespaces and the address of the second.
pub(crate) struct Ends {
    pub(crate) left: String,
    pub(crate) right: String,
    pub(crate) to: Ipv4Addr,
}

/// By how much round trips take longer than the delay that was set, in microseconds.
pub(crate) struct Times {
    pub(crate) mean: f64,
    pub(crate) p99: f64,
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
        let inside = scope.spawn(|| {
            let file = File::open(Path::new("/run/netns").join(namespace))?;
            setns(file, CloneFlags::CLONE_NEWNET)?;
            closure()
        });
        inside.join().map_err(|_| "it panicked")?
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
        let mut server = inside(&self.right, &["iperf3", "-s", "-1"]);
        let server = Server(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        self.wait_for_server()?;
        let to = self.to.to_string();
        let client = ["iperf3", "-J", "-c", &to];
        let output = inside(&self.left, &[&client, words].concat()).output()?;
        drop(server);
        let report: Value = serde_json::from_slice(&output.stdout)?;
        match report.get("error") {
            Some(why) => Err(format!("iperf3 says {why}").into()),
            None => Ok(report),
        }
    }

    /// Until iperf3 listens, by what the namespace's kernel knows of listening sockets.
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

    /// Echo requests one after the other, each 2 ms after the last reply; the kernel answers them and
    /// says when replies came.
    pub(crate) fn round_trips(&self, count: u16, delay: Duration) -> Result<Times, Failure> {
        let mut excess = within(&self.left, || {
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
            socket.set_read_timeout(Some(Duration::from_secs(1)))?;
            socket.connect(&SocketAddrV4::new(self.to, 0).into())?;
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
            let mut excess = Vec::new();
            for sequence in 0..count {
                let sent = SystemTime::now().duration_since(UNIX_EPOCH)?;
                socket.send(&request(sequence))?;
                if let Some(came) = reply(&socket, sequence)? {
                    excess.push(
                        (came.as_secs_f64() - sent.as_secs_f64() - delay.as_secs_f64()) * 1e6,
                    );
                }
                thread::sleep(Duration::from_millis(2));
            }
            Ok(excess)
        })?;
        if excess.len() < usize::from(count) * 9 / 10 {
            return Err(format!("{} of {count} echo requests were answered", excess.len()).into());
        }
        excess.sort_by(f64::total_cmp);
        let mean = excess.iter().sum::<f64>() / excess.len() as f64;
        Ok(Times { mean, p99: excess[excess.len() * 99 / 100] })
    }
}

/// A program in a namespace, for at most a minute.
fn inside(namespace: &str, words: &[&str]) -> Command {
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

/// An echo request of 64 bytes.
fn request(sequence: u16) -> [u8; 64] {
    let mut request = [0; 64];
    request[0] = 8;
    request[4..6].copy_from_slice(&IDENTIFIER.to_be_bytes());
    request[6..8].copy_from_slice(&sequence.to_be_bytes());
    let check = wire::checksum::checksum(&request);
    request[2..4].copy_from_slice(&check.to_be_bytes());
    request
}

const IDENTIFIER: u16 = 0x1ab5;

/// When the reply to a request came, by the kernel's clock; `None` if none did within a second.
fn reply(socket: &Socket, sequence: u16) -> Result<Option<Duration>, Failure> {
    loop {
        let mut bytes = [0; 256];
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
        let mut buffers = [IoSliceMut::new(&mut bytes)];
        let received = recvmsg::<SockaddrIn>(
            socket.as_raw_fd(),
            &mut buffers,
            Some(&mut control),
            MsgFlags::empty(),
        );
        let (length, stamp) = match received {
            Ok(message) => (
                message.bytes,
                message.cmsgs()?.find_map(|one| match one {
                    ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
                    _ => None,
                }),
            ),
            Err(nix::Error::EAGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // An IPv4 header without options, then the reply.
        let ours = bytes[..length].get(20..28).is_some_and(|header| {
            header[0] == 0
                && header[4..6] == IDENTIFIER.to_be_bytes()
                && header[6..8] == sequence.to_be_bytes()
        });
        if ours {
            return Ok(stamp);
        }
    }
}
