//! The paper's scene (figure 4): two clients, a gateway, three servers; here three namespaces with
//! addresses for each, joined by links with offloads on.

use crate::{Failure, NIGH, http::Servers, processor};
use std::{
    net::{Ipv4Addr, SocketAddrV4},
    path::Path,
    process::Command,
};
use tempfile::TempDir;
use testbed::{End, Lab, Namespace, clients::noise, link};

/// The paper's clients and servers.
pub(crate) const CLIENTS: [Ipv4Addr; 2] =
    [Ipv4Addr::new(10, 1, 0, 11), Ipv4Addr::new(10, 1, 0, 12)];
pub(crate) const SERVERS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 2, 0, 11), Ipv4Addr::new(10, 2, 0, 12), Ipv4Addr::new(10, 2, 0, 13)];
/// The endpoint that policies refuse.
pub(crate) const REFUSED: SocketAddrV4 = SocketAddrV4::new(SERVERS[0], 6881);
/// The gateway's interface towards the clients.
pub(crate) const INTERNAL: &str = "internal";
/// The one towards the servers, and its address.
const EXTERNAL: &str = "external";
const GATE_EXTERNAL: &str = "10.2.0.1/24";
/// Bytes of the paper's files.
const FILE: usize = 2_000_000;

/// The scene, with servers that serve.
pub(crate) struct Stage {
    _served: [Servers; 3],
    /// What joins the gateway and the servers, if it is no link.
    pub(crate) lab: Option<Lab>,
    pub(crate) clients: Namespace,
    pub(crate) gate: Namespace,
    pub(crate) servers: Namespace,
    pub(crate) folder: TempDir,
}

/// An end with several addresses of networks of 24 bits.
fn addresses<'a>(end: End<'a>, addresses: &[Ipv4Addr]) -> End<'a> {
    addresses.iter().fold(end, |end, address| end.address(&format!("{address}/24")))
}

impl Stage {
    /// The scene with a link between the gateway and the servers, and files of the paper's size.
    pub(crate) fn build() -> Result<Self, Failure> {
        Self::join(FILE, |gate, servers| {
            let end = |namespace, interface| End::new(namespace, interface).queues(2);
            link(
                addresses(end(servers, "eth0"), &SERVERS),
                end(gate, EXTERNAL).address(GATE_EXTERNAL),
            )?;
            Ok(None)
        })
    }

    /// The scene with a wire of the lab there, and files of so many bytes.
    pub(crate) fn through_lab(file: usize) -> Result<Self, Failure> {
        Self::join(file, |gate, servers| {
            let all: Vec<_> = SERVERS.iter().map(|address| format!("\"{address}/24\"")).collect();
            let scene = format!(
                "[lab]\nseed = 7\n[[wire]]\nbetween = [\n\
                 {{ name = \"gate\", namespace = \"{}\", interface = \"{EXTERNAL}\", \
                 address = \"{GATE_EXTERNAL}\" }},\n\
                 {{ name = \"servers\", namespace = \"{}\", interface = \"eth0\", \
                 address = [{}] }},\n]\n",
                gate.name(),
                servers.name(),
                all.join(", ")
            );
            Ok(Some(Lab::start(Path::new(NIGH), &scene)?))
        })
    }

    /// Builds the scene; `external` joins the gateway's namespace with the servers'.
    fn join(
        file: usize,
        external: impl FnOnce(&Namespace, &Namespace) -> Result<Option<Lab>, Failure>,
    ) -> Result<Self, Failure> {
        let clients = Namespace::new("clients")?;
        let gate = Namespace::new("gate")?;
        let servers = Namespace::new("servers")?;
        gate.forward()?;
        link(
            addresses(End::new(&clients, "eth0").queues(2), &CLIENTS),
            End::new(&gate, INTERNAL).queues(2).address("10.1.0.1/24"),
        )?;
        let lab = external(&gate, &servers)?;
        clients.check(&["ip", "route", "add", "default", "via", "10.1.0.1"])?;
        servers.check(&["ip", "route", "add", "default", "via", "10.2.0.1"])?;
        let folder = tempfile::tempdir()?;
        let echoes = Servers::of_echoes(&servers, REFUSED)?;
        let files = Servers::of_file(&servers, &SERVERS, noise(1, file))?;
        let bulk = Servers::of_bulk(&servers, SERVERS[0])?;
        Ok(Self { _served: [files, echoes, bulk], lab, clients, gate, servers, folder })
    }

    /// Has the gateway's work of receiving done by threads of the kernel, whose time can be read.
    pub(crate) fn receive_in_threads(&self) -> Result<Vec<u32>, Failure> {
        let mut threads = Vec::new();
        for end in [&self.clients, &self.servers] {
            // What comes from an end that makes super-packets, veth hands over at once instead.
            end.check(&["ethtool", "-K", "eth0", "tso", "off"])?;
        }
        for interface in [INTERNAL, EXTERNAL] {
            self.gate.check(&["ethtool", "-K", interface, "gro", "on"])?;
            // A namespace's interfaces are seen in a /sys of its own, which ip-netns(8) mounts.
            let line = format!("echo 1 > /sys/class/net/{interface}/threaded");
            let words = ["netns", "exec", self.gate.name(), "sh", "-c", &line];
            let done = Command::new("ip").args(words).output()?;
            if !done.status.success() {
                return Err(String::from_utf8_lossy(&done.stderr).into());
            }
            threads.extend(processor::receiving(interface)?);
        }
        if threads.is_empty() {
            return Err("the kernel receives in no threads".into());
        }
        Ok(threads)
    }

    /// Packets that the gateway has received from the clients.
    pub(crate) fn received(&self) -> Result<f64, Failure> {
        Ok(arrived(&self.gate, INTERNAL)?.0)
    }

    /// Has the kernel's filter drop all packets of the clients before routing, or no longer.
    pub(crate) fn drop_all(&self, on: bool) -> Result<(), Failure> {
        let what = if on { "-A" } else { "-D" };
        let words = ["iptables", "-w", "-t", "mangle", what, "PREROUTING", "-i", INTERNAL];
        self.gate.check(&[&words[..], &["-j", "DROP"]].concat())?;
        Ok(())
    }
}

/// Packets, and bytes with Ethernet's headers, that an interface has received; a super-packet is one.
pub(crate) fn arrived(namespace: &Namespace, interface: &str) -> Result<(f64, f64), Failure> {
    let text = namespace.check(&["ip", "-s", "-j", "link", "show", "dev", interface])?;
    let links: serde_json::Value = serde_json::from_str(&text)?;
    let count = |what: &str| links.pointer(&format!("/0/stats64/rx/{what}"))?.as_f64();
    Ok(count("packets").zip(count("bytes")).ok_or("ip(8) counts nothing")?)
}
