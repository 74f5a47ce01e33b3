//! BMP messages as a router writes them, built with netgauze, and a session that takes them.

use bgp::bmp::{Internal, Rib, RouteChange, Session, SessionError, Settings, Status};
use netgauze_bgp_pkt::{
    BgpMessage,
    capabilities::{
        AddPathAddressFamily, AddPathCapability, BgpCapability, FourOctetAsCapability,
        MultiProtocolExtensionsCapability,
    },
    nlri::{Ipv4Unicast, Ipv4UnicastAddress, Ipv6Unicast, Ipv6UnicastAddress},
    open::{BgpOpenMessage, BgpOpenMessageParameter},
    path_attribute::{
        As2PathSegment, As4Path, As4PathSegment, AsPath, AsPathSegmentType, MpReach, MpUnreach,
        NextHop, Origin, PathAttribute, PathAttributeValue,
    },
    update::BgpUpdateMessage,
};
use netgauze_bmp_pkt::{
    BmpMessage, BmpPeerType, PeerHeader,
    v3::{
        BmpMessageValue, InitiationInformation, InitiationMessage, PeerDownNotificationMessage,
        PeerDownNotificationReason, PeerUpNotificationMessage, RouteMonitoringMessage,
    },
};
use netgauze_iana::address_family::AddressType;
use netgauze_parse_utils::WritablePdu;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

/// The router's own AS.
pub(crate) const LOCAL_AS: u32 = 64500;

pub(crate) fn bytes(value: BmpMessageValue) -> Vec<u8> {
    let mut out = Vec::new();
    BmpMessage::V3(value).write(&mut out).unwrap();
    out
}

pub(crate) fn initiation() -> Vec<u8> {
    initiation_of("a router")
}

pub(crate) fn initiation_of(description: &str) -> Vec<u8> {
    let information = vec![
        InitiationInformation::SystemDescription(description.into()),
        InitiationInformation::SystemName("r1".into()),
    ];
    bytes(BmpMessageValue::Initiation(InitiationMessage::new(information)))
}

pub(crate) fn pre() -> BmpPeerType {
    global(false, false)
}

pub(crate) fn post() -> BmpPeerType {
    global(true, false)
}

pub(crate) fn global(post_policy: bool, asn2: bool) -> BmpPeerType {
    BmpPeerType::GlobalInstancePeer { ipv6: false, post_policy, asn2, adj_rib_out: false }
}

pub(crate) fn loc() -> BmpPeerType {
    BmpPeerType::LocRibInstancePeer { filtered: false }
}

/// A per-peer header; Loc-RIB has no peer's address (RFC 9069 section 4.1).
pub(crate) fn header(kind: BmpPeerType, address: &str, asn: u32) -> PeerHeader {
    let address = (!matches!(kind, BmpPeerType::LocRibInstancePeer { .. }))
        .then(|| address.parse::<IpAddr>().unwrap());
    PeerHeader::new(kind, None, address, asn, Ipv4Addr::new(192, 0, 2, 9), None)
}

/// An OPEN with both families and these families' ADD-PATH flags (send, receive).
pub(crate) fn open(asn: u32, add_path: &[(AddressType, bool, bool)]) -> BgpMessage {
    let mut capabilities: Vec<_> = [AddressType::Ipv4Unicast, AddressType::Ipv6Unicast]
        .map(|kind| {
            BgpCapability::MultiProtocolExtensions(MultiProtocolExtensionsCapability::new(kind))
        })
        .into();
    capabilities.push(BgpCapability::FourOctetAs(FourOctetAsCapability::new(asn)));
    let families: Vec<_> = add_path
        .iter()
        .map(|(kind, send, receive)| AddPathAddressFamily::new(*kind, *send, *receive))
        .collect();
    if !families.is_empty() {
        capabilities.push(BgpCapability::AddPath(AddPathCapability::new(families)));
    }
    BgpMessage::Open(BgpOpenMessage::new(
        u16::try_from(asn).unwrap_or(23456),
        180,
        Ipv4Addr::new(192, 0, 2, 1),
        vec![BgpOpenMessageParameter::Capabilities(capabilities.into())],
    ))
}

