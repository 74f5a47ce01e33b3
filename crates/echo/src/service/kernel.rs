//! Links, addresses, routes and neighbours of the kernel, over rtnetlink.

use futures_util::{StreamExt, TryStreamExt};
use rtnetlink::{
    Handle, MulticastGroup,
    packet_core::{NetlinkMessage, NetlinkPayload},
    packet_route::{
        AddressFamily, RouteNetlinkMessage,
        address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, CacheInfo},
        link::{LinkAttribute, LinkFlags, LinkMessage, LinkXdp},
        neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourState},
        route::{RouteAddress, RouteAttribute, RouteMessage, RouteType},
    },
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};
use tokio::sync::Notify;

/// A request to the kernel could not be sent or was refused.
#[derive(Debug, thiserror::Error)]
#[error("rtnetlink, {what}: {error}")]
pub struct KernelError {
    what: String,
    error: rtnetlink::Error,
}

impl KernelError {
    fn new(what: impl Into<String>) -> impl FnOnce(rtnetlink::Error) -> Self {
        let what = what.into();
        move |error| Self { what, error }
    }

    /// The system's error number, positive; 0 if there was no answer at all.
    fn number(error: &rtnetlink::Error) -> i32 {
        match error {
            rtnetlink::Error::NetlinkError(message) => -message.raw_code(),
            _ => 0,
        }
    }
}

/// `EEXIST`, `ENODEV`, `EADDRNOTAVAIL`.
const EXISTS: i32 = 17;
const NO_DEVICE: i32 = 19;
const NOT_THERE: i32 = 99;

/// An interface as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its index; another one after it was deleted and made again.
    pub(crate) index: u32,
    /// Whether it is up and has a carrier.
    pub(crate) up: bool,
    /// Its Ethernet address, if it has one.
    pub(crate) mac: Option<[u8; 6]>,
    /// Identifiers of the XDP programs that are attached to it, in whatever mode.
    pub(crate) programs: Vec<u32>,
}

impl Link {
    fn read(message: &LinkMessage) -> Self {
        let flags = message.header.flags;
        let mut link = Self {
            index: message.header.index,
            up: flags.contains(LinkFlags::Up) && flags.contains(LinkFlags::LowerUp),
            mac: None,
            programs: Vec::new(),
        };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::Address(bytes) => link.mac = bytes.as_slice().try_into().ok(),
                LinkAttribute::Xdp(values) => {
                    link.programs.extend(values.iter().filter_map(|value| match value {
                        LinkXdp::DrvProgId(id) | LinkXdp::SkbProgId(id) | LinkXdp::ProgId(id) => {
                            Some(*id)
                        }
                        _ => None,
                    }));
                }
                _ => {}
            }
        }
        link
    }
}

/// The route to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// Index of the outgoing interface.
    pub(crate) interface: u32,
    /// The next hop: the gateway, or the address itself when it is on the link.
    pub(crate) next_hop: IpAddr,
}

/// A socket to the kernel; it answers as long as the runtime runs.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    handle: Handle,
    link_changed: Arc<Notify>,
}

impl Kernel {
    /// Opens the socket.
    pub(crate) fn open() -> io::Result<Self> {
        let (connection, handle, mut messages) =
            rtnetlink::new_multicast_connection(&[MulticastGroup::Link])?;
        panics::spawn(connection);
        let link_changed = Arc::new(Notify::new());
        let notify = link_changed.clone();
        panics::spawn(async move {
            while let Some((message, _)) = messages.next().await {
                panics::point("echo-links");
                if is_link_change(&message) {
                    notify.notify_one();
                }
            }
        });
        Ok(Self { handle, link_changed })
    }

    /// Waits until a link has changed since the last call; the caller asks which one, and how.
    pub(crate) async fn link_changed(&self) {
        self.link_changed.notified().await;
    }

    /// The interface of this name, if there is one.
    pub(crate) async fn link(&self, name: &str) -> Result<Option<Link>, KernelError> {
        let request = self.handle.link().get().match_name(name);
        match request.execute().try_next().await {
            Ok(message) => Ok(message.as_ref().map(Link::read)),
            Err(error) if KernelError::number(&error) == NO_DEVICE => Ok(None),
            Err(error) => Err(KernelError::new(format!("interface {name}"))(error)),
        }
    }

    /// All addresses of an interface.
    pub(crate) async fn addresses(&self, index: u32) -> Result<Vec<IpAddr>, KernelError> {
        let request = self.handle.address().get().set_link_index_filter(index);
        let messages: Vec<AddressMessage> =
            request.execute().try_collect().await.map_err(KernelError::new("addresses"))?;
        Ok(messages.iter().filter_map(local_address).collect())
    }

