//! The internet of ten autonomous systems in which the project's first paper showed anycast.
//!
//! ```text
//!                          ISP_Z (1)
//!                 ISP_X (2)         ISP_Y (3)
//!   Central (11)--ISP_A (4)         ISP_B (5)
//!   Enterprise_A (20)   DINR_A (12) DINR_B (13)   Enterprise_B (21)
//! ```
//!
//! One router an AS, each a namespace with a real BIRD; point-to-point links 172.16.0.0/30 and so on
//! with the paper's addresses. Hosts are namespaces of their own: a PC at each enterprise, a central
//! service, and the service host behind each DINR router, where `nigh run` (or, in tests of the
//! testbed, a stand-in) answers for 50.50.50.50 and announces 50.0.0.0/8 to its router over iBGP.
//! docs/decisions/040-dinr-demo.md says why there. What must tell the sites apart, as stations do, uses a
//! network of each site's own, 12.0.0.0/8 or 13.0.0.0/8.
//!
//! IPv6 runs in parallel in the documentation space: AS *n* has 2001:db8:*n*::/48 (its number read as
//! hexadecimal digits), the link 172.16.0.28/30 is 2001:db8:ffff:28::/64 with the same last numbers.
//! Through a lab, Enterprise_A and DINR_A have a line of their own besides, of which no router tells: the
//! second path of those who can use two ([`ON_THE_LINE`]).
//!
//! Every router honours GRACEFUL_SHUTDOWN (RFC 8326 section 4.3). The links between ASes are veth pairs
//! without delay ([`Internet::build`]) or wires of a lab ([`Internet::through_lab`]).

use crate::{Bird, End, Error, Lab, Namespace, Receiver, link, wait_until};
use std::{fmt::Write as _, path::Path, time::Duration};

mod oracle;
mod site;
mod stations;
mod table;

pub use oracle::Oracle;
pub use site::{Ledger, Site};
pub use stations::{Enterprise, Mesh, RoundTrip, station_address};
pub use table::Route;

/// The service's IPv4 address, the same at both sites.
pub const SERVICE4: &str = "50.50.50.50";
/// The service's IPv6 address, the same at both sites.
pub const SERVICE6: &str = "2001:db8:50::50";
/// What both sites announce for IPv4.
pub const PREFIX4: &str = "50.0.0.0/8";
/// What both sites announce for IPv6.
pub const PREFIX6: &str = "2001:db8:50::/48";
/// The central service that answers at one place only.
pub const CENTRAL4: &str = "11.0.0.10";
/// The central service's IPv6 address.
pub const CENTRAL6: &str = "2001:db8:11::10";
/// The oracle's address in ISP_A; and that of ISP_A's router towards it.
pub const ORACLE4: &str = "4.0.0.53";
const ORACLE_ROUTER4: &str = "4.0.0.1";
/// The AS numbers of the two sites, DINR_A and DINR_B.
pub const SITES: [u32; 2] = [12, 13];

/// TTL with which the replies of DINR_A and of DINR_B reach ENT_A-testPC: each site answers with 64,
/// and the way leads through DINR_A, ISP_A, Enterprise_A or through DINR_B, ISP_B, ISP_Y, ISP_Z, ISP_X,
/// ISP_A, Enterprise_A.
pub const TTL_AT_ENT_A: [u8; 2] = [61, 57];

/// AS number, name, and label of the router's namespace.
const SYSTEMS: [(u32, &str, &str); 10] = [
    (1, "ISP_Z", "isp-z"),
    (2, "ISP_X", "isp-x"),
    (3, "ISP_Y", "isp-y"),
    (4, "ISP_A", "isp-a"),
    (5, "ISP_B", "isp-b"),
    (11, "Central", "central"),
    (12, "DINR_A", "dinr-a"),
    (13, "DINR_B", "dinr-b"),
    (20, "Enterprise_A", "ent-a"),
    (21, "Enterprise_B", "ent-b"),
];

