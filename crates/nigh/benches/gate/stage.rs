//! The seed's scene (figure 4): two clients, a gateway, three servers; here three namespaces with
//! addresses for each, joined by links with offloads on.

use crate::{Failure, http::Servers};
use std::{io::Write, net::Ipv4Addr};
use tempfile::TempDir;
use testbed::{End, Namespace, link};

/// The seed's clients and servers.
pub(crate) const CLIENTS: [Ipv4Addr; 2] =
    [Ipv4Addr::new(10, 1, 0, 11), Ipv4Addr::new(10, 1, 0, 12)];
pub(crate) const SERVERS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 2, 0, 11), Ipv4Addr::new(10, 2, 0, 12), Ipv4Addr::new(10, 2, 0, 13)];
/// The gateway's interface towards the clients.
pub(crate) const INSIDE: &str = "inside";
/// Bytes of the seed's files.
const FILE: usize = 2_000_000;

/// The scene, with servers that serve.
pub(crate) struct Stage {
    _servers: Servers,
    pub(crate) clients: Namespace,
    pub(crate) gate: Namespace,
    _outside: Namespace,
    pub(crate) folder: TempDir,
}

impl Stage {
    pub(crate) fn build() -> Result<Self, Failure> {
        let clients = Namespace::new("clients")?;
        let gate = Namespace::new("gate")?;
        let outside = Namespace::new("servers")?;
        gate.forward()?;
        let mut end = End::new(&clients, "eth0").queues(2);
        for client in CLIENTS {
            end = end.address(&format!("{client}/24"));
        }
        link(end, End::new(&gate, INSIDE).queues(2).address("10.1.0.1/24"))?;
        let mut end = End::new(&outside, "eth0").queues(2);
        for server in SERVERS {
            end = end.address(&format!("{server}/24"));
        }
        link(end, End::new(&gate, "outside").queues(2).address("10.2.0.1/24"))?;
        clients.check(&["ip", "route", "add", "default", "via", "10.1.0.1"])?;
        outside.check(&["ip", "route", "add", "default", "via", "10.2.0.1"])?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("file");
        write_file(&path, FILE)?;
        let servers = Servers::start(&outside, &SERVERS, &path)?;
        Ok(Self { _servers: servers, clients, gate, _outside: outside, folder })
    }
}

/// A file that cannot be told from a compressed one, the same each time.
pub(crate) fn write_file(path: &std::path::Path, bytes: usize) -> Result<(), Failure> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut content = Vec::with_capacity(bytes + 8);
    while content.len() < bytes {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        content.extend(state.to_le_bytes());
    }
    content.truncate(bytes);
    std::fs::File::create(path)?.write_all(&content)?;
    Ok(())
}
