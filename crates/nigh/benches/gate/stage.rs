//! The seed's scene (figure 4): two clients, a gateway, three servers; here three namespaces with
//! addresses for each, joined by links with offloads on.

use crate::{Failure, NIGH, http::Servers};
use std::{
    io::Write,
    net::{Ipv4Addr, SocketAddrV4},
    path::Path,
};
use tempfile::TempDir;
use testbed::{End, Lab, Namespace, link};

/// The seed's clients and servers.
pub(crate) const CLIENTS: [Ipv4Addr; 2] =
    [Ipv4Addr::new(10, 1, 0, 11), Ipv4Addr::new(10, 1, 0, 12)];
pub(crate) const SERVERS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 2, 0, 11), Ipv4Addr::new(10, 2, 0, 12), Ipv4Addr::new(10, 2, 0, 13)];
/// Where policies refuse what is said.
pub(crate) const REFUSED: SocketAddrV4 = SocketAddrV4::new(SERVERS[0], 6881);
/// Where packets go that only their sender sees.
const NOWHERE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 3, 0, 2), 6881);
/// The gateway's interface towards the clients.
pub(crate) const INSIDE: &str = "inside";
/// The one towards the servers, and its address.
const OUTSIDE: &str = "outside";
const GATE_OUTSIDE: &str = "10.2.0.1/24";
/// Bytes of the seed's files.
const FILE: usize = 2_000_000;

/// The scene, with servers that serve.
pub(crate) struct Stage {
    _served: [Servers; 2],
    /// What joins the gateway and the servers, if it is no link.
    pub(crate) lab: Option<Lab>,
    pub(crate) clients: Namespace,
    pub(crate) gate: Namespace,
    _servers: Namespace,
    pub(crate) folder: TempDir,
}

/// An end with several addresses of networks of 24 bits.
fn addresses<'a>(end: End<'a>, addresses: &[Ipv4Addr]) -> End<'a> {
    addresses.iter().fold(end, |end, address| end.address(&format!("{address}/24")))
}

impl Stage {
    /// The scene with a link between the gateway and the servers, and files of the seed's size.
    pub(crate) fn build() -> Result<Self, Failure> {
        Self::join(FILE, |gate, servers| {
            let end = |namespace, interface| End::new(namespace, interface).queues(2);
            link(
                addresses(end(servers, "eth0"), &SERVERS),
                end(gate, OUTSIDE).address(GATE_OUTSIDE),
            )?;
            Ok(None)
        })
    }

    /// The scene with a wire of the lab in that place, and files of so many bytes.
    pub(crate) fn through_lab(file: usize) -> Result<Self, Failure> {
        Self::join(file, |gate, servers| {
            let all: Vec<_> = SERVERS.iter().map(|address| format!("\"{address}/24\"")).collect();
            let scene = format!(
                "[lab]\nseed = 7\n[[wire]]\nbetween = [\n\
                 {{ name = \"gate\", namespace = \"{}\", interface = \"{OUTSIDE}\", \
                 address = \"{GATE_OUTSIDE}\" }},\n\
                 {{ name = \"servers\", namespace = \"{}\", interface = \"eth0\", \
                 address = [{}] }},\n]\n",
                gate.name(),
                servers.name(),
                all.join(", ")
            );
            Ok(Some(Lab::start(Path::new(NIGH), &scene)?))
        })
    }

    /// Builds the scene; `outside` joins the gateway's namespace with the servers'.
    fn join(
        file: usize,
        outside: impl FnOnce(&Namespace, &Namespace) -> Result<Option<Lab>, Failure>,
    ) -> Result<Self, Failure> {
        let clients = Namespace::new("clients")?;
        let gate = Namespace::new("gate")?;
        let servers = Namespace::new("servers")?;
        gate.forward()?;
        link(
            addresses(End::new(&clients, "eth0").queues(2), &CLIENTS),
            End::new(&gate, INSIDE).queues(2).address("10.1.0.1/24"),
        )?;
        let lab = outside(&gate, &servers)?;
        clients.check(&["ip", "route", "add", "default", "via", "10.1.0.1"])?;
        servers.check(&["ip", "route", "add", "default", "via", "10.2.0.1"])?;
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("file");
        write_file(&path, file)?;
        let echoes = Servers::of_echoes(&servers, REFUSED)?;
        let files = Servers::of_file(&servers, &SERVERS, &path)?;
        Ok(Self { _served: [files, echoes], lab, clients, gate, _servers: servers, folder })
    }

    /// A place behind an interface of the clients whose other end takes nothing: frames go to a MAC
    /// address that is not its own.
    pub(crate) fn nowhere(&self) -> Result<SocketAddrV4, Failure> {
        let address = NOWHERE.ip().to_string();
        let words: [&[&str]; 5] = [
            &["link", "add", "nowhere", "type", "veth", "peer", "name", "nobody"],
            &["address", "add", "10.3.0.1/24", "dev", "nowhere"],
            &["link", "set", "nowhere", "up"],
            &["link", "set", "nobody", "up"],
            &["neighbour", "add", &address, "lladdr", "02:00:00:00:00:01", "dev", "nowhere"],
        ];
        for words in words {
            self.clients.check(&[&["ip"], words].concat())?;
        }
        Ok(NOWHERE)
    }
}

/// A file that cannot be told from a compressed one, the same each time.
fn write_file(path: &Path, bytes: usize) -> Result<(), Failure> {
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