/// Last number of a /30 in 172.16.0.0/24, the AS with the first address and the AS with the second.
const LINKS: [(u8, u32, u32); 9] = [
    (0, 1, 2),
    (4, 1, 3),
    (8, 3, 5),
    (12, 2, 4),
    (16, 4, 20),
    (20, 5, 21),
    (24, 4, 11),
    (28, 4, 12),
    (32, 5, 13),
];

/// A line that Enterprise_A and DINR_A have beside the internet, as `LINKS`; no router tells of it. Only a
/// lab has it.
const LINE: (u8, u32, u32) = (36, 20, 12);
/// The addresses of ENT_A-testPC and of DINR_A's service host that are reached over it.
pub const ON_THE_LINE: [&str; 2] = ["20.0.0.11", "12.0.0.11"];

/// Hosts with a default route through their AS's router: AS number and label.
const HOSTS: [(u32, &str); 3] = [(20, "ent-a-pc"), (21, "ent-b-pc"), (11, "central-host")];

/// The router of one AS.
#[derive(Debug)]
pub struct Router {
    /// The AS number.
    pub asn: u32,
    /// The name as the paper writes it, such as `ISP_A`.
    pub name: &'static str,
    /// Its BIRD.
    pub bird: Bird,
    /// Where it forwards packets.
    pub namespace: Namespace,
}

impl Router {
    /// The routes for one family that its BIRD knows, best first for each prefix.
    ///
    /// # Errors
    ///
    /// When BIRD does not answer.
    pub fn routes(&self, family: Family) -> Result<Vec<Route>, Error> {
        let table = match family {
            Family::V4 => "master4",
            Family::V6 => "master6",
        };
        Ok(table::parse(&self.bird.query(&format!("show route table {table} all"))?))
    }

    /// The AS path of the best route to a prefix, such as `4 12`; `None` without a route.
    pub fn best_path(&self, prefix: &str) -> Option<String> {
        let family = if prefix.contains(':') { Family::V6 } else { Family::V4 };
        let routes = self.routes(family).ok()?;
        routes
            .into_iter()
            .find(|route| route.best && route.prefix == prefix)
            .map(|route| route.path)
    }
}

/// Which of the two internets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4, with the paper's addresses.
    V4,
    /// IPv6, in the documentation space.
    V6,
}

/// All routers and hosts. When it is dropped, nothing of it remains.
#[derive(Debug)]
pub struct Internet {
    routers: Vec<Router>,
    hosts: Vec<(u32, Namespace)>,
    services: Vec<(u32, Namespace)>,
    _receivers: Vec<Receiver>,
    // The lab ends before its namespace goes.
    lab: Option<Lab>,
    _home: Option<Namespace>,
}

impl Internet {
    /// Builds namespaces and links and starts a BIRD in each router; sessions then come up by
    /// themselves, see [`Internet::converge`].
    ///
    /// # Errors
    ///
    /// When something cannot be made; what was made is taken away again.
    pub fn build() -> Result<Self, Error> {
        Self::join(None)
    }

    /// As [`Internet::build`], with the links between ASes as wires of `nigh lab run`, which take so
    /// many milliseconds each way. `binary` is the program. The lab lives in a namespace of its own, so
    /// that it goes when everything of this process is taken down.
    ///
    /// # Errors
    ///
    /// As [`Internet::build`], and when the lab does not start.
    pub fn through_lab(binary: &Path, milliseconds: u32) -> Result<Self, Error> {
        Self::join(Some((binary, milliseconds)))
    }

