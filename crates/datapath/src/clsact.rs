//! Programs on an interface as filters of its clsact qdisc (tc-bpf(8)), for kernels without TCX.
//!
//! A filter belongs to no process: it stays until it is removed, or its interface is. It is known by its
//! name. One that is to go with its process is named at random, and the process has a Unix socket of
//! that name in the interface's network namespace; so the next process sees whose process was killed.
//!
//! Programs return TC_ACT_UNSPEC (-1, TCX_NEXT), after which the kernel tries the next filter.

use crate::{link::Hook, load, shaper::netlink::Netlink};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::{
    RouteNetlinkMessage as Message,
    tc::{
        TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcHeader, TcMessage,
        TcOption,
    },
};
use std::{
    io,
    os::{
        fd::{AsRawFd as _, BorrowedFd},
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram},
    },
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The qdisc's kind, handle and place (linux/pkt_sched.h, TC_H_CLSACT).
const KIND: &str = "clsact";
const HANDLE: TcHandle = TcHandle { major: 0xffff, minor: 0 };
const PLACE: TcHandle = TcHandle { major: 0xffff, minor: 0xfff1 };
/// The preference that the kernel gives to the first filter that has none of its own; to others it gives
/// lower ones.
const FIRST_PREFERENCE: u32 = 0xc000;

/// How long a filter stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Until its [`Filter`] is dropped, or the next one of its owner finds its process gone.
    Process,
    /// Until it is removed. An owner has one at each hook.
    Pinned,
}

/// A program on an interface, of the network namespace in which this was made.
#[derive(Debug)]
pub(crate) struct Filter {
    netlink: Mutex<Netlink>,
    ifindex: u32,
    hook: Hook,
    name: String,
    /// Says that the process lives.
    holder: Option<UnixDatagram>,
}

impl Filter {
    /// Puts a program behind the filters that are there already.
    pub(crate) fn attach(
        program: BorrowedFd<'_>,
        ifindex: u32,
        hook: Hook,
        owner: &str,
        life: Life,
    ) -> io::Result<Self> {
        let (name, holder) = match life {
            Life::Pinned => (name(owner), None),
            Life::Process => {
                let name = format!("{}-{:016x}", name(owner), load::random()?);
                let holder = hold(&name)?;
                (name, Some(holder))
            }
        };
        let mut netlink = Netlink::open()?;
        qdisc(&mut netlink, ifindex)?;
        let there = list(&mut netlink, ifindex, hook)?;
        if life == Life::Process {
            for orphan in there.iter().filter(|found| is_orphan(&found.name, owner)) {
                remove(&mut netlink, orphan)?;
            }
        }
        let filter = Self { netlink: Mutex::new(netlink), ifindex, hook, name, holder };
        // Left by a process that could not write it down.
        if there.iter().any(|found| found.name == filter.name) {
            filter.replace(program)?;
            return Ok(filter);
        }
        let last = there.iter().map(Found::preference).fold(FIRST_PREFERENCE, u32::max);
        let mut header = header(ifindex, hook);
        header.info = (last + 1).min(0xffff) << 16 | u32::from((libc::ETH_P_ALL as u16).to_be());
        let message = Message::NewTrafficFilter(filter.message(header, program));
        filter.netlink().request(message, NLM_F_CREATE | NLM_F_EXCL)?;
        Ok(filter)
    }

    /// The owner's filter that outlives processes, if there is one.
    pub(crate) fn find(ifindex: u32, hook: Hook, owner: &str) -> io::Result<Option<Self>> {
        let netlink = Mutex::new(Netlink::open()?);
        let filter = Self { netlink, ifindex, hook, name: name(owner), holder: None };
        Ok(filter.found()?.map(|_| filter))
    }

    /// Puts another program in its place at once: no packet goes without.
    pub(crate) fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let found = self.found()?.ok_or(io::ErrorKind::NotFound)?;
        let message = Message::NewTrafficFilter(self.message(found.header, program));
        self.netlink().request(message, NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// The interface that it is at; 0 if it is gone.
    pub(crate) fn interface(&self) -> u32 {
        if matches!(self.found(), Ok(Some(_))) { self.ifindex } else { 0 }
    }

    /// Takes it off, and the qdisc too if nothing is left there.
    pub(crate) fn remove(&self) {
        let removed = self.found().and_then(|found| match found {
            Some(found) => remove(&mut self.netlink(), &found),
            None => Ok(()),
        });
        if let Err(error) = removed {
            let Self { ifindex, name, .. } = self;
            tracing::warn!("cannot remove the filter {name} of interface {ifindex}: {error}");
        }
    }

    fn found(&self) -> io::Result<Option<Found>> {
        let there = list(&mut self.netlink(), self.ifindex, self.hook)?;
        Ok(there.into_iter().find(|found| found.name == self.name))
    }

    fn message(&self, header: TcHeader, program: BorrowedFd<'_>) -> TcMessage {
        let options = vec![
            TcOption::Bpf(TcFilterBpfOption::ProgFd(program.as_raw_fd() as u32)),
            TcOption::Bpf(TcFilterBpfOption::ProgName(self.name.clone())),
            // What the program returns is the verdict.
            TcOption::Bpf(TcFilterBpfOption::Flags(TcBpfFlags::DirectAction)),
        ];
        message(header, TcFilterBpf::KIND, Some(options))
    }

    fn netlink(&self) -> MutexGuard<'_, Netlink> {
        self.netlink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if self.holder.is_some() {
            self.remove();
        }
    }
}

