//! The path to the target: which interface, from which address, to which next hop, at which MAC.
//!
//! The kernel's routing table gives the route (rtnetlink). The MAC address of the next hop is resolved
//! on the link: ARP (RFC 826) or neighbour solicitation (RFC 4861, section 7.2).

use std::{
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use datapath::socket::{Buffer, Receive, Socket};
use futures_util::TryStreamExt;
use rtnetlink::{
    Handle, RouteMessageBuilder,
    packet_route::{
        link::LinkAttribute,
        route::{RouteAddress, RouteAttribute, RouteMessage},
    },
};
use wire::{EtherType, IpProtocol, Mac, arp, ethernet, icmpv6, ipv6};

/// There is no route to the target.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The kernel has none, or could not be asked.
    #[error("there is no route to {target}: {reason}")]
    None {
        /// The target.
        target: IpAddr,
        /// The kernel's error.
        reason: String,
    },
    /// No host on the link has the next hop's address.
    #[error("{next_hop} does not answer ARP or neighbour discovery on {interface}: is it up?")]
    NoNeighbour {
        /// The next hop.
        next_hop: IpAddr,
        /// Name of the interface.
        interface: String,
    },
    /// The link could not be used.
    #[error("asking for the MAC address of {next_hop} on {interface}: {reason}")]
    Link {
        /// The next hop.
        next_hop: IpAddr,
        /// Name of the interface.
        interface: String,
        /// What went wrong.
        reason: String,
    },
}

/// The path to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Index of the interface.
    pub interface: u32,
    /// Its name.
    pub name: String,
    /// Its MAC address; all zero for loopback.
    pub mac: Mac,
    /// Its MTU in bytes.
    pub mtu: usize,
    /// Our address.
    pub source: IpAddr,
    /// The router, or the target itself if it is on the link.
    pub next_hop: IpAddr,
    /// Whether this is the loopback interface.
    pub loopback: bool,
}

/// Asks the kernel for the route to a target, in the network namespace of the calling thread.
///
/// # Errors
/// When the kernel has none.
pub async fn find(target: IpAddr) -> Result<Path, RouteError> {
    let none = |reason: String| RouteError::None { target, reason };
    let (connection, handle, _) = rtnetlink::new_connection().map_err(|e| none(e.to_string()))?;
    let connection = tokio::spawn(connection);
    let path = ask(&handle, target).await;
    connection.abort();
    path.map_err(none)
}

async fn ask(handle: &Handle, target: IpAddr) -> Result<Path, String> {
    let length = if target.is_ipv4() { 32 } else { 128 };
    let request = RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(target, length)
        .map_err(|error| error.to_string())?
        .build();
    let route = handle.route().get(request).execute().try_next().await;
    let route = route.map_err(|error| error.to_string())?.ok_or("the kernel returned none")?;
    let interface = attribute(&route, |attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
    .ok_or("its route has no interface")?;
    let source = attribute(&route, |attribute| match attribute {
        RouteAttribute::PrefSource(address) => ip(address),
        _ => None,
    })
    .ok_or("no address of this machine can be its source")?;
    let next_hop = attribute(&route, |attribute| match attribute {
        RouteAttribute::Gateway(address) => ip(address),
        _ => None,
    });
    let link = handle.link().get().match_index(interface).execute().try_next().await;
    let link = link.map_err(|error| error.to_string())?.ok_or("its interface is gone")?;
    let mut path = Path {
        interface,
        name: String::new(),
        mac: Mac::default(),
        mtu: 0,
        source,
        next_hop: next_hop.unwrap_or(target),
        loopback: false,
    };
    for attribute in link.attributes {
        match attribute {
            LinkAttribute::IfName(name) => path.name = name,
            LinkAttribute::Mtu(mtu) => path.mtu = mtu as usize,
            LinkAttribute::Address(bytes) => {
                path.mac = Mac(bytes.try_into().unwrap_or_default());
            }
            _ => {}
        }
    }
    path.loopback = path.name == "lo";
    Ok(path)
}

fn attribute<T>(route: &RouteMessage, pick: impl Fn(&RouteAttribute) -> Option<T>) -> Option<T> {
    route.attributes.iter().find_map(pick)
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some((*v4).into()),
        RouteAddress::Inet6(v6) => Some((*v6).into()),
        _ => None,
    }
}