    fn join(through: Option<(&Path, u32)>) -> Result<Self, Error> {
        let mut routers = Vec::new();
        for (asn, name, label) in SYSTEMS {
            let namespace = Namespace::new(label)?;
            namespace.forward()?;
            routers.push((asn, name, label, namespace));
        }
        let find = |asn: u32| {
            let found = routers.iter().find(|router| router.0 == asn);
            found.map(|router| (router.2, &router.3)).ok_or_else(|| no_such(asn))
        };
        let (mut lab, mut home) = (None, None);
        if let Some((binary, milliseconds)) = through {
            let mut scene = String::new();
            for (net, low, high) in LINKS.into_iter().chain([LINE]) {
                wire(&mut scene, net, find(low)?, find(high)?, milliseconds);
            }
            let namespace = Namespace::new("lab")?;
            lab = Some(namespace.enter(|| Lab::start(binary, &scene))?);
            home = Some(namespace);
        }
        for (net, low, high) in LINKS.into_iter().filter(|_| lab.is_none()) {
            let ((low_label, low_space), (high_label, high_space)) = (find(low)?, find(high)?);
            link(
                End::new(low_space, high_label)
                    .address(&format!("{}/30", link4(net, 1)))
                    .address(&format!("{}/64", link6(net, 1))),
                End::new(high_space, low_label)
                    .address(&format!("{}/30", link4(net, 2)))
                    .address(&format!("{}/64", link6(net, 2))),
            )?;
        }
        let mut hosts = Vec::new();
        for (asn, label) in HOSTS {
            hosts.push((asn, host(asn, label, find(asn)?.1)?));
        }
        let (mut services, mut receivers) = (Vec::new(), Vec::new());
        for (asn, label) in SITES.into_iter().zip(["dinr-a-host", "dinr-b-host"]) {
            let router = find(asn)?.1;
            services.push((asn, service_host(asn, label, router)?));
            receivers.push(Receiver::new(router, "service")?);
        }
        if lab.is_some() {
            let (net, near, far) = LINE;
            let [pc, service] = ON_THE_LINE;
            let route = |asn: u32, to: &str, via: &str| {
                find(asn)?.1.check(&["ip", "route", "add", to, "via", via])
            };
            pick(&hosts, near).check(&[
                "ip",
                "address",
                "add",
                &format!("{pc}/8"),
                "dev",
                "eth0",
            ])?;
            pick(&services, far).check(&["ip", "address", "add", service, "dev", "eth0"])?;
            route(near, service, &link4(net, 2))?;
            route(far, pc, &link4(net, 1))?;
            route(far, service, &site4(far, 2))?;
        }
        let routers = routers
            .into_iter()
            .map(|(asn, name, _, namespace)| {
                let bird = Bird::start(&namespace, &configuration(asn))?;
                Ok(Router { asn, name, bird, namespace })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self { routers, hosts, services, _receivers: receivers, lab, _home: home })
    }

    /// The lab whose wires join the ASes, if they are joined by one.
    pub fn lab(&self) -> Option<&Lab> {
        self.lab.as_ref()
    }

    /// The router of an AS.
    ///
    /// # Panics
    ///
    /// When there is no such AS among the ten.
    pub fn router(&self, asn: u32) -> &Router {
        self.routers
            .iter()
            .find(|router| router.asn == asn)
            .unwrap_or_else(|| panic!("no AS {asn}"))
    }

    /// The routers, by AS number.
    pub fn routers(&self) -> &[Router] {
        &self.routers
    }

    /// The host of an AS: ENT_A-testPC (20), ENT_B-testPC (21), the central service (11).
    ///
    /// # Panics
    ///
    /// When the AS has no host.
    pub fn host(&self, asn: u32) -> &Namespace {
        pick(&self.hosts, asn)
    }

    /// The service host behind a site's router (12, 13): `nigh run` belongs here.
    ///
    /// # Panics
    ///
    /// When the AS is no site.
    pub fn service(&self, asn: u32) -> &Namespace {
        pick(&self.services, asn)
    }

    /// Waits until every router has a route to every other AS's prefix, both families; the service's
    /// prefixes are not counted. Returns how long that took.
    ///
    /// # Errors
    ///
    /// Names the routers that still lack routes after `timeout`.
    pub fn converge(&self, timeout: Duration) -> Result<Duration, Error> {
        let wanted = SYSTEMS.len();
        let complete = |router: &Router, family| {
            router.routes(family).is_ok_and(|routes| {
                let other = |route: &&Route| {
                    route.best && route.prefix != PREFIX4 && route.prefix != PREFIX6
                };
                routes.iter().filter(other).count() == wanted
            })
        };
        let mut lacking: Vec<&Router> = self.routers.iter().collect();
        let done = wait_until("all routes at all routers", timeout, || {
            lacking.retain(|router| !complete(router, Family::V4) || !complete(router, Family::V6));
            lacking.is_empty()
        });
        done.map_err(|error| {
            let names: Vec<_> = lacking.iter().map(|router| router.name).collect();
            Error::new(error.what, format!("{}; incomplete: {}", error.why, names.join(", ")))
        })
    }
}

fn pick(from: &[(u32, Namespace)], asn: u32) -> &Namespace {
    let found = from.iter().find(|(of, _)| *of == asn);
    found.map(|(_, namespace)| namespace).unwrap_or_else(|| panic!("no host in AS {asn}"))
}

fn no_such(asn: u32) -> Error {
    Error::new(format!("AS {asn}"), "not among the ten")
}

fn link4(net: u8, end: u8) -> String {
    format!("172.16.0.{}", net + end)
}

fn link6(net: u8, end: u8) -> String {
    format!("2001:db8:ffff:{net}::{}", net + end)
}

/// The network between a site's router (.1) and its service host (.2); it is announced to nobody.
fn site4(asn: u32, end: u8) -> String {
    format!("172.16.{asn}.{end}")
}

fn site6(asn: u32, end: u8) -> String {
    format!("2001:db8:fffe:{asn}::{end}")
}

/// Adds a link between two ASes to a scene as a wire: the label and the namespace of either router.
fn wire(
    scene: &mut String,
    net: u8,
    low: (&str, &Namespace),
    high: (&str, &Namespace),
    milliseconds: u32,
) {
    scene.push_str("[[wire]]\nbetween = [\n");
    for ((label, namespace), (other, _), end) in [(low, high, 1), (high, low, 2)] {
        let _ = writeln!(
            scene,
            "  {{ name = \"{label}\", namespace = \"{}\", interface = \"{other}\", \
             address = [\"{}/30\", \"{}/64\"] }},",
            namespace.name(),
            link4(net, end),
            link6(net, end),
        );
    }
    let _ = writeln!(scene, "]\ndelay = \"{milliseconds}ms\"");
}

fn host(asn: u32, label: &str, router: &Namespace) -> Result<Namespace, Error> {
    let namespace = Namespace::new(label)?;
    let (gateway4, gateway6) = (format!("{asn}.0.0.1"), format!("2001:db8:{asn}::1"));
    link(
        End::new(router, "lan")
            .address(&format!("{gateway4}/8"))
            .address(&format!("{gateway6}/64")),
        End::new(&namespace, "eth0")
            .address(&format!("{asn}.0.0.10/8"))
            .address(&format!("2001:db8:{asn}::10/64")),
    )?;
    default_routes(&namespace, &gateway4, &gateway6)?;
    Ok(namespace)
}

fn service_host(asn: u32, label: &str, router: &Namespace) -> Result<Namespace, Error> {
    let namespace = Namespace::new(label)?;
    let (gateway4, gateway6) = (site4(asn, 1), site6(asn, 1));
    link(
        End::new(router, "service")
            .address(&format!("{gateway4}/30"))
            .address(&format!("{gateway6}/64")),
        End::new(&namespace, "eth0")
            .address(&format!("{}/30", site4(asn, 2)))
            .address(&format!("{}/64", site6(asn, 2)))
            .address(&format!("{}/32", station_address(asn))),
    )?;
    default_routes(&namespace, &gateway4, &gateway6)?;
    router.check(&["ip", "route", "add", &station_address(asn), "via", &site4(asn, 2)])?;
    Ok(namespace)
}

fn default_routes(namespace: &Namespace, gateway4: &str, gateway6: &str) -> Result<(), Error> {
    namespace.check(&["ip", "route", "add", "default", "via", gateway4])?;
    namespace.check(&["ip", "-6", "route", "add", "default", "via", gateway6]).map(drop)
}

/// The name of the BGP protocol towards an AS in a router's BIRD.
pub fn protocol(neighbour: u32) -> String {
    format!("peer{neighbour}")
}

/// The sections `[echo]` and `[anycast]` of the `nigh run` at a site, all else as it is by default.
pub fn site_sections(asn: u32) -> String {
    let (router, own, next) = (site4(asn, 1), site4(asn, 2), site6(asn, 2));
    format!(
        r#"[echo]
interfaces = ["eth0"]
addresses = ["{SERVICE4}", "{SERVICE6}"]

[anycast]
prefixes = ["{PREFIX4}", "{PREFIX6}"]

[[anycast.upstream]]
name = "site-router"
type = "bgp"
peer = "{router}"
peer_as = {asn}
local_as = {asn}
local_address = "{own}"
next_hop6 = "{next}"
"#
    )
}

/// A configuration of BIRD for a site's service host that announces what `nigh run` would: the
/// stand-in with which the testbed itself is tested.
pub fn stand_in(asn: u32) -> String {
    format!(
        "router id {own};\nprotocol device {{}}\n\
         protocol static own4 {{ ipv4; route {PREFIX4} blackhole; }}\n\
         protocol static own6 {{ ipv6; route {PREFIX6} blackhole; }}\n\
         protocol bgp site {{\n local {own} as {asn};\n neighbor {router} as {asn};\n direct;\n \
         connect delay time 0;\n ipv4 {{ import none; export all; next hop self; }};\n \
         ipv6 {{ import none; export all; next hop self; }};\n}}\n",
        own = site4(asn, 2),
        router = site4(asn, 1),
    )
}

/// The configuration of a router, after the paper's: one neighbour statement for each link, and the
/// AS's own network.
fn configuration(asn: u32) -> String {
    let links = LINKS.iter().filter_map(|&(net, low, high)| match asn {
        _ if asn == low => Some((net, 1, 2, high)),
        _ if asn == high => Some((net, 2, 1, low)),
        _ => None,
    });
    let links: Vec<_> = links.collect();
    let id = links.first().map(|&(net, own, ..)| link4(net, own)).unwrap_or_default();
    let mut text = format!(
        "router id {id};\n\
         protocol device {{}}\n\
         protocol kernel {{ ipv4 {{ import none; export where source = RTS_BGP; }}; }}\n\
         protocol kernel {{ ipv6 {{ import none; export where source = RTS_BGP; }}; }}\n\
         # RFC 8326: a path that is about to go is the last to be taken.\n\
         filter learned {{ if (65535, 0) ~ bgp_community then bgp_local_pref = 0; accept; }}\n\
         template bgp neighbour {{\n\
         \x20 hold time 9;\n  connect delay time 0;\n  connect retry time 1;\n\
         \x20 error wait time 1, 2;\n  error forget time 5;\n}}\n"
    );
    if SITES.contains(&asn) {
        // The service's network is announced by the service, as long as that is well.
        text.push_str(&format!(
            "protocol bgp site from neighbour {{\n  local {router} as {asn};\n  \
             neighbor {service} as {asn};\n  direct;\n  passive;\n  \
             ipv4 {{ import where net = {PREFIX4}; export none; }};\n  \
             ipv6 {{ import where net = {PREFIX6}; export none; }};\n}}\n",
            router = site4(asn, 1),
            service = site4(asn, 2),
        ));
    }
    text.push_str(&format!(
        "protocol static own4 {{ ipv4; route {asn}.0.0.0/8 blackhole; }}\n\
         protocol static own6 {{ ipv6; route 2001:db8:{asn}::/48 blackhole; }}\n"
    ));
    if asn == 4 {
        // The oracle's host hears everything and says nothing.
        text.push_str(&format!(
            "protocol bgp oracle from neighbour {{\n  local {ORACLE_ROUTER4} as {asn};\n  \
             neighbor {ORACLE4} as {asn};\n  passive;\n  \
             ipv4 {{ import none; export all; next hop self; }};\n}}\n"
        ));
    }
    for (net, own, other, neighbour) in links {
        text.push_str(&format!(
            "protocol bgp {} from neighbour {{\n  local {} as {asn};\n  neighbor {} as {neighbour};\n  \
             ipv4 {{ import filter learned; export all; }};\n  \
             ipv6 {{ import filter learned; export all; }};\n}}\n",
            protocol(neighbour),
            link4(net, own),
            link4(net, other),
        ));
    }
    text
}
