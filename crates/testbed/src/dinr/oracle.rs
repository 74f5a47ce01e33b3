//! An oracle in ISP_A: a host at ISP_A's router with FRR, which hears all of the router's routes by BGP
//! and tells them over BMP, and `nigh run`, which hears them and answers everybody in the internet.

use super::{Internet, ORACLE_ROUTER4, ORACLE4};
use crate::{End, Error, Frr, Namespace, Nigh, folder, link};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// The AS in which it is.
const ISP_A: u32 = 4;

/// ISP_A as its operator describes it: one router.
const NETWORK: &str = r#"
[[router]]
id = "4.0.0.1"
name = "ISP_A"

[[internal]]
prefix = "4.0.0.0/8"
router = "4.0.0.1"
"#;

/// The host with FRR and `nigh run`.
#[derive(Debug)]
pub struct Oracle {
    nigh: Nigh,
    _frr: Frr,
    _files: TempDir,
    _host: Namespace,
}

impl Oracle {
    /// Puts the host at ISP_A's router and starts FRR and `nigh run`. The routes follow by
    /// themselves.
    ///
    /// # Errors
    ///
    /// As [`Nigh::start`] and [`Frr::start`].
    pub fn start(internet: &Internet, binary: &Path) -> Result<Self, Error> {
        let host = Namespace::new("isp-a-oracle")?;
        link(
            End::new(&internet.router(ISP_A).namespace, "oracle")
                .address(&format!("{ORACLE_ROUTER4}/24")),
            End::new(&host, "eth0").address(&format!("{ORACLE4}/24")),
        )?;
        host.check(&["ip", "route", "add", "default", "via", ORACLE_ROUTER4])?;
        let files = folder::new()?;
        let file = files.path().join("network.toml");
        fs::write(&file, NETWORK).map_err(|error| Error::new("writing network.toml", error))?;
        let nigh = Nigh::start(&host, binary, "oracle", &sections(&file))?;
        let frr = Frr::start_with(&host, &configuration(), &["-M", "bmp"])?;
        Ok(Self { nigh, _frr: frr, _files: files, _host: host })
    }

    /// Where the daemon's control socket is, for `--socket`.
    pub fn socket(&self) -> PathBuf {
        self.nigh.socket()
    }
}

fn sections(file: &Path) -> String {
    format!(
        "[oracle]\ncost = \"as_distance\"\n[oracle.topology]\nfile = \"{}\"\n[oracle.bmp]\n\
         [[oracle.bmp.router]]\naddress = \"127.0.0.1\"\nrouter = \"{ORACLE_ROUTER4}\"\n\
         internal = \"next-hop\"\n",
        file.display()
    )
}

fn configuration() -> String {
    format!(
        "frr defaults traditional
hostname oracle
router bgp {ISP_A}
 bgp router-id {ORACLE4}
 neighbor {ORACLE_ROUTER4} remote-as {ISP_A}
 neighbor {ORACLE_ROUTER4} timers connect 1
 address-family ipv4 unicast
  neighbor {ORACLE_ROUTER4} soft-reconfiguration inbound
 exit-address-family
 bmp targets nigh
  bmp monitor ipv4 unicast pre-policy
  bmp connect 127.0.0.1 port 11019 min-retry 100 max-retry 500
 exit
"
    )
}