pub(crate) fn peer_up(header: PeerHeader) -> Vec<u8> {
    let asn = header.peer_as();
    peer_up_with(header, open(LOCAL_AS, &[]), open(asn, &[]))
}

pub(crate) fn peer_up_with(header: PeerHeader, sent: BgpMessage, received: BgpMessage) -> Vec<u8> {
    let local = header.address().map(|_| "192.0.2.1".parse().unwrap());
    let message = PeerUpNotificationMessage::build(
        header,
        local,
        Some(179),
        Some(40000),
        sent,
        received,
        vec![],
    )
    .unwrap();
    bytes(BmpMessageValue::PeerUpNotification(message))
}

pub(crate) fn peer_down(header: PeerHeader) -> Vec<u8> {
    let reason = PeerDownNotificationReason::RemoteSystemClosedNoData;
    let message = PeerDownNotificationMessage::build(header, reason).unwrap();
    bytes(BmpMessageValue::PeerDownNotification(message))
}

pub(crate) fn monitoring(header: PeerHeader, update: BgpUpdateMessage) -> Vec<u8> {
    let message = RouteMonitoringMessage::build(header, BgpMessage::Update(update)).unwrap();
    bytes(BmpMessageValue::RouteMonitoring(message))
}

fn attribute(optional: bool, transitive: bool, value: PathAttributeValue) -> PathAttribute {
    PathAttribute::from(optional, transitive, false, false, value).unwrap()
}

fn path(asns: &[u32]) -> Vec<PathAttribute> {
    let segments = vec![As4PathSegment::new(AsPathSegmentType::AsSequence, asns.to_vec())];
    let path = AsPath::As4PathSegments(if asns.is_empty() { vec![] } else { segments }.into());
    vec![
        attribute(false, true, PathAttributeValue::Origin(Origin::IGP)),
        attribute(false, true, PathAttributeValue::AsPath(path)),
    ]
}

fn v4(prefix: &str, id: Option<u32>) -> Ipv4UnicastAddress {
    Ipv4UnicastAddress::new(id, Ipv4Unicast::from_net(prefix.parse().unwrap()).unwrap())
}

fn v6(prefix: &str) -> Ipv6UnicastAddress {
    Ipv6UnicastAddress::new(None, Ipv6Unicast::from_net(prefix.parse().unwrap()).unwrap())
}

/// An UPDATE that announces a prefix of either family.
pub(crate) fn announce(prefix: &str, asns: &[u32]) -> BgpUpdateMessage {
    announce_via(prefix, asns, "192.0.2.77", None)
}

pub(crate) fn announce_via(
    prefix: &str,
    asns: &[u32],
    hop: &str,
    id: Option<u32>,
) -> BgpUpdateMessage {
    let mut list = path(asns);
    if prefix.contains(':') {
        let reach = MpReach::Ipv6Unicast {
            next_hop_global: "2001:db8::77".parse().unwrap(),
            next_hop_local: None,
            nlri: vec![v6(prefix)].into(),
        };
        list.push(attribute(true, false, PathAttributeValue::MpReach(reach)));
        return BgpUpdateMessage::new(vec![], list, vec![]);
    }
    let hop = NextHop::new(hop.parse().unwrap());
    list.push(attribute(false, true, PathAttributeValue::NextHop(hop)));
    BgpUpdateMessage::new(vec![], list, vec![v4(prefix, id)])
}

