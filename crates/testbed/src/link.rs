//! Links between namespaces: pairs of veth interfaces.
//!
//! Redirects on a veth reach the peer only when the peer has an XDP program or generic receive
//! offload, so that is on at both ends; for XDP_TX see [`crate::Receiver`]. Frames of the kernel's own TCP and UDP normally
//! cross a veth with unfinished checksums and larger than the MTU; [`End::no_offloads`] makes them
//! look as they would on a wire.

use crate::{Error, LIMIT, Namespace, wait_until};

/// One end of a link, before it is made.
#[derive(Clone, Debug)]
pub struct End<'a> {
    namespace: &'a Namespace,
    interface: String,
    mac: Option<String>,
    addresses: Vec<String>,
    queues: u32,
    mtu: u32,
    offloads: bool,
}

impl<'a> End<'a> {
    /// An end in a namespace, with the interface's name (15 characters at most).
    pub fn new(namespace: &'a Namespace, interface: &str) -> Self {
        let interface = interface.to_owned();
        Self {
            namespace,
            interface,
            mac: None,
            addresses: Vec::new(),
            queues: 1,
            mtu: 1500,
            offloads: true,
        }
    }

    /// Sets the MAC address, such as `02:00:00:00:00:01`.
    pub fn mac(mut self, mac: &str) -> Self {
        self.mac = Some(mac.to_owned());
        self
    }

    /// Adds an address with its prefix length, IPv4 or IPv6; it serves at once.
    pub fn address(mut self, address: &str) -> Self {
        self.addresses.push(address.to_owned());
        self
    }

    /// Sets the number of queues in each direction (1 without).
    pub fn queues(mut self, queues: u32) -> Self {
        self.queues = queues;
        self
    }

    /// Sets the MTU in bytes (1500 without).
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = mtu;
        self
    }

    /// Switches checksum and segmentation offloads off at this end.
    pub fn no_offloads(mut self) -> Self {
        self.offloads = false;
        self
    }

    /// What `ip link add` needs to know of it.
    fn words(&self) -> Vec<String> {
        let mut words = vec!["name".to_owned(), self.interface.clone()];
        words.extend(["netns".to_owned(), self.namespace.name().to_owned()]);
        if let Some(mac) = &self.mac {
            words.extend(["address".to_owned(), mac.clone()]);
        }
        let queues = self.queues.to_string();
        words.extend(["numtxqueues".to_owned(), queues.clone(), "numrxqueues".to_owned(), queues]);
        words
    }

    fn configure(&self) -> Result<(), Error> {
        let name = self.interface.as_str();
        for address in &self.addresses {
            let mut words = vec!["ip", "address", "add", address, "dev", name];
            if address.contains(':') {
                words.push("nodad");
            }
            self.namespace.check(&words)?;
        }
        let mtu = self.mtu.to_string();
        self.namespace.check(&["ip", "link", "set", "dev", name, "mtu", &mtu, "up"])?;
        let mut words = vec!["ethtool", "-K", name, "gro", "on"];
        if !self.offloads {
            words.extend(["tx", "off", "tso", "off", "gso", "off"]);
        }
        self.namespace.check(&words).map(drop)
    }

    /// Whether it carries packets: until the kernel has noticed the carrier, which it does later where
    /// it is busy, it drops what is sent.
    fn is_up(&self) -> bool {
        let words = ["ip", "-oneline", "link", "show", "dev", &self.interface];
        self.namespace.check(&words).is_ok_and(|text| text.contains(" state UP "))
    }
}

/// Two namespaces and a link between their `eth0`, which have the addresses 192.0.2.1/24, 2001:db8::1/64
/// and 02:00:00:00:00:01, and 192.0.2.2/24, 2001:db8::2/64 and 02:00:00:00:00:02.
///
/// # Errors
///
/// Carries the command that failed and its output.
pub fn pair() -> Result<(Namespace, Namespace), Error> {
    pair_of(true)
}

/// The same, where packets leave with finished checksums and no larger than the MTU.
///
/// # Errors
///
/// Carries the command that failed and its output.
pub fn pair_without_offloads() -> Result<(Namespace, Namespace), Error> {
    pair_of(false)
}

fn pair_of(offloads: bool) -> Result<(Namespace, Namespace), Error> {
    let (one, other) = (Namespace::new("one")?, Namespace::new("other")?);
    let end = |namespace, number| {
        let end = End::new(namespace, "eth0")
            .mac(&format!("02:00:00:00:00:0{number}"))
            .address(&format!("192.0.2.{number}/24"))
            .address(&format!("2001:db8::{number}/64"));
        End { offloads, ..end }
    };
    link(end(&one, 1), end(&other, 2))?;
    Ok((one, other))
}

/// Joins two ends with a link, which goes away with either namespace; both carry packets and
/// have their addresses when this returns.
///
/// # Errors
///
/// Carries the command that failed and its output.
pub fn link(one: End<'_>, other: End<'_>) -> Result<(), Error> {
    let (first, second) = (one.words(), other.words());
    let mut words = vec!["ip", "link", "add"];
    words.extend(first.iter().map(String::as_str));
    words.extend(["type", "veth", "peer"]);
    words.extend(second.iter().map(String::as_str));
    one.namespace.check(&words)?;
    one.configure()?;
    other.configure()?;
    wait_until("the link's carrier", LIMIT, || one.is_up() && other.is_up()).map(drop)
}
