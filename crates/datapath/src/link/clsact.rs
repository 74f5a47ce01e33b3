//! Programs on an interface as filters of its clsact qdisc (tc-bpf(8)), for kernels without TCX.
//!
//! A filter belongs to no process: it stays until it is removed, or its interface is. It is known by its
//! name. One that is to go with its process is named at random, and the process has a Unix socket of
//! that name in the interface's network namespace; so the next process sees whose process was killed.
//!
//! On Linux 6.1 a program cannot send packets through an IFB device; the action mirred (tc-mirred(8))
//! of a filter behind it can.
//!
//! Programs return TC_ACT_UNSPEC (-1, TCX_NEXT), after which the kernel tries the next filter.

use super::Hook;
use crate::{load, shaper::netlink::Netlink};
use netlink_packet_core::{DefaultNla, Emitable as _, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::{
    RouteNetlinkMessage as Message,
    tc::{
        TcAction, TcActionAttribute, TcActionMirror, TcActionMirrorOption, TcActionOption,
        TcActionType, TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcHeader,
        TcMessage, TcMirror, TcOption,
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
/// The actions of a filter (linux/pkt_cls.h, TCA_BPF_ACT).
const ACTIONS: u16 = 1;
/// What follows a filter's name in the name of the one behind it that sends packets through a device.
const BEHIND: &str = "/through";
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
        // First, as the qdisc goes with the last filter.
        if life == Life::Process {
            let there = list(&mut netlink, ifindex, hook)?;
            for orphan in there.iter().filter(|found| is_orphan(&found.name, owner)) {
                remove(&mut netlink, orphan)?;
            }
        }
        qdisc(&mut netlink, ifindex)?;
        let filter = Self { netlink: Mutex::new(netlink), ifindex, hook, name, holder };
        filter.put(&filter.name, verdicts(program))?;
        Ok(filter)
    }

    /// The owner's filter that outlives processes, if there is one.
    pub(crate) fn find(ifindex: u32, hook: Hook, owner: &str) -> io::Result<Option<Self>> {
        let netlink = Mutex::new(Netlink::open()?);
        let filter = Self { netlink, ifindex, hook, name: name(owner), holder: None };
        Ok(filter.found(&filter.name)?.map(|_| filter))
    }

    /// Puts another program in its place at once: no packet goes without.
    pub(crate) fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        self.put(&self.name, verdicts(program))
    }

    /// Sends packets that a program wants (it returns -1, or 0 for others) through a device after this
    /// filter.
    pub(crate) fn send_through(&self, device: u32, wants: BorrowedFd<'_>) -> io::Result<()> {
        let mut mirror = TcMirror::default();
        mirror.generic.action = TcActionType::Stolen;
        mirror.ifindex = device;
        let mut action = TcAction::default();
        action.attributes = vec![
            TcActionAttribute::Kind(TcActionMirror::KIND.into()),
            TcActionAttribute::Options(vec![TcActionOption::Mirror(TcActionMirrorOption::Parms(
                mirror,
            ))]),
        ];
        let actions = [action];
        let mut bytes = vec![0; actions.as_slice().buffer_len()];
        actions.as_slice().emit(&mut bytes);
        let action = TcFilterBpfOption::Other(DefaultNla::new(ACTIONS, bytes));
        self.put(&self.behind(), vec![program_fd(wants), TcOption::Bpf(action)])
    }

    /// Sends nothing through a device any more.
    pub(crate) fn send_nowhere(&self) -> io::Result<()> {
        self.take(&self.behind())
    }

    /// The interface that it is at; 0 if it is gone.
    pub(crate) fn interface(&self) -> u32 {
        if matches!(self.found(&self.name), Ok(Some(_))) { self.ifindex } else { 0 }
    }

    /// Takes it off, and the qdisc too if nothing is left there.
    pub(crate) fn remove(&self) {
        if let Err(error) = self.take(&self.name).and_then(|()| self.send_nowhere()) {
            let Self { ifindex, name, .. } = self;
            tracing::warn!("cannot remove the filter {name} of interface {ifindex}: {error}");
        }
    }

    /// Puts a filter in the place of the one of that name, or behind all that are there.
    fn put(&self, name: &str, mut options: Vec<TcOption>) -> io::Result<()> {
        options.push(TcOption::Bpf(TcFilterBpfOption::ProgName(name.into())));
        let there = list(&mut self.netlink(), self.ifindex, self.hook)?;
        let (header, flag) = match there.iter().find(|found| found.name == name) {
            Some(found) => (found.header.clone(), NLM_F_REPLACE),
            None => {
                let last = there.iter().map(|found| found.header.info >> 16);
                let preference = (last.fold(FIRST_PREFERENCE, u32::max) + 1).min(0xffff);
                let all = u32::from((libc::ETH_P_ALL as u16).to_be());
                let header = header(self.ifindex, self.hook);
                (TcHeader { info: preference << 16 | all, ..header }, NLM_F_EXCL)
            }
        };
        let filter = message(header, TcFilterBpf::KIND, Some(options));
        self.netlink().request(Message::NewTrafficFilter(filter), NLM_F_CREATE | flag)
    }

    /// Removes the filter of that name, if it is there.
    fn take(&self, name: &str) -> io::Result<()> {
        match self.found(name)? {
            Some(found) => remove(&mut self.netlink(), &found),
            None => Ok(()),
        }
    }

    fn found(&self, name: &str) -> io::Result<Option<Found>> {
        let there = list(&mut self.netlink(), self.ifindex, self.hook)?;
        Ok(there.into_iter().find(|found| found.name == name))
    }

    fn behind(&self) -> String {
        format!("{}{BEHIND}", self.name)
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

fn name(owner: &str) -> String {
    format!("nigh-{owner}")
}

/// Takes a name in this network namespace, for as long as the socket is open.
fn hold(name: &str) -> io::Result<UnixDatagram> {
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// Whether this was to go with a process of the owner's, and that is gone.
fn is_orphan(filter: &str, owner: &str) -> bool {
    let filter = filter.strip_suffix(BEHIND).unwrap_or(filter);
    filter.starts_with(&format!("{}-", name(owner))) && hold(filter).is_ok()
}

/// Makes the qdisc unless it is there.
fn qdisc(netlink: &mut Netlink, ifindex: u32) -> io::Result<()> {
    let header = qdisc_header(ifindex);
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
    let qdisc = message(qdisc_header(ifindex), KIND, None);
    netlink.request(Message::DelQueueDiscipline(qdisc), 0)
}

/// Options of a filter whose program returns verdicts.
fn verdicts(program: BorrowedFd<'_>) -> Vec<TcOption> {
    let flags = TcFilterBpfOption::Flags(TcBpfFlags::DirectAction);
    vec![program_fd(program), TcOption::Bpf(flags)]
}

fn program_fd(program: BorrowedFd<'_>) -> TcOption {
    TcOption::Bpf(TcFilterBpfOption::ProgFd(program.as_raw_fd() as u32))
}

fn qdisc_header(ifindex: u32) -> TcHeader {
    TcHeader { index: ifindex as i32, handle: HANDLE, parent: PLACE, ..TcHeader::default() }
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
