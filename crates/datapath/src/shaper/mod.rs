//! Limits of rate: classes of the hierarchical token bucket (tc-htb(8)) on an interface, in both
//! directions.
//!
//! ```text
//!   to the interface's hosts    egress hook sets skb->priority ─► HTB of the interface ─► wire
//!   from them                   ingress hook redirects to the IFB ─► HTB of the IFB ─► ingress again
//! ```
//!
//! A packet whose priority is `MAJOR:class` waits in that class; every other one passes beside them.
//! What comes back from the IFB does not meet the ingress programs again. The kernel keeps all of it
//! when this process dies; the next one takes it over. A rate counts what tc(8) counts: frames with
//! Ethernet's header, super-packets as the segments that they become.

mod htb;
pub(crate) mod netlink;

use netlink::Netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::{
    RouteNetlinkMessage as Message,
    link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage},
    tc::{TcAttribute, TcHandle, TcMessage, TcStats2},
};
use nix::errno::Errno;
use nix::net::if_::{if_indextoname, if_nametoindex};
use std::{collections::BTreeSet, io};

/// The major number of our qdiscs' handles ("ni"), which distinguishes ours from an operator's.
pub const MAJOR: u16 = 0x6e69;

/// A rate of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bytes a second, at least 1000.
    pub bytes_a_second: u64,
}

/// The direction of packets, seen from the hosts behind the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Away from them: through the IFB.
    Up,
    /// Towards them: out of the interface.
    Down,
}

/// What went through a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The class.
    pub class: u16,
    /// In which direction.
    pub direction: Direction,
    /// Bytes sent on.
    pub bytes: u64,
    /// Packets sent on.
    pub packets: u64,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Bytes that wait.
    pub waiting: u64,
}

/// Something could not be set up or asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody has put a qdisc there.
    #[error(
        "interface {0} has a qdisc of its own, and limits need that place: remove it \
         (`tc qdisc del dev {0} root`) or name no limits"
    )]
    Occupied(String),
    /// The kernel refuses.
    #[error("{what}: {source}")]
    Kernel {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    |source| Error::Kernel { what: what.into(), source }
}

/// The qdiscs of one interface and its IFB. Dropping it leaves them in place, as limits outlive a
/// process; [`Shaper::close`] removes them.
#[derive(Debug)]
pub struct Shaper {
    netlink: Netlink,
    interface: u32,
    ifb: u32,
    ifb_name: String,
}

impl Shaper {
    /// Puts HTB on an interface and on an IFB device of a name, which is made; or takes over both as an
    /// earlier process has left them.
    ///
    /// # Errors
    /// [`Error::Occupied`]; or the kernel has no HTB or IFB, or CAP_NET_ADMIN is missing.
    pub fn open(interface: u32, ifb_name: &str) -> Result<Self, Error> {
        let mut netlink = Netlink::open().map_err(failed("opening a netlink socket"))?;
        qdisc(&mut netlink, interface)?;
        let ifb = ifb_device(&mut netlink, ifb_name)?;
        qdisc(&mut netlink, ifb)?;
        Ok(Self { netlink, interface, ifb, ifb_name: ifb_name.into() })
    }

    /// The index of the IFB device, for the program that redirects to it.
    pub const fn ifb(&self) -> u32 {
        self.ifb
    }

    /// Makes a class, or changes it. A direction without a rate is not limited: packets of the class
    /// pass there beside all others.
    ///
    /// # Errors
    /// The kernel's.
    pub fn class(&mut self, id: u16, up: Option<Rate>, down: Option<Rate>) -> Result<(), Error> {
        for (device, rate) in self.devices().into_iter().zip([down, up]) {
            match rate {
                Some(rate) => self.class_of(device, id, rate)?,
                None => self.remove_from(device, id)?,
            }
        }
        Ok(())
    }

    fn class_of(&mut self, device: i32, id: u16, rate: Rate) -> Result<(), Error> {
        let what = || format!("class {id} of {} bytes a second", rate.bytes_a_second);
        let class = Message::NewTrafficClass(htb::class(device, id, rate));
        self.netlink.request(class, NLM_F_CREATE | NLM_F_REPLACE).map_err(failed(what()))?;
        let queue = Message::NewQueueDiscipline(htb::queue(device, id, rate));
        self.netlink
            .request(queue, NLM_F_CREATE | NLM_F_REPLACE)
            .map_err(failed(format!("the queue of {}", what())))
    }

