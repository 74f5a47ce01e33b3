//! What stands behind each descriptor.
//!
//! A descriptor is made by [`open`] as a socket without peer, and keeps its number: when it gets a
//! session or listens, what it must be for poll(2) takes that place by dup2(2). A session's descriptor is the
//! application's end of a socket pair whose other end the protocol task holds; that of a listener is an epoll
//! instance (epoll(7)) that is readable while a session waits.

use crate::failure::Failure;
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags},
        socket::{AddressFamily, SockFlag, SockType, getsockopt, setsockopt, socket, sockopt},
    },
};
use psock::{Config, Local, Options, Path, PerProcess, PsockListener, PsockStream};
use std::{
    collections::HashMap,
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What a descriptor stands for.
#[derive(Clone)]
enum Handle {
    /// No session yet.
    New(Box<New>),
    Stream(Arc<PsockStream>),
    Listener(Arc<Listener>),
}

/// What was set of a descriptor without session.
#[derive(Clone, Default)]
struct New {
    options: Options,
    bound: Vec<SocketAddr>,
}

/// A listener, and what makes its descriptor readable.
struct Listener {
    listener: PsockListener,
    ready: Epoll,
}

/// A child of fork(2) knows none of its parent's.
static HANDLES: PerProcess<Mutex<HashMap<RawFd, Handle>>> = PerProcess::new();

fn handles() -> MutexGuard<'static, HashMap<RawFd, Handle>> {
    HANDLES.get().lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(fd: RawFd) -> Result<Handle, Failure> {
    let found = handles().get(&fd).cloned();
    found.ok_or_else(|| {
        Failure::new(Errno::EBADF, format!("descriptor {fd} does not belong to psock"))
    })
}

fn put(fd: RawFd, handle: Handle) {
    let before = handles().insert(fd, handle);
    // A session may end here, for which the table is not kept locked.
    drop(before);
}

/// A descriptor without session.
pub(crate) fn open() -> Result<RawFd, Failure> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?.into_raw_fd();
    put(fd, Handle::New(Box::default()));
    Ok(fd)
}

/// Changes what is set of a descriptor without session.
fn change(fd: RawFd, with: impl FnOnce(&mut New) -> Result<(), Failure>) -> Result<(), Failure> {
    match handles().get_mut(&fd) {
        Some(Handle::New(new)) => with(new),
        Some(_) => Err(Failure::new(Errno::EISCONN, "it is connected or listens already")),
        None => {
            Err(Failure::new(Errno::EBADF, format!("descriptor {fd} does not belong to psock")))
        }
    }
}

pub(crate) fn set(fd: RawFd, name: &str, value: &str) -> Result<(), Failure> {
    change(fd, |new| Ok(new.options.set(name, value)?))
}

pub(crate) fn bind(fd: RawFd, address: SocketAddr) -> Result<(), Failure> {
    change(fd, |new| {
        new.bound.push(address);
        Ok(())
    })
}

fn new(fd: RawFd) -> Result<Box<New>, Failure> {
    match find(fd)? {
        Handle::New(new) => Ok(new),
        _ => Err(Failure::new(Errno::EISCONN, "it is connected or listens already")),
    }
}

/// Opens a session over the paths that were set, and from what was bound to `to`.
pub(crate) fn connect(fd: RawFd, to: Option<SocketAddr>) -> Result<(), Failure> {
    let mut new = new(fd)?;
    if new.bound.iter().any(|bound| bound.port() != 0) {
        return Err(Failure::new(Errno::EINVAL, "an address to connect from has port 0"));
    }
    if let Some(remote) = to {
        let locals = new.bound.iter().map(|bound| Some(Local::Address(bound.ip())));
        let locals = locals.chain(new.bound.is_empty().then_some(None)).collect::<Vec<_>>();
        for local in locals {
            new.options.add_path(Path { local, remote });
        }
    }
    let stream = PsockStream::connect(&new.options.config()?)?;
    settle(fd, &stream)?;
    put(fd, Handle::Stream(Arc::new(stream)));
    Ok(())
}

/// Listens at what was bound.
pub(crate) fn listen(fd: RawFd, backlog: i32) -> Result<(), Failure> {
    let new = new(fd)?;
    let mut config: Config = new.options.config()?;
    config.limits.backlog = usize::try_from(backlog).unwrap_or_default().max(1);
    let listener = PsockListener::bind(&new.bound, &config)?;
    listener.set_nonblocking(true);
    let ready = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    ready.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    let flags = fcntl(borrow(fd), FcntlArg::F_GETFL)?;
    fcntl(&ready.0, FcntlArg::F_SETFL(OFlag::from_bits_retain(flags)))?;
    replace(fd, ready.0.as_fd())?;
    put(fd, Handle::Listener(Arc::new(Listener { listener, ready })));
    Ok(())
}

