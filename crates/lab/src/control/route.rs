//! The path of packets and the links on it, as the engine would send them now.

use super::{Context, FindError, Path, PathHop, ReplyError, inspect::settings};
use crate::{LinkId, LinkSettings, Nanos, NodeId, engine::End, settings::Loss};
use std::net::IpAddr;

impl Context {
    /// The path of packets from one node to another.
    ///
    /// # Errors
    /// When there is no such node, or the lab ends.
    pub fn path(&self, from: &str, to: &str) -> Result<Path, ReplyError> {
        let (start, end) = (self.finder().end(from)?, self.finder().end(to)?);
        let address = end.address.ok_or_else(|| FindError::NoAddress(to.to_owned()))?;
        let node = start.node;
        let ends = [(node, from), (end.node, to)];
        if let Some((_, name)) = ends.into_iter().find(|(node, _)| self.is_system(*node)) {
            return Err(ReplyError::NotRouted(name.to_owned()));
        }
        let port = start.host.as_deref().and_then(|host| self.port(host));
        let (found, links, down, gateway) = self.handle().call(move |engine, _| {
            let found = engine.path(node, address, 0);
            let links = settings(engine, found.links.clone());
            let gateway = port.and_then(|port| match address {
                IpAddr::V4(_) => engine.gateway4(port).map(IpAddr::V4),
                IpAddr::V6(_) => engine.gateway6(port).map(IpAddr::V6),
            });
            (found, links, engine.nodes_down(), gateway)
        })?;
        let is_down = |node: NodeId| down.binary_search(&node).is_ok();
        let mut own = self.finder().addresses(node).into_iter();
        let mut path = Path {
            from: from.to_owned(),
            to: to.to_owned(),
            address,
            hops: vec![PathHop {
                node: self.name(node),
                // A host knows the first node by the address on its own link.
                address: gateway.or_else(|| own.find(|own| own.is_ipv4() == address.is_ipv4())),
                delay: Nanos::ZERO,
                link: None,
            }],
            host: None,
            stopped: is_down(node).then(|| format!("node {} is down", self.name(node))),
            ecmp: found.forks,
            delay: Nanos::ZERO,
            rate: None,
            bottleneck: None,
            mtu: None,
            loss: 0.0,
        };
        for (link, settings) in links {
            if path.stopped.is_some() {
                return Ok(path);
            }
            let to = self.network().to(link);
            if !settings.up {
                path.stopped = Some(format!("link {} is down", self.link_name(link)));
            } else if is_down(to) {
                path.stopped = Some(format!("node {} is down", self.name(to)));
            } else {
                path.pass(link, &settings, self, to);
            }
        }
        let last = path.hops.last().map_or("", |hop| &hop.node);
        let why = match found.end {
            End::Node => None,
            End::Port(_) => {
                path.host = end.host;
                None
            }
            End::NoHost => Some(format!("no host behind {last} has {address}")),
            End::Broadcast => Some(format!("{address} is a broadcast address")),
            End::NoRoute => Some(format!("{last} has no route")),
            End::TooFar => Some(format!(
                "packets do not reach {address} within {} links: there is a routing loop, or the path is too long",
                path.hops.len() - 1
            )),
            End::Prohibited => Some(format!("{last} does not let packets pass to {address}")),
        };
        path.stopped = path.stopped.or(why);
        Ok(path)
    }
}

impl Path {
    /// Adds a link and the node that it leads to.
    fn pass(&mut self, link: LinkId, settings: &LinkSettings, lab: &Context, to: NodeId) {
        self.delay += settings.delay;
        self.mtu = Some(self.mtu.map_or(settings.mtu, |mtu| mtu.min(settings.mtu)));
        if let Some(rate) = settings.rate
            && self.rate.is_none_or(|least| rate < least)
        {
            self.rate = Some(rate);
            self.bottleneck = Some(lab.link_name(link));
        }
        self.loss = 1.0 - (1.0 - self.loss) * (1.0 - loss(settings));
        self.hops.push(PathHop {
            node: lab.name(to),
            address: far_address(lab, link, self.address),
            delay: self.delay,
            link: Some(*settings),
        });
    }
}

/// The share of packets that a link loses in the long run.
fn loss(settings: &LinkSettings) -> f64 {
    match settings.loss {
        Loss::None => 0.0,
        Loss::Independent(share) => share.as_f64(),
        Loss::GilbertElliott { to_bad, to_good, in_good, in_bad } => {
            let (to_bad, to_good) = (to_bad.as_f64(), to_good.as_f64());
            // A wire that never changes stays good.
            let bad = if to_bad == 0.0 { 0.0 } else { to_bad / (to_bad + to_good) };
            (1.0 - bad) * in_good.as_f64() + bad * in_bad.as_f64()
        }
    }
}

/// The address of the interface at the far end of a link, of the same family as another.
fn far_address(lab: &Context, link: LinkId, like: IpAddr) -> Option<IpAddr> {
    let network = lab.network();
    let interface = network.reverse(link).and_then(|back| match like {
        IpAddr::V4(_) => network.interface4(back).map(IpAddr::V4),
        IpAddr::V6(_) => network.interface6(back).map(IpAddr::V6),
    });
    let own = || lab.finder().addresses(network.to(link)).into_iter();
    interface.or_else(|| own().find(|address| address.is_ipv4() == like.is_ipv4()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_in_bursts_is_that_of_the_long_run() {
        for (words, right) in [
            ("loss=none", 0.0),
            ("loss=25%", 0.25),
            ("loss=to_bad=10%,to_good=30%", 0.25),
            ("loss=to_bad=10%,to_good=30%,in_good=20%,in_bad=60%", 0.3),
        ] {
            let settings = words.parse().expect("settings");
            assert!((loss(&settings) - right).abs() < 1e-6, "{words}");
        }
    }
}
