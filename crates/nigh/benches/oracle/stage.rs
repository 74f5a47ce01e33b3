//! A server and two client networks in namespaces, and the oracle with one of the networks of *The P2P-Oracle Server*.

use crate::NIGH;
use std::{
    error::Error,
    io::{BufWriter, Write},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};
use testbed::{End, Namespace, Nigh, Receiver, link};
use topo::{Options, generate};

/// The oracle's address for clients of the network that the tests of *The P2P-Oracle Server* ask from, and for the other one.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(130, 149, 221, 1);
pub(crate) const OTHER: Ipv4Addr = Ipv4Addr::new(130, 149, 1, 1);
/// Where the oracle listens.
pub(crate) const ORACLE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(SERVER), 8899);

/// Namespaces and links; the interfaces of the server are `here` and `there`.
pub(crate) struct Stage {
    pub(crate) server: Namespace,
    pub(crate) client: Namespace,
    pub(crate) unknown: Namespace,
    /// Let the clients' ends take what the driver sends.
    _receivers: [Receiver; 2],
}

impl Stage {
    pub(crate) fn build() -> Result<Self, Box<dyn Error>> {
        let server = Namespace::new("server")?;
        let (client, unknown) = (Namespace::new("client")?, Namespace::new("unknown")?);
        for (name, address, asker, asks) in [
            ("here", "130.149.221.1/24", &client, "130.149.221.2/24"),
            ("there", "130.149.1.1/24", &unknown, "130.149.1.2/24"),
        ] {
            link(End::new(&server, name).address(address), End::new(asker, "up").address(asks))?;
        }
        let receivers = [Receiver::new(&client, "up")?, Receiver::new(&unknown, "up")?];
        Ok(Self { server, client, unknown, _receivers: receivers })
    }

    /// Starts the oracle with a network, and with what else `[oracle]` is to hold.
    pub(crate) fn oracle(&self, network: &Path, more: &str) -> Result<Nigh, Box<dyn Error>> {
        let sections = format!(
            "[oracle]\nlisten = [\"0.0.0.0:8899\"]\n{more}\n\
             [oracle.topology]\nfile = \"{}\"\n",
            network.display()
        );
        let nigh = Nigh::start(&self.server, Path::new(NIGH), "bench", &sections)?;
        Ok(nigh)
    }
}

/// Writes a network to a file that the oracle can load.
pub(crate) fn write(
    network: &generate::Network,
    folder: &Path,
    name: &str,
) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join(name).with_extension("toml");
    let builder = network.builder(Options::default());
    let mut file = BufWriter::new(std::fs::File::create(&path)?);
    topo::dump::toml(builder.topology(), &mut file)?;
    file.flush()?;
    Ok(path)
}
