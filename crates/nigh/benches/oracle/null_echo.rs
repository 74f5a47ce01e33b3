//! What sockets can carry: the same system calls, threads and cores as the oracle's, but a reply is the
//! request with the bit of a reply set.

use crate::generator::pin;
use datapath::mmsg::Exchange;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io,
    net::SocketAddr,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
};

/// Threads that echo, until dropped.
pub(crate) struct NullEcho {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl NullEcho {
    /// Begins to echo; to be called in the server's namespace.
    pub(crate) fn start(address: SocketAddr, threads: usize) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..threads)
            .map(|core| {
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
                socket.set_reuse_port(true)?;
                socket.bind(&address.into())?;
                let stop = Arc::clone(&stop);
                Ok(thread::spawn(move || echo(&socket, core, &stop)))
            })
            .collect::<io::Result<_>>()?;
        Ok(Self { stop, threads })
    }
}

impl Drop for NullEcho {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn echo(socket: &Socket, core: usize, stop: &AtomicBool) {
    pin(core);
    let mut exchange = Exchange::new(2048);
    while !stop.load(Relaxed) {
        if exchange.receive(socket.as_fd()).is_err() {
            let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, PollTimeout::from(20u8));
            continue;
        }
        exchange.answer(|_, request, _, reply| {
            reply.clear();
            reply.extend_from_slice(request);
            if let Some(byte) = reply.get_mut(2) {
                *byte |= 0x80;
            }
        });
        exchange.send(socket.as_fd(), |_, _| {});
    }
}