/// Waits for the next session unless the descriptor is set to not wait.
pub(crate) fn accept(fd: RawFd) -> Result<(RawFd, SocketAddr), Failure> {
    let Handle::Listener(listener) = find(fd)? else {
        return Err(Failure::new(Errno::EINVAL, "it does not listen"));
    };
    // Its number comes first: a session that is taken and has none would be lost.
    let place = listener.ready.0.as_fd().try_clone_to_owned()?;
    loop {
        match listener.listener.accept() {
            Ok((stream, peer)) => {
                if let Err(failure) = replace(place.as_raw_fd(), stream.as_fd()) {
                    stream.abort();
                    return Err(failure);
                }
                let fd = place.into_raw_fd();
                put(fd, Handle::Stream(Arc::new(stream)));
                return Ok((fd, peer));
            }
            Err(psock::AcceptError::WouldBlock) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = fcntl(&listener.ready.0, FcntlArg::F_GETFL)?;
        if OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK) {
            return Err(Errno::EAGAIN.into());
        }
        poll(&mut [PollFd::new(listener.ready.0.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE)?;
    }
}

/// The stream behind a descriptor.
pub(crate) fn stream(fd: RawFd) -> Result<Arc<PsockStream>, Failure> {
    match find(fd)? {
        Handle::Stream(stream) => Ok(stream),
        _ => Err(Failure::new(Errno::ENOTCONN, "it is not connected")),
    }
}

/// This end's address.
pub(crate) fn local(fd: RawFd) -> Result<SocketAddr, Failure> {
    let address = match find(fd)? {
        Handle::Stream(stream) => Some(stream.local()),
        Handle::Listener(listener) => listener.listener.local_addresses().first().copied(),
        Handle::New(new) => new.bound.first().copied(),
    };
    address.ok_or_else(|| Failure::new(Errno::EINVAL, "it has no address yet"))
}

/// Takes a descriptor out of the table and closes it; its session, if it has one, lives on in what is
/// returned.
pub(crate) fn close(fd: RawFd) -> Result<Option<Closed>, Failure> {
    let handle = handles().remove(&fd);
    let handle = handle.ok_or_else(|| {
        Failure::new(Errno::EBADF, format!("descriptor {fd} does not belong to psock"))
    })?;
    let flags = fcntl(borrow(fd), FcntlArg::F_GETFL)?;
    let waits = !OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK);
    nix::unistd::close(fd)?;
    Ok(match handle {
        Handle::Stream(stream) => Some(Closed { stream, waits }),
        _ => None,
    })
}

/// A session whose descriptor is closed; another thread may still be in a call with it.
pub(crate) struct Closed {
    pub(crate) stream: Arc<PsockStream>,
    /// Whether the descriptor was set to wait.
    pub(crate) waits: bool,
}

/// Puts a session's socket in the place of a descriptor without one, with what was set of that.
fn settle(fd: RawFd, stream: &PsockStream) -> Result<(), Failure> {
    let old = borrow(fd);
    let flags = fcntl(old, FcntlArg::F_GETFL)?;
    fcntl(stream, FcntlArg::F_SETFL(OFlag::from_bits_retain(flags)))?;
    setsockopt(stream, sockopt::ReceiveTimeout, &getsockopt(&old, sockopt::ReceiveTimeout)?)?;
    setsockopt(stream, sockopt::SendTimeout, &getsockopt(&old, sockopt::SendTimeout)?)?;
    replace(fd, stream.as_fd())
}

/// Lets a descriptor be another file; whether exec(2) closes it stays as it was.
fn replace(fd: RawFd, by: BorrowedFd<'_>) -> Result<(), Failure> {
    let flags = fcntl(borrow(fd), FcntlArg::F_GETFD)? & libc::FD_CLOEXEC;
    // SAFETY: dup3(2) takes two numbers; it closes what the caller's own descriptor was.
    let result =
        unsafe { libc::dup3(by.as_raw_fd(), fd, if flags == 0 { 0 } else { libc::O_CLOEXEC }) };
    Errno::result(result)?;
    Ok(())
}

/// The caller's descriptor for the time of a call.
fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: it is the caller's, who must not close it while a call with it is made (psock.h); at worst the
    // system says that it is none.
    unsafe { BorrowedFd::borrow_raw(fd) }
}