    /// Removes a class; what waits in it is lost, and packets that still name it are not limited. One
    /// that is not there is as good as removed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(&mut self, id: u16) -> Result<(), Error> {
        self.devices().into_iter().try_for_each(|device| self.remove_from(device, id))
    }

    fn remove_from(&mut self, device: i32, id: u16) -> Result<(), Error> {
        let class = Message::DelTrafficClass(htb::name(device, htb::handle(id), TcHandle::UNSPEC));
        match self.netlink.request(class, 0) {
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => Ok(()),
            result => result.map_err(failed(format!("removing class {id}"))),
        }
    }

    /// Removes the classes that an earlier process has left and that nobody wants any more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn keep(&mut self, wanted: &BTreeSet<u16>) -> Result<(), Error> {
        let there: BTreeSet<u16> = self.usage()?.iter().map(|usage| usage.class).collect();
        there.difference(wanted).try_for_each(|&id| self.remove(id))
    }

    /// What went through each class of each direction.
    ///
    /// # Errors
    /// The kernel's.
    pub fn usage(&mut self) -> Result<Vec<Usage>, Error> {
        let mut found = Vec::new();
        for (device, direction) in self.devices().into_iter().zip([Direction::Down, Direction::Up])
        {
            let all = htb::name(device, TcHandle::UNSPEC, TcHandle::UNSPEC);
            let classes = self
                .netlink
                .dump(Message::GetTrafficClass(all))
                .map_err(failed("listing classes"))?;
            for class in classes {
                let Message::NewTrafficClass(class) = class else { continue };
                if class.header.index == device && class.header.handle.major == MAJOR {
                    found.push(usage(&class, direction));
                }
            }
        }
        Ok(found)
    }

    /// Takes the qdiscs and the IFB away.
    ///
    /// # Errors
    /// The kernel's.
    pub fn close(mut self) -> Result<(), Error> {
        let root = htb::name(self.devices()[0], htb::handle(0), TcHandle::ROOT);
        self.netlink
            .request(Message::DelQueueDiscipline(root), 0)
            .map_err(failed("removing the qdisc"))?;
        let mut link = LinkMessage::default();
        link.header.index = self.ifb;
        self.netlink
            .request(Message::DelLink(link), 0)
            .map_err(failed(format!("removing {}", self.ifb_name)))
    }

    /// The interface, which takes packets down, and the IFB, which takes them up.
    fn devices(&self) -> [i32; 2] {
        [self.interface as i32, self.ifb as i32]
    }
}

/// Puts HTB on a device unless ours is there already.
fn qdisc(netlink: &mut Netlink, device: u32) -> Result<(), Error> {
    let message = Message::NewQueueDiscipline(htb::qdisc(device as i32));
    match netlink.request(message, NLM_F_CREATE | NLM_F_EXCL) {
        Err(error) if error.raw_os_error() == Some(Errno::EEXIST as i32) => {}
        result => {
            return result.map_err(failed(format!("putting HTB on interface {}", name(device))));
        }
    }
    let all = htb::name(device as i32, TcHandle::UNSPEC, TcHandle::UNSPEC);
    let there = netlink.dump(Message::GetQueueDiscipline(all)).map_err(failed("listing qdiscs"))?;
    let ours = there.iter().any(|message| {
        matches!(message, Message::NewQueueDiscipline(qdisc)
            if qdisc.header.index == device as i32 && qdisc.header.handle == htb::handle(0))
    });
    if ours { Ok(()) } else { Err(Error::Occupied(name(device))) }
}

/// What people call a device; its number where it is gone.
fn name(device: u32) -> String {
    let name = if_indextoname(device).ok().and_then(|name| name.into_string().ok());
    name.unwrap_or_else(|| device.to_string())
}

/// Makes the IFB device and sets it up, or takes over the one that is there. Returns its index.
fn ifb_device(netlink: &mut Netlink, name: &str) -> Result<u32, Error> {
    let mut link = LinkMessage::default();
    link.attributes = vec![
        LinkAttribute::IfName(name.into()),
        LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Ifb)]),
    ];
    match netlink.request(Message::NewLink(link), NLM_F_CREATE | NLM_F_EXCL) {
        Err(error) if error.raw_os_error() == Some(Errno::EEXIST as i32) => {}
        result => result.map_err(failed(format!("making the IFB device {name}")))?,
    }
    let index =
        if_nametoindex(name).map_err(|error| failed(format!("looking up {name}"))(error.into()))?;
    let mut up = LinkMessage::default();
    up.header.index = index;
    up.header.flags = LinkFlags::Up;
    up.header.change_mask = LinkFlags::Up;
    netlink
        .request(Message::SetLink(up), 0)
        .map_err(failed(format!("setting the IFB device {name} up")))?;
    Ok(index)
}

/// The counters that the kernel gives with a class.
fn usage(class: &TcMessage, direction: Direction) -> Usage {
    let mut usage = Usage {
        class: class.header.handle.minor,
        direction,
        bytes: 0,
        packets: 0,
        dropped: 0,
        waiting: 0,
    };
    let statistics = class.attributes.iter().filter_map(|attribute| match attribute {
        TcAttribute::Stats2(statistics) => Some(statistics),
        _ => None,
    });
    for one in statistics.flatten() {
        match one {
            TcStats2::Basic(basic) => {
                usage.bytes = basic.bytes;
                usage.packets = basic.packets.into();
            }
            TcStats2::Queue(queue) => {
                usage.dropped = queue.drops.into();
                usage.waiting = queue.backlog.into();
            }
            _ => {}
        }
    }
    usage
}
