//! A host inside, the gate that routes, and a host outside.

use datapath::gate::{Gate, Settings};
use testbed::{End, Namespace, link};

pub(crate) struct Site {
    pub(crate) client: Namespace,
    pub(crate) router: Namespace,
    pub(crate) server: Namespace,
}

/// Addresses of the host outside.
pub(crate) const SERVER: [&str; 2] = ["192.0.2.7", "2001:db8:2::7"];
/// Addresses of the host inside.
pub(crate) const CLIENT: [&str; 2] = ["10.0.0.5", "2001:db8:1::5"];

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(|end| end)
    }

    /// With every end changed.
    pub(crate) fn with(change: impl Fn(End<'_>) -> End<'_>) -> Self {
        let [client, router, server] =
            ["client", "router", "server"].map(|label| Namespace::new(label).unwrap());
        link(
            change(End::new(&client, "eth0").address("10.0.0.5/24").address("2001:db8:1::5/64")),
            change(End::new(&router, "inside").address("10.0.0.1/24").address("2001:db8:1::1/64")),
        )
        .unwrap();
        link(
            change(
                End::new(&router, "outside").address("192.0.2.1/24").address("2001:db8:2::1/64"),
            ),
            change(End::new(&server, "eth0").address("192.0.2.7/24").address("2001:db8:2::7/64")),
        )
        .unwrap();
        router.sysctl(&[("ipv4.ip_forward", "1"), ("ipv6.conf.all.forwarding", "1")]).unwrap();
        for (host, four, six) in
            [(&client, "10.0.0.1", "2001:db8:1::1"), (&server, "192.0.2.1", "2001:db8:2::1")]
        {
            host.check(&["ip", "route", "add", "default", "via", four]).unwrap();
            host.check(&["ip", "-6", "route", "add", "default", "via", six]).unwrap();
        }
        Self { client, router, server }
    }

    /// The inside interface's index.
    pub(crate) fn inside(&self) -> u32 {
        self.router.enter(|| nix::net::if_::if_nametoindex("inside")).unwrap()
    }

    /// A gate on it that goes with the test.
    pub(crate) fn gate(&self) -> Gate {
        let gate = Gate::open(&settings()).unwrap();
        self.attach(&gate);
        gate
    }

    pub(crate) fn attach(&self, gate: &Gate) {
        let inside = self.inside();
        self.router.enter(|| gate.attach(inside)).unwrap();
    }
}

/// Small tables, nothing pinned.
pub(crate) fn settings() -> Settings {
    Settings {
        pin: None,
        max_flows: 4096,
        fresh_flows: 4096,
        refusals: 1024,
        ring_bytes: 4 << 20,
        ..Settings::default()
    }
}
