//! Opening a session.

use crate::{
    Config, ConnectError, PsockStream, channel::Channel, error::PathError, security,
    session::Session, socket, tls::Records,
};
use rustls::pki_types::ServerName;
use tokio::time::timeout;

/// Opens a session over the first path.
pub(crate) async fn connect(config: Config) -> Result<PsockStream, ConnectError> {
    let tls = security::connecting(&config.security)?;
    let Some(path) = config.paths.first() else {
        return Err(ConnectError::Config("there is no path"));
    };
    let limit = config.connect_timeout;
    let opening = async {
        let socket = socket::connect(path, &config).await?;
        let name = ServerName::IpAddress(path.remote.ip().into());
        let mut channel = Channel::new(socket, Records::connecting(&tls, name)?);
        channel.handshake().await?;
        Ok(channel)
    };
    let channel = match timeout(limit, opening).await.unwrap_or(Err(PathError::TimedOut)) {
        Ok(channel) => channel,
        Err(source) => {
            return Err(ConnectError::NoPath { limit, path: path.to_string(), source });
        }
    };
    let (socket, session) = Session::begin(channel)?;
    Ok(PsockStream::new(socket, session))
}