/// As [`announce`], by a speaker of two octets that carries the real numbers beside them.
pub(crate) fn announce_narrow(prefix: &str, two: &[u16], four: &[u32]) -> BgpUpdateMessage {
    let sequence = AsPathSegmentType::AsSequence;
    let segments = [As2PathSegment::new(sequence, two.to_vec())];
    let four = As4Path::new([As4PathSegment::new(sequence, four.to_vec())]);
    let list = vec![
        attribute(false, true, PathAttributeValue::Origin(Origin::IGP)),
        attribute(
            false,
            true,
            PathAttributeValue::AsPath(AsPath::As2PathSegments(segments.into())),
        ),
        attribute(
            false,
            true,
            PathAttributeValue::NextHop(NextHop::new(Ipv4Addr::new(192, 0, 2, 77))),
        ),
        attribute(true, true, PathAttributeValue::As4Path(four)),
    ];
    BgpUpdateMessage::new(vec![], list, vec![v4(prefix, None)])
}

pub(crate) fn withdraw(prefix: &str, id: Option<u32>) -> BgpUpdateMessage {
    if prefix.contains(':') {
        let unreach = MpUnreach::Ipv6Unicast { nlri: vec![v6(prefix)].into() };
        let list = vec![attribute(true, false, PathAttributeValue::MpUnreach(unreach))];
        return BgpUpdateMessage::new(vec![], list, vec![]);
    }
    BgpUpdateMessage::new(vec![v4(prefix, id)], vec![], vec![])
}

/// The ends of both families' tables.
pub(crate) fn ends(header: &PeerHeader) -> Vec<u8> {
    let unreach = MpUnreach::Ipv6Unicast { nlri: Box::new([]) };
    let six = attribute(true, false, PathAttributeValue::MpUnreach(unreach));
    let mut out = monitoring(header.clone(), BgpUpdateMessage::new(vec![], vec![], vec![]));
    out.extend(monitoring(header.clone(), BgpUpdateMessage::new(vec![], vec![six], vec![])));
    out
}

/// A session with its routes, and the view that someone has who takes every change.
pub(crate) struct Monitored {
    pub(crate) session: Session,
    pub(crate) rib: Rib,
    pub(crate) now: Instant,
    pub(crate) view: BTreeMap<(String, Option<IpAddr>), (u16, u32)>,
    settings: Settings,
}

impl Monitored {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default(), 1000)
    }

    pub(crate) fn with(settings: Settings, limit: usize) -> Self {
        let now = Instant::now();
        let session = Session::new(settings);
        Self { session, rib: Rib::new(limit), now, view: BTreeMap::new(), settings }
    }

    /// With routes from inside the AS at their next hops.
    pub(crate) fn reflector() -> Self {
        Self::with(Settings { internal: Internal::NextHop, ..Settings::default() }, 1000)
    }

    /// The connection is lost and another one opened.
    pub(crate) fn reconnect(&mut self) {
        self.session = Session::new(self.settings);
        self.send(&initiation());
    }

    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> Result<Status, SessionError> {
        let result = self.session.receive(bytes, &mut self.rib, self.now);
        self.take();
        result
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        assert_eq!(self.try_send(bytes), Ok(Status::Open));
    }

    pub(crate) fn update(&mut self, header: &PeerHeader, update: BgpUpdateMessage) {
        self.send(&monitoring(header.clone(), update));
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.session.settle(&mut self.rib, self.now);
        self.take();
    }

    fn take(&mut self) {
        for RouteChange { prefix, exit, path } in self.rib.take_changes() {
            let key = (prefix.to_string(), exit);
            match path {
                Some(path) => {
                    let reported = (path.distance, path.origin);
                    assert_ne!(self.view.insert(key, reported), Some(reported), "reported twice");
                }
                None => assert!(self.view.remove(&key).is_some(), "{key:?} was never reported"),
            }
        }
    }

    /// Prefix, distance and origin of what is seen at the router itself.
    pub(crate) fn seen(&self) -> Vec<(&str, u16, u32)> {
        self.view
            .iter()
            .filter(|((_, exit), _)| exit.is_none())
            .map(|((prefix, _), (distance, origin))| (prefix.as_str(), *distance, *origin))
            .collect()
    }
}
