//! The options that the sub-commands share, and the session that they choose.

use super::CommandError;
use crate::{Config, DriverName, Path, PresharedKey, PsockListener, PsockStream, Security};
use clap::Args;
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// Which end of a session this is, and how it is run.
#[derive(Clone, Debug, Args)]
#[group(required = false)]
pub struct EndArgs {
    /// Connect over this path; repeat it for each. From an address or an interface:
    /// `10.0.1.1>192.0.2.1:7000`, `%eth0>192.0.2.1:7000` (in quotes, for the shell)
    #[arg(long, value_name = "[FROM>]ADDRESS:PORT", required_unless_present = "listen")]
    pub path: Vec<Path>,
    /// Listen at this address instead; repeat it for each
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "path")]
    pub listen: Vec<SocketAddr>,
    /// Who the other end must be.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// How the session is run.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// Who the other end must be.
#[derive(Clone, Debug, Args)]
#[group(id = "protection", required = true, args = ["key", "authority", "plain"])]
pub struct SecurityArgs {
    /// File with the key that both ends hold (`nigh psock key` makes one)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// File with the certificates of the authority that has signed both ends' (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate", requires = "private_key")]
    pub authority: Option<PathBuf>,
    /// File with this end's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "authority")]
    pub certificate: Option<PathBuf>,
    /// File with this end's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "authority")]
    pub private_key: Option<PathBuf>,
    /// The name that the other end's certificate must hold [default: the address connected to]
    #[arg(long, value_name = "NAME", requires = "authority")]
    pub name: Option<String>,
    /// Neither encrypt nor ask who the other end is
    #[arg(long)]
    pub plain: bool,
}

/// How a session is run.
#[derive(Clone, Debug, Args)]
pub struct SessionArgs {
    /// How blocks are spread over the connections: adaptive, poll-all or round-robin; the
    /// connecting end's choice holds for both
    #[arg(long, value_name = "DRIVER", default_value = "adaptive")]
    pub driver: DriverName,
    /// Data connections on each path
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub connections: u16,
    /// Congestion control of this end's connections, such as cubic or bbr [default: the system's]
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Memory for what has come before its turn, and as much for what is not acknowledged yet
    #[arg(long, value_name = "MIB", default_value_t = 32,
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub window: u16,
    /// How long the session waits for a path to return when all are dead
    #[arg(long, value_name = "TIME", default_value = "60s",
          value_parser = humantime::parse_duration)]
    pub survive: Duration,
    /// How long to wait for the first path to answer
    #[arg(long, value_name = "TIME", default_value = "10s",
          value_parser = humantime::parse_duration)]
    pub connect_timeout: Duration,
}

impl EndArgs {
    /// The configuration that they choose.
    pub(super) fn config(&self) -> Result<Config, CommandError> {
        let mut config = Config::new(self.security.security()?);
        let session = &self.session;
        config.paths = self.path.clone();
        config.driver = session.driver;
        config.connections_per_path = session.connections;
        config.congestion = session.congestion.clone();
        config.window_bytes = usize::from(session.window) << 20;
        config.send_bytes = config.window_bytes;
        config.survive = session.survive;
        config.connect_timeout = session.connect_timeout;
        Ok(config)
    }

    /// The one session of a transfer: connected, or the first that comes.
    pub(super) fn open(&self) -> Result<PsockStream, CommandError> {
        let config = self.config()?;
        if self.listen.is_empty() {
            return Ok(PsockStream::connect(&config)?);
        }
        let listener = PsockListener::bind(&self.listen, &config)?;
        Ok(listener.accept()?.0)
    }
}

impl SecurityArgs {
    fn security(&self) -> Result<Security, CommandError> {
        if let Some(file) = &self.key {
            return Ok(Security::Key(PresharedKey::from_file(file)?));
        }
        match (&self.authority, &self.certificate, &self.private_key) {
            (Some(authority), Some(certificate), Some(key)) => Ok(Security::Certificates {
                authority: authority.clone(),
                certificate: certificate.clone(),
                key: key.clone(),
                name: self.name.clone(),
            }),
            // The command line takes nothing else than --plain here.
            _ => Ok(Security::Plain),
        }
    }
}
