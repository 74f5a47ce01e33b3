//! The options that the sub-commands share, and the session that they choose.

use super::{CommandError, log};
use crate::{
    Config, DriverName, Endpoint, Options, Path, PsockListener, PsockStream,
    options::{CONNECTIONS, window},
};
use clap::{
    Args,
    builder::{PossibleValuesParser, RangedI64ValueParser, TypedValueParser},
};
use permits::Lines;
use std::{
    ops::RangeInclusive,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Which end of a session this is, and how it is run.
#[derive(Clone, Debug, Args)]
#[group(required = false)]
pub struct EndArgs {
    /// Connect over this path; repeat it for each. From an address or an interface:
    /// `10.0.1.1>192.0.2.1:7000`, `%eth0>192.0.2.1:7000` (in quotes, for the shell)
    #[arg(long, value_name = "[FROM>]ADDRESS:PORT", required_unless_present = "listen")]
    pub path: Vec<Path>,
    /// Listen at this address instead; repeat it for each. To accept only through one interface:
    /// `%eth0>0.0.0.0:7000`
    #[arg(long, value_name = "[%INTERFACE>]ADDRESS:PORT", conflicts_with = "path")]
    pub listen: Vec<Endpoint>,
    /// How the other end is authenticated.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// How the session is run.
    #[command(flatten)]
    pub session: SessionArgs,
}

/// How the other end is authenticated.
#[derive(Clone, Debug, Args)]
#[group(id = "protection", required = true, args = ["key", "authority", "plain"])]
pub struct SecurityArgs {
    /// File with the key of both ends (`nigh psock key` makes one)
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// File with the certificates of the authority that signed those of both ends (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate", requires = "private_key")]
    pub authority: Option<PathBuf>,
    /// File with this end's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "authority")]
    pub certificate: Option<PathBuf>,
    /// File with this end's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "authority")]
    pub private_key: Option<PathBuf>,
    /// The name that the other end's certificate must have [default: the address connected to]
    #[arg(long, value_name = "NAME", requires = "authority")]
    pub name: Option<String>,
    /// Neither encrypt nor authenticate
    #[arg(long)]
    pub plain: bool,
}

/// How a session is run.
#[derive(Clone, Debug, Args)]
pub struct SessionArgs {
    /// How blocks are spread over the connections; the connecting end's choice holds for both
    /// [default: adaptive]
    #[arg(long, value_name = "DRIVER", value_parser = drivers())]
    pub driver: Option<DriverName>,
    /// Data connections on each path, 1 to 64 [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = within(&CONNECTIONS))]
    pub connections: Option<u16>,
    /// Congestion control of this end's connections, such as cubic or bbr [default: the system's]
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Memory for data received out of order, and as much for unacknowledged data
    /// [default: 32MiB]
    #[arg(long, value_name = "BYTES", value_parser = window)]
    pub window: Option<usize>,
    /// How long the session waits for a path to return when all have failed [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub survive: Option<Duration>,
    /// How long to wait for the first path to answer [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub connect_timeout: Option<Duration>,
    /// How long a path may be silent, while an answer is due, before it counts as failed [default: 3s]
    #[arg(long, value_name = "TIME", value_parser = config::duration)]
    pub path_timeout: Option<Duration>,
    /// Make paths also to the addresses that the other end listens at and announces
    #[arg(long, conflicts_with = "listen")]
    pub follow_announced: bool,
}

/// Takes the name of a driver.
fn drivers() -> impl TypedValueParser<Value = DriverName> {
    PossibleValuesParser::new(DriverName::ALL.map(DriverName::as_str))
        .try_map(|name| name.parse::<DriverName>())
}

/// Takes the numbers that the option of the same name takes.
fn within(range: &RangeInclusive<u16>) -> RangedI64ValueParser<u16> {
    RangedI64ValueParser::new().range(i64::from(*range.start())..=i64::from(*range.end()))
}

impl EndArgs {
    /// The configuration that they choose.
    pub(super) fn config(&self) -> Result<Config, CommandError> {
        let (security, session) = (self.security.clone(), self.session.clone());
        let options = Options {
            paths: self.path.clone(),
            key: security.key,
            authority: security.authority,
            certificate: security.certificate,
            private_key: security.private_key,
            name: security.name,
            plain: security.plain,
            driver: session.driver,
            connections: session.connections,
            congestion: session.congestion,
            window_bytes: session.window,
            survive: session.survive,
            connect_timeout: session.connect_timeout,
            path_timeout: session.path_timeout,
            follow_announced: session.follow_announced,
        };
        Ok(options.config()?)
    }

    /// The one session of a transfer: connected, or the first that comes.
    pub(super) fn open(&self) -> Result<PsockStream, CommandError> {
        let config = self.config()?;
        if self.listen.is_empty() {
            return Ok(PsockStream::connect(&config)?);
        }
        Ok(self.listener(&config)?.accept()?.0)
    }

    /// Listens, and prints refused peers.
    pub(super) fn listener(&self, config: &Config) -> Result<PsockListener, CommandError> {
        let listener = PsockListener::bind(&self.listen, config)?;
        let refusals = Mutex::new(Lines::default());
        listener.on_refused(move |from, why| {
            let mut refusals = refusals.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(line) = refusals.line(Instant::now(), format!("refused {from}: {why}")) {
                log(&line);
            }
        });
        Ok(listener)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_size_and_a_number_alone_is_mib() {
        for (text, bytes) in [("32M", 32_000_000), ("8MiB", 8 << 20), ("8", 8 << 20)] {
            assert_eq!(window(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "0", "-1", "4097", "100K", "5GiB", "32Mbit"] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }
}
