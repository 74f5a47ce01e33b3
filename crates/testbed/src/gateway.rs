//! Two hosts and what routes between them.

use crate::{End, Error, Namespace, link};

/// A gateway between two hosts, which have their default routes through it:
///
/// ```text
///   internal eth0 10.61.0.2 ------ 10.61.0.1 lan0  router  wan0 10.62.0.1 ------ 10.62.0.2 eth0 external
///                 2001:db8:61::2   2001:db8:61::1          2001:db8:62::1   2001:db8:62::2
/// ```
#[derive(Debug)]
pub struct Gateway {
    /// The host behind `lan0`.
    pub internal: Namespace,
    /// It forwards.
    pub router: Namespace,
    /// The host behind `wan0`.
    pub external: Namespace,
}

impl Gateway {
    /// The addresses of the internal host.
    pub const INTERNAL: [&str; 2] = ["10.61.0.2", "2001:db8:61::2"];
    /// The addresses of the external host.
    pub const EXTERNAL: [&str; 2] = ["10.62.0.2", "2001:db8:62::2"];

    /// Makes it, with or without the addresses of IPv6, and every end of a link changed.
    ///
    /// # Errors
    ///
    /// Carries the command that failed and its output.
    ///
    /// # Panics
    ///
    /// See [`need_root`](crate::need_root).
    pub fn new(ipv6: bool, change: impl Fn(End<'_>) -> End<'_>) -> Result<Self, Error> {
        let router = Namespace::new("router")?;
        router.forward()?;
        let join = |label, interface, network| {
            let host = Namespace::new(label)?;
            let prefixes =
                [(format!("10.{network}.0."), 24), (format!("2001:db8:{network}::"), 64)];
            let prefixes = &prefixes[..1 + usize::from(ipv6)];
            let end = |namespace, interface, number| {
                let end = End::new(namespace, interface);
                change(prefixes.iter().fold(end, |end, (prefix, length)| {
                    end.address(&format!("{prefix}{number}/{length}"))
                }))
            };
            link(end(&router, interface, 1), end(&host, "eth0", 2))?;
            for (prefix, _) in prefixes {
                host.check(&["ip", "route", "add", "default", "via", &format!("{prefix}1")])?;
            }
            Ok(host)
        };
        let (internal, external) = (join("internal", "lan0", 61)?, join("external", "wan0", 62)?);
        Ok(Self { internal, router, external })
    }
}
