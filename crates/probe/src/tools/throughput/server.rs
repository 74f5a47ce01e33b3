//! The station that serves a test: once, for who has the token, for a bounded time.

use super::{
    BindError, Ends, Error, Settings, Token, Transport,
    connection::{Control, Door},
    control::{Message, Role},
    psock, tcp, udp, within,
};
use crate::{
    record::Throughput,
    tools::context::{Context, Refusal},
};
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpListener;

/// A test that this station has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its secret.
    pub token: Token,
    /// What it is to be.
    pub settings: Settings,
    /// The address of the station that will connect.
    pub from: IpAddr,
}

/// Serves one test.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    accepted: Accepted,
}

impl Server {
    /// Listens at any port of an address that is free.
    ///
    /// # Errors
    /// When the settings are out of their limits or the system refuses.
    pub async fn bind(address: IpAddr, accepted: Accepted) -> Result<Self, BindError> {
        if let Some(problem) = accepted.settings.problems().into_iter().next() {
            return Err(BindError::Settings(problem));
        }
        let failed = |source| BindError::Listen { address, source };
        let listener = TcpListener::bind((address, 0)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, accepted })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does the test with who comes for it.
    ///
    /// # Errors
    /// When nobody comes in time, or the test fails.
    pub async fn serve(self, context: &Context) -> Result<Throughput, Error> {
        context.check(self.accepted.from)?;
        let limit = self.accepted.settings.longest();
        tokio::time::timeout(limit, self.serve_once(context))
            .await
            .unwrap_or(Err(Error::Timeout { limit }))
    }

    async fn serve_once(self, context: &Context) -> Result<Throughput, Error> {
        let Accepted { token, settings, from } = self.accepted;
        let mut door = Door::new(self.listener, token, from, context.clone());
        let mut control = Control::new(within(door.next(Role::Control)).await?);
        match within(control.hear(context)).await? {
            Message::Hello { settings: wanted } if wanted == settings => {}
            Message::Hello { .. } => {
                context.counters.refuse(Refusal::Control);
                let reason = "another test was accepted".to_owned();
                control.send(&Message::Refused { reason }).await?;
                return Err(Error::NotAccepted);
            }
            other => return Err(Error::unexpected(&other, context)),
        }
        if settings.reverse
            && let Err(error) =
                tcp::set_congestion(control.stream(), settings.congestion.as_deref())
        {
            control.send(&Message::Refused { reason: error.to_string() }).await?;
            return Err(error);
        }
        let ends = Ends { sends: settings.reverse, settings: &settings, context };
        match settings.transport {
            Transport::Tcp => {
                control.send(&Message::Ready { port: self.address.port() }).await?;
                let mut streams = Vec::new();
                for _ in 0..settings.streams {
                    streams.push(within(door.next(Role::Data)).await?);
                }
                tcp::exchange(&ends, &mut control, streams).await
            }
            Transport::Psock => {
                let listener = match psock::listen(self.address.ip(), &token, &ends).await {
                    Ok(listener) => listener,
                    Err(error) => {
                        control.send(&Message::Refused { reason: error.to_string() }).await?;
                        return Err(Error::Listen(error));
                    }
                };
                let port = listener.local_addresses().first().map_or(0, SocketAddr::port);
                control.send(&Message::Ready { port }).await?;
                let stream = psock::accept(&listener).await?;
                psock::exchange(&ends, &mut control, stream).await
            }
            Transport::Udp => {
                let failed = |source| Error::Data { peer: from, source };
                let door = udp::door(self.address.ip()).map_err(failed)?;
                let port = door.local_addr().map_err(failed)?.port();
                control.send(&Message::Ready { port }).await?;
                let socket = udp::heard(door, from, &token, &ends).await?;
                control.send(&Message::Heard {}).await?;
                udp::exchange(&ends, &mut control, socket, &token).await
            }
        }
    }
}