/// How many times the MAC address is requested, and how long each answer is waited for.
const ATTEMPTS: (u32, Duration) = (3, Duration::from_millis(500));

/// The MAC address of a path's next hop.
///
/// # Errors
/// When nobody answers, or the link cannot be used.
pub fn resolve(path: &Path) -> Result<Mac, RouteError> {
    if path.loopback {
        return Ok(Mac::default());
    }
    let (next_hop, interface) = (path.next_hop, path.name.clone());
    let failed =
        |reason: String| RouteError::Link { next_hop, interface: interface.clone(), reason };
    let socket =
        Socket::packet(path.interface, Receive::Incoming).map_err(|e| failed(e.to_string()))?;
    socket.set_timeout(Duration::from_millis(20)).map_err(|e| failed(e.to_string()))?;
    let question = question(path).map_err(|e| failed(e.to_string()))?;
    let mut buffer = Buffer::new(256);
    for _ in 0..ATTEMPTS.0 {
        socket.send(&question, question.len()).map_err(|e| failed(e.to_string()))?;
        let deadline = Instant::now() + ATTEMPTS.1;
        while Instant::now() < deadline {
            let frames = socket.receive(&mut buffer).map_err(|e| failed(e.to_string()))?;
            for frame in frames {
                if let Some(mac) = answer(frame.bytes, next_hop) {
                    return Ok(mac);
                }
            }
        }
    }
    Err(RouteError::NoNeighbour { next_hop, interface })
}

/// The frame that requests the next hop's MAC address.
fn question(path: &Path) -> Result<Vec<u8>, wire::EmitError> {
    let mut frame = vec![0; 14];
    let mut link = ethernet::Repr {
        destination: Mac::BROADCAST,
        source: path.mac,
        tags: Vec::new(),
        ether_type: EtherType::ARP,
    };
    match (path.source, path.next_hop) {
        (IpAddr::V4(sender_ip), IpAddr::V4(target_ip)) => {
            let request = arp::Repr {
                operation: arp::Operation::REQUEST,
                sender_mac: path.mac,
                sender_ip,
                target_mac: Mac::default(),
                target_ip,
            };
            frame.resize(14 + arp::LEN, 0);
            request.emit(&mut frame[14..])?;
        }
        (IpAddr::V6(source), IpAddr::V6(target)) => {
            // The solicited-node multicast address (RFC 4291, section 2.7.1) and the MAC address
            // that goes with it (RFC 2464, section 7).
            let last = target.octets();
            let group = Ipv6Addr::from([
                0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, last[13], last[14], last[15],
            ]);
            link.destination = Mac([0x33, 0x33, 0xff, last[13], last[14], last[15]]);
            link.ether_type = EtherType::IPV6;
            let message =
                icmpv6::Repr::NeighbourSolicitation { target, source_mac: Some(path.mac) };
            let header = ipv6::Repr {
                source,
                destination: group,
                next_header: IpProtocol::ICMPV6,
                hop_limit: 255, // RFC 4861, section 4.3.
                traffic_class: 0,
                flow_label: 0,
                payload_len: message.len(),
            };
            frame.resize(14 + ipv6::HEADER + message.len(), 0);
            header.emit(&mut frame[14..])?;
            message.emit(&mut frame[14 + ipv6::HEADER..], source, group)?;
        }
        _ => return Err(wire::EmitError::Families),
    }
    link.emit(&mut frame)?;
    Ok(frame)
}