/// A filter that the kernel has.
struct Found {
    header: TcHeader,
    /// That of its program, if it is one.
    name: String,
}

impl Found {
    fn preference(&self) -> u32 {
        self.header.info >> 16
    }
}

fn name(owner: &str) -> String {
    format!("nigh-{owner}")
}

/// Takes a name in this network namespace, for as long as the socket is open.
fn hold(name: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Whether this was to go with a process of the owner's, and that is gone.
fn is_orphan(filter: &str, owner: &str) -> bool {
    filter.starts_with(&format!("{}-", name(owner))) && hold(filter).is_ok()
}

/// Makes the qdisc unless it is there.
fn qdisc(netlink: &mut Netlink, ifindex: u32) -> io::Result<()> {
    let header =
        TcHeader { index: ifindex as i32, handle: HANDLE, parent: PLACE, ..TcHeader::default() };
    let new = Message::NewQueueDiscipline(message(header.clone(), KIND, None));
    match netlink.request(new, NLM_F_CREATE | NLM_F_EXCL) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
        result => return result,
    }
    // One of kind ingress is in the same place, and takes filters of egress for its own.
    let all = Message::GetQueueDiscipline(TcMessage::from_parts(header, Vec::new()));
    let kind = netlink.dump(all)?.into_iter().find_map(|message| match message {
        Message::NewQueueDiscipline(qdisc)
            if qdisc.header.index == ifindex as i32 && qdisc.header.parent == PLACE =>
        {
            kind(&qdisc)
        }
        _ => None,
    });
    match kind.as_deref() {
        Some(KIND) => Ok(()),
        _ => Err(io::Error::other(
            "it has a qdisc of kind ingress where clsact is needed (`tc qdisc show`)",
        )),
    }
}

/// The filters at a hook; none if there is no qdisc or interface.
fn list(netlink: &mut Netlink, ifindex: u32, hook: Hook) -> io::Result<Vec<Found>> {
    let all = TcMessage::from_parts(header(ifindex, hook), Vec::new());
    let found = netlink.dump(Message::GetTrafficFilter(all))?.into_iter();
    let filter = |message| match message {
        Message::NewTrafficFilter(filter) => {
            let name = program_name(&filter);
            Some(Found { header: filter.header, name })
        }
        _ => None,
    };
    Ok(found.filter_map(filter).collect())
}

/// Removes a filter, and the qdisc if that was the last one at either hook.
fn remove(netlink: &mut Netlink, found: &Found) -> io::Result<()> {
    let filter = message(found.header.clone(), TcFilterBpf::KIND, None);
    netlink.request(Message::DelTrafficFilter(filter), 0)?;
    let ifindex = found.header.index as u32;
    for hook in [Hook::Ingress, Hook::Egress] {
        if !list(netlink, ifindex, hook)?.is_empty() {
            return Ok(());
        }
    }
    let header =
        TcHeader { index: ifindex as i32, handle: HANDLE, parent: PLACE, ..TcHeader::default() };
    netlink.request(Message::DelQueueDiscipline(message(header, KIND, None)), 0)
}

fn header(ifindex: u32, hook: Hook) -> TcHeader {
    // linux/pkt_sched.h, TC_H_MIN_INGRESS and TC_H_MIN_EGRESS.
    let minor = match hook {
        Hook::Ingress => 0xfff2,
        Hook::Egress => 0xfff3,
    };
    let parent = TcHandle { major: 0xffff, minor };
    TcHeader { index: ifindex as i32, parent, ..TcHeader::default() }
}

fn message(header: TcHeader, kind: &str, options: Option<Vec<TcOption>>) -> TcMessage {
    let mut attributes = vec![TcAttribute::Kind(kind.into())];
    attributes.extend(options.map(TcAttribute::Options));
    TcMessage::from_parts(header, attributes)
}

fn kind(message: &TcMessage) -> Option<String> {
    message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.clone()),
        _ => None,
    })
}

fn program_name(filter: &TcMessage) -> String {
    let options = filter.attributes.iter().filter_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options),
        _ => None,
    });
    let name = options.flatten().find_map(|option| match option {
        TcOption::Bpf(TcFilterBpfOption::ProgName(name)) => Some(name.clone()),
        _ => None,
    });
    name.unwrap_or_default()
}