    /// Adds an address to an interface as /32 or /128. Returns whether it is new.
    pub(crate) async fn add_address(&self, index: u32, ip: IpAddr) -> Result<bool, KernelError> {
        let mut request = self.handle.address().add(index, ip, host_length(ip));
        let message = request.message_mut();
        if ip.is_ipv6() {
            // An anycast address is on many nodes at once: no duplicate address detection.
            message.header.flags |= AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        match request.execute().await {
            Ok(()) => Ok(true),
            Err(error) if KernelError::number(&error) == EXISTS => Ok(false),
            Err(error) => Err(KernelError::new(format!("adding {ip} to lo"))(error)),
        }
    }

    /// Sets how many seconds an address stays on an interface before the kernel removes it; none: for ever.
    pub(crate) async fn keep_address(
        &self,
        index: u32,
        ip: IpAddr,
        seconds: Option<u32>,
    ) -> Result<(), KernelError> {
        let mut request = self.handle.address().add(index, ip, host_length(ip)).replace();
        let mut lifetime = CacheInfo::default();
        lifetime.ifa_valid = seconds.unwrap_or(u32::MAX);
        lifetime.ifa_preferred = lifetime.ifa_valid;
        request.message_mut().attributes.push(AddressAttribute::CacheInfo(lifetime));
        let failed = KernelError::new(format!("setting how long lo has {ip}"));
        request.execute().await.map_err(failed)
    }

    /// Removes an address from an interface; a missing one is no error.
    pub(crate) async fn remove_address(&self, index: u32, ip: IpAddr) -> Result<(), KernelError> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = host_length(ip);
        message.header.family =
            if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        message.attributes.push(AddressAttribute::Local(ip));
        message.attributes.push(AddressAttribute::Address(ip));
        match self.handle.address().del(message).execute().await {
            Ok(()) => Ok(()),
            Err(error) if matches!(KernelError::number(&error), NOT_THERE | NO_DEVICE) => Ok(()),
            Err(error) => Err(KernelError::new(format!("removing {ip} from lo"))(error)),
        }
    }

    /// The route to an address, as `ip route get` shows it; `None` if there is none.
    pub(crate) async fn route_to(&self, ip: IpAddr) -> Option<Route> {
        let answer = self.ask_route(ip).await?;
        read_route(&answer, ip).filter(|_| answer.header.kind == RouteType::Unicast)
    }

    /// Whether an address is one of this machine's own.
    pub(crate) async fn is_local(&self, ip: IpAddr) -> bool {
        self.ask_route(ip).await.is_some_and(|answer| answer.header.kind == RouteType::Local)
    }

    async fn ask_route(&self, ip: IpAddr) -> Option<RouteMessage> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(ip);
        message.header.destination_prefix_length = host_length(ip);
        message.attributes.push(RouteAttribute::Destination(ip.into()));
        self.handle.route().get(message).execute().try_next().await.ok()?
    }

    /// The gateway of the default route through this interface, of the family of `like`.
    pub(crate) async fn default_gateway(&self, index: u32, like: IpAddr) -> Option<IpAddr> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(like);
        let mut routes = Box::pin(self.handle.route().get(message).execute());
        while let Ok(Some(route)) = routes.try_next().await {
            let default = route.header.destination_prefix_length == 0;
            let found = read_route(&route, like).filter(|found| found.interface == index);
            if let (true, RouteType::Unicast, Some(found)) = (default, route.header.kind, found)
                && found.next_hop != like
            {
                return Some(found.next_hop);
            }
        }
        None
    }

    /// The Ethernet address of a neighbour; if it is unknown, the kernel is asked to resolve it.
    pub(crate) async fn neighbour(&self, index: u32, ip: IpAddr) -> Option<[u8; 6]> {
        let request = self.handle.neighbours().get().set_address_family(family(ip));
        let mut entries = Box::pin(request.execute());
        while let Ok(Some(entry)) = entries.try_next().await {
            if entry.header.ifindex != index
                || matches!(
                    entry.header.state,
                    NeighbourState::Incomplete | NeighbourState::Failed | NeighbourState::None
                )
            {
                continue;
            }
            let mut is_it = false;
            let mut mac = None;
            for attribute in &entry.attributes {
                match attribute {
                    NeighbourAttribute::Destination(NeighbourAddress::Inet(a)) => is_it |= *a == ip,
                    NeighbourAttribute::Destination(NeighbourAddress::Inet6(a)) => {
                        is_it |= *a == ip;
                    }
                    NeighbourAttribute::LinkLayerAddress(bytes) => {
                        mac = bytes.as_slice().try_into().ok();
                    }
                    _ => {}
                }
            }
            if is_it && mac.is_some() {
                return mac;
            }
        }
        // NTF_USE: resolve as if a packet were sent there (linux/neighbour.h).
        let request = self.handle.neighbours().add(index, ip);
        let request = request.state(NeighbourState::None).flags(NeighbourFlags::Use).replace();
        if let Err(error) = request.execute().await {
            tracing::debug!(%ip, %error, "the neighbour cannot be resolved");
        }
        None
    }
}

/// Whether a message reports a change of a link.
fn is_link_change(message: &NetlinkMessage<RouteNetlinkMessage>) -> bool {
    matches!(
        message.payload,
        NetlinkPayload::InnerMessage(
            RouteNetlinkMessage::NewLink(_) | RouteNetlinkMessage::DelLink(_)
        )
    )
}

fn family(ip: IpAddr) -> AddressFamily {
    if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn host_length(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn local_address(message: &AddressMessage) -> Option<IpAddr> {
    // On a point-to-point link ADDRESS is the other end's and LOCAL is ours.
    let local = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(ip) => Some(*ip),
        _ => None,
    });
    local.or_else(|| {
        message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(ip) => Some(*ip),
            _ => None,
        })
    })
}

fn read_route(message: &RouteMessage, to: IpAddr) -> Option<Route> {
    let mut interface = None;
    let mut next_hop = to;
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => interface = Some(*index),
            RouteAttribute::Gateway(RouteAddress::Inet(ip)) => next_hop = IpAddr::V4(*ip),
            RouteAttribute::Gateway(RouteAddress::Inet6(ip)) => next_hop = IpAddr::V6(*ip),
            _ => {}
        }
    }
    Some(Route { interface: interface?, next_hop })
}

/// The unspecified address of a family, to ask for its default route.
pub(crate) fn any(v4: bool) -> IpAddr {
    if v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}
