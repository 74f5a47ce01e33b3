//! Which user of this machine has connected.

use super::Ends;
use std::{
    fs::File,
    io::{BufRead, BufReader},
    net::{IpAddr, SocketAddr},
};

/// The kernel's tables of TCP sockets in this thread's network namespace (proc_pid_net(5)).
const TABLES: [&str; 2] = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];

impl Ends {
    /// The id of the user whose program has connected; none if it is not on this machine, or has gone. Blocks while
    /// it reads the kernel's tables of sockets.
    pub fn user(&self) -> Option<u32> {
        let (client, server) = (canonical(self.client), canonical(self.server));
        // Who connects from elsewhere has another address, and no socket here: there is nothing to read.
        if !client.ip().is_loopback() && client.ip() != server.ip() {
            return None;
        }
        TABLES.iter().find_map(|table| {
            let lines = BufReader::new(File::open(table).ok()?).lines();
            lines.map_while(Result::ok).find_map(|line| owner(&line, client, server))
        })
    }
}

/// The user of the socket of a table's line, if it is the one from `local` to `remote`.
fn owner(line: &str, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
    // Number, addresses, state, queues, timer, retransmissions, user, timeout, inode.
    let fields: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
    let &[_, from, to, _, _, _, _, user, _, inode] = fields.as_slice() else { return None };
    // Of a socket that its program has closed there is no inode, and user 0 stands for none.
    let theirs = address_of(from)? == local && address_of(to)? == remote && inode != "0";
    theirs.then(|| user.parse().ok())?
}

/// An address as the tables write it: words of 32 bits in the machine's order, and the port, in hexadecimal.
fn address_of(field: &str) -> Option<SocketAddr> {
    let (ip, port) = field.split_once(':')?;
    let word = |at: usize| {
        let word = ip.get(at * 8..(at + 1) * 8)?;
        u32::from_str_radix(word, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            IpAddr::from(bytes)
        }
        _ => return None,
    };
    Some(canonical((ip, u16::from_str_radix(port, 16).ok()?).into()))
}

/// An IPv4 address that a socket of IPv6 has, as such.
fn canonical(address: SocketAddr) -> SocketAddr {
    (address.ip().to_canonical(), address.port()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    /// What the daemon sees of a connection to `to`, at a listener on `at`.
    fn connected(at: &str, to: &str) -> (TcpStream, TcpStream, Ends) {
        let listener = TcpListener::bind((at, 0)).expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let stream = TcpStream::connect((to, port)).expect("a listener");
        let (accepted, client) = listener.accept().expect("a client");
        let server = accepted.local_addr().expect("it is connected");
        (stream, accepted, Ends { client, server })
    }

    #[test]
    fn a_client_of_this_machine_has_its_user() {
        let own = nix::unistd::geteuid().as_raw();
        for (at, to) in [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1")] {
            let (_stream, _accepted, ends) = connected(at, to);
            assert_eq!(ends.user(), Some(own), "{to} at {at}");
            let Ends { mut client, server } = ends;
            client.set_port(client.port() ^ 1);
            assert_eq!(Ends { client, server }.user(), None, "another port");
            let client = (IpAddr::from([192, 0, 2, 1]), client.port()).into();
            assert_eq!(Ends { client, server }.user(), None, "another machine");
        }
    }

    #[test]
    fn a_client_that_has_closed_has_no_user() {
        let (stream, _accepted, ends) = connected("127.0.0.1", "127.0.0.1");
        drop(stream);
        assert_eq!(ends.user(), None);
    }

    #[test]
    fn what_is_no_line_of_a_table_names_nobody() {
        let [local, remote] = ["127.0.0.1:4660", "127.0.0.1:9160"].map(|a| a.parse().expect("one"));
        let line = |user: &str, inode: &str| {
            let ip = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
            format!("0: {ip}:1234 {ip}:23C8 01 0:0 00:0 0 {user} 0 {inode} 1 0 20 4 30 10 -1")
        };
        assert_eq!(owner(&line("1000", "77"), local, remote), Some(1000));
        assert_eq!(owner(&line("1000", "77"), remote, local), None);
        for (user, inode) in [("0", "0"), ("-1", "77")] {
            assert_eq!(owner(&line(user, inode), local, remote), None, "{user:?} {inode}");
        }
        for line in ["", "sl local_address rem_address", "0: 0100007F:1234 0100007F:23C8 01"] {
            assert_eq!(owner(line, local, remote), None, "{line}");
        }
    }
}