/// The MAC address of a next hop, from a reply frame.
fn answer(frame: &[u8], next_hop: IpAddr) -> Option<Mac> {
    let frame = ethernet::Packet::new(frame).ok()?;
    match (frame.ether_type(), next_hop) {
        (EtherType::ARP, IpAddr::V4(next_hop)) => {
            let reply = arp::Repr::parse(&arp::Packet::new(frame.payload()).ok()?).ok()?;
            let right = reply.operation == arp::Operation::REPLY && reply.sender_ip == next_hop;
            right.then_some(reply.sender_mac)
        }
        (EtherType::IPV6, IpAddr::V6(next_hop)) => {
            let packet = ipv6::Packet::new(frame.payload()).ok()?;
            // RFC 4861, section 7.1.2: a packet that crossed a router is not from a neighbour.
            if packet.next_header() != IpProtocol::ICMPV6 || packet.hop_limit() != 255 {
                return None;
            }
            let message = icmpv6::Packet::new(packet.payload()).ok()?;
            match icmpv6::Repr::parse(&message, packet.source(), packet.destination()).ok()? {
                icmpv6::Repr::NeighbourAdvertisement { target, target_mac, .. }
                    if target == next_hop =>
                {
                    Some(target_mac.unwrap_or_else(|| frame.source()))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(source: &str, next_hop: &str) -> Path {
        Path {
            interface: 2,
            name: "eth0".to_owned(),
            mac: "02:00:00:00:00:01".parse().unwrap(),
            mtu: 1500,
            source: source.parse().unwrap(),
            next_hop: next_hop.parse().unwrap(),
            loopback: false,
        }
    }

    #[test]
    fn arp_question_and_answer() {
        let path = path("192.0.2.1", "192.0.2.2");
        let asked = question(&path).unwrap();
        assert_eq!(asked[..6], [0xff; 6]);
        assert_eq!(answer(&asked, path.next_hop), None);
        let mac: Mac = "02:00:00:00:00:02".parse().unwrap();
        let mut advertised = asked.clone();
        let reply = arp::Repr {
            operation: arp::Operation::REPLY,
            sender_mac: mac,
            sender_ip: "192.0.2.2".parse().unwrap(),
            target_mac: path.mac,
            target_ip: "192.0.2.1".parse().unwrap(),
        };
        reply.emit(&mut advertised[14..]).unwrap();
        assert_eq!(answer(&advertised, path.next_hop), Some(mac));
        assert_eq!(answer(&advertised, "192.0.2.3".parse().unwrap()), None);
    }

    #[test]
    fn neighbour_question_and_answer() {
        let path = path("2001:db8::1", "2001:db8::12:3456");
        let asked = question(&path).unwrap();
        assert_eq!(asked[..6], [0x33, 0x33, 0xff, 0x12, 0x34, 0x56]);
        assert_eq!(answer(&asked, path.next_hop), None);
        let mac: Mac = "02:00:00:00:00:02".parse().unwrap();
        let (from, to) = ("2001:db8::12:3456".parse().unwrap(), "2001:db8::1".parse().unwrap());
        let advertised = |hop_limit, target_mac: Option<Mac>| {
            let message = icmpv6::Repr::NeighbourAdvertisement {
                target: from,
                target_mac,
                router: false,
                solicited: true,
                over_ride: true,
            };
            let header = ipv6::Repr {
                source: from,
                destination: to,
                next_header: IpProtocol::ICMPV6,
                hop_limit,
                traffic_class: 0,
                flow_label: 0,
                payload_len: message.len(),
            };
            let mut frame = asked[..14].to_vec();
            frame[6..12].copy_from_slice(&mac.0);
            frame.resize(54 + message.len(), 0);
            header.emit(&mut frame[14..]).unwrap();
            message.emit(&mut frame[54..], from, to).unwrap();
            frame
        };
        assert_eq!(answer(&advertised(255, Some(mac)), path.next_hop), Some(mac));
        assert_eq!(answer(&advertised(255, None), path.next_hop), Some(mac));
        assert_eq!(answer(&advertised(64, Some(mac)), path.next_hop), None);
    }
}
