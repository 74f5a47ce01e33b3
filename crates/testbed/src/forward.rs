//! TCP connections from one namespace into another, as a management network would carry them.

use crate::{
    Error, Namespace,
    namespace::{Handle, enter},
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::{
    io,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

/// Longest time between the drop of a [`Forward`] and its end, in milliseconds.
const POLL_MS: u16 = 50;

/// Accepts connections here and continues them there; ends when dropped.
#[derive(Debug)]
pub struct Forward {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Forward {
    /// Listens at 127.0.0.1 and continues each connection at 127.0.0.1:`to_port` of another namespace.
    ///
    /// It listens in namespace `here`, or where the caller is without one, at `port`, or at any port
    /// that is free when that one is not.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub fn start(
        here: Option<&Namespace>,
        port: u16,
        there: &Namespace,
        to_port: u16,
    ) -> Result<Self, Error> {
        let failed = |error| Error::new(format!("forwarding to {}", there.name()), error);
        let listen = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
                .or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = here.map_or_else(listen, |here| here.enter(listen)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let there = there.handle().map_err(failed)?;
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                let mut ready = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
                let _ = poll(&mut ready, PollTimeout::from(POLL_MS));
                if let Ok((client, _)) = listener.accept() {
                    forward(client, &there, to_port);
                }
            }
        });
        Ok(Self { address, ended, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Continues one connection, or closes it when nobody listens there.
fn forward(client: TcpStream, there: &Handle, port: u16) {
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let Ok(server) = enter(there, connect) else { return };
    std::thread::spawn(move || {
        let copy = |mut from: &TcpStream, mut to: &TcpStream| {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        };
        if client.set_nonblocking(false).is_ok() {
            std::thread::scope(|scope| {
                scope.spawn(|| copy(&client, &server));
                copy(&server, &client);
            });
        }
    });
}
