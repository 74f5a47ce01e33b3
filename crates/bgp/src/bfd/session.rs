//! One session: the state machine of [`super::fsm`] joined to sockets and a clock, on the task of its BGP session.

use super::{
    BfdConfig, Listener, Observed, PORT,
    fsm::Fsm,
    socket::{self, Inbox, Place},
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
    config: BfdConfig,
    place: Place,
    socket: Socket,
    to: SockAddr,
    /// None until no other session has the neighbour.
    running: Option<(Fsm, Inbox)>,
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
        Ok(Self {
            name: name.to_owned(),
            config,
            place: listener.place(peer)?,
            socket: socket::sender(peer, local, random())?,
            to: SocketAddr::new(peer, PORT).into(),
            running: None,
        })
    }

    pub(crate) fn observed(&self) -> Observed {
        self.running.as_ref().map(|(fsm, _)| fsm.observed()).unwrap_or_default()
    }

    /// Runs until something changes that can be observed, and returns whether the neighbour is lost by that.
    /// Cancelling it loses nothing.
    pub(crate) async fn changed(&mut self) -> bool {
        let (fsm, inbox) = match &mut self.running {
            Some(running) => running,
            none => {
                let inbox = self.place.take().await;
                none.insert((Fsm::new(self.config, random(), now()), inbox))
            }
        };
        loop {
            send(fsm, &self.socket, &self.to);
            let before = fsm.observed();
            tokio::select! {
                Some(packet) = inbox.next() => {
                    fsm.receive(packet, now());
                }
                () = until(fsm.deadline()) => {
                    // The thread may have stood still while the neighbour's packets arrived.
                    while let Some(packet) = inbox.arrived() {
                        fsm.receive(packet, now());
                    }
                    fsm.tick(now());
                }
            }
            let after = fsm.observed();
            if before != after {
                // What has changed is said at once (RFC 5880 section 6.8.7).
                send(fsm, &self.socket, &self.to);
                if before.state != after.state {
                    let (from, to, diagnostic) = (before.state, after.state, after.diagnostic);
                    tracing::info!(upstream = self.name, %from, %to, %diagnostic, "BFD");
                }
                return after.failures > before.failures;
            }
        }
    }

    /// Tells the neighbour that an operator has ended the session.
    pub(crate) fn stop(&mut self) {
        if let Some((fsm, _)) = &mut self.running {
            fsm.disable();
            send(fsm, &self.socket, &self.to);
        }
    }
}

fn send(fsm: &mut Fsm, socket: &Socket, to: &SockAddr) {
    while let Some(packet) = fsm.transmit(now()) {
        // What the kernel does not take now is lost, as in the network.
        let _ = socket.send_to(&packet.encode(), to);
    }
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
