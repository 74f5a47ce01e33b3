//! One session: the state machine of [`super::fsm`] joined to sockets and a clock, on the task of its BGP session.

use super::{
    BfdConfig, Listener, Observed, PORT,
    fsm::Fsm,
    socket::{self, Inbox},
};
use crate::clock::{now, until};
use socket2::{SockAddr, Socket};
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io,
    net::{IpAddr, SocketAddr},
};

/// A session with a neighbour.
#[derive(Debug)]
pub(crate) struct Session {
    name: String,
    fsm: Fsm,
    inbox: Inbox,
    socket: Socket,
    to: SockAddr,
}

impl Session {
    /// Begins a session of the upstream `name` with its neighbour `peer`.
    ///
    /// # Errors
    /// The port is taken, or `local` is no address of this host.
    pub(crate) fn open(
        name: &str,
        peer: IpAddr,
        local: Option<IpAddr>,
        config: BfdConfig,
        listener: &Listener,
    ) -> io::Result<Self> {
        let random = || RandomState::new().build_hasher().finish();
        Ok(Self {
            name: name.to_owned(),
            fsm: Fsm::new(config, random(), now()),
            inbox: listener.register(peer)?,
            socket: socket::sender(peer, local, random())?,
            to: SocketAddr::new(peer, PORT).into(),
        })
    }

    pub(crate) fn observed(&self) -> Observed {
        self.fsm.observed()
    }

    /// Runs until the state changes, and returns whether the neighbour is lost by that. Cancelling it loses nothing.
    pub(crate) async fn changed(&mut self) -> bool {
        loop {
            self.send();
            let (before, deadline) = (self.fsm.observed(), self.fsm.deadline());
            tokio::select! {
                Some(packet) = self.inbox.next() => {
                    self.fsm.receive(packet, now());
                }
                () = until(deadline) => self.fsm.tick(now()),
            }
            let Observed { state, diagnostic, failures, .. } = self.fsm.observed();
            if before.state != state {
                tracing::info!(upstream = self.name, from = %before.state, to = %state, %diagnostic, "BFD");
                return failures > before.failures;
            }
        }
    }

    /// Tells the neighbour that an operator has ended the session.
    pub(crate) fn stop(&mut self) {
        self.fsm.disable();
        self.send();
    }

    fn send(&mut self) {
        while let Some(packet) = self.fsm.transmit(now()) {
            // What the kernel does not take now is lost, as in the network.
            let _ = self.socket.send_to(&packet.encode(), &self.to);
        }
    }
}
