//! The connecting end: connect(2) to the address of a path opens a session.

use crate::{
    call::Call,
    live::{self, Live},
    names,
    pairs::{self, Kind, Pair},
    real, setup,
};
use libc::c_int;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use psock::PsockStream;
use socket2::{SockAddr, SockRef};
use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
};

/// Opens a session for a socket of the program, and joins the two; waits for it on a non-blocking socket too.
pub(crate) fn connect(fd: c_int, to: SocketAddr) -> io::Result<Call> {
    let Some(setup) = setup::get()? else { return Ok(Call::Pass) };
    let to = names::plain(to);
    if !setup.paths().iter().any(|path| path.remote == to) || !names::is_tcp(fd) {
        return Ok(Call::Pass);
    }
    // The C library knows what to say of a socket that is connected.
    if names::kernel_peer(fd).is_some() {
        return Ok(Call::Pass);
    }
    pairs::prepare()?;
    let live = Live::new();
    let stream = PsockStream::connect(setup.config()?)?;
    let (peer, local) = (stream.peer(), stream.local());
    let met = meet(fd).and_then(|(socket, port)| Ok((socket.local_addr()?.port(), socket, port)));
    let (other, socket, port) = match met {
        Ok(met) => met,
        Err(error) => {
            // The peer must not take it for a session without bytes.
            stream.abort();
            return Err(error);
        }
    };
    pairs::put(port, Pair { kind: Kind::Connected, other, peer, local });
    live::carry(live, stream, socket)?;
    Ok(Call::Done(0))
}

/// Connects a socket of the program with one of ours over loopback; returns ours, and the program's port.
fn meet(fd: c_int) -> io::Result<(TcpStream, u16)> {
    let only_v6 = names::is_ipv6(fd) && SockRef::from(&names::borrow(fd)).only_v6()?;
    let listener = match only_v6 {
        true => TcpListener::bind((Ipv6Addr::LOCALHOST, 0))?,
        false => TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?,
    };
    let address = SockAddr::from(names::shown(fd, listener.local_addr()?));
    let program = names::borrow(fd);
    let flags = OFlag::from_bits_retain(fcntl(program, FcntlArg::F_GETFL)?);
    fcntl(program, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
    // SAFETY: the address and its length belong together.
    let result = unsafe { real::connect(fd, address.as_ptr().cast(), address.len()) };
    let error = io::Error::last_os_error();
    fcntl(program, FcntlArg::F_SETFL(flags))?;
    if result < 0 {
        return Err(error);
    }
    let own = names::kernel_local(fd).ok_or(ErrorKind::NotConnected)?;
    loop {
        let (socket, peer) = listener.accept()?;
        // Other processes can connect to loopback as well.
        if names::plain(peer) == names::plain(own) {
            socket.set_nodelay(true)?;
            return Ok((socket, own.port()));
        }
    }
}
