//! The way of packets, searched beside the engine: what routing knows is fetched from it first, and then
//! what the links of the path do now.

use super::{Context, FindError, Path, PathHop, ReplyError, find::End, inspect::settings};
use crate::{LinkId, LinkSettings, Nanos, NodeId, RoutePolicy, Router, settings::Loss};
use rustc_hash::FxHashSet;
use std::net::IpAddr;

/// Searches for paths as the engine's own routing does.
#[derive(Debug)]
pub(super) struct Routes {
    router: Router,
    unusable: FxHashSet<LinkId>,
}

impl Routes {
    pub(super) fn new(policy: RoutePolicy, capacity: usize) -> Self {
        Self { router: Router::new(policy, capacity), unusable: FxHashSet::default() }
    }

    /// Learns what the engine's routing knows.
    fn learn(&mut self, unusable: FxHashSet<LinkId>) {
        for link in self.unusable.difference(&unusable) {
            self.router.set_usable(*link, true);
        }
        for link in unusable.difference(&self.unusable) {
            self.router.set_usable(*link, false);
        }
        self.unusable = unusable;
    }

    /// The path of the first flow.
    pub(super) fn path(
        &mut self,
        lab: &Context,
        from: &str,
        to: &str,
    ) -> Result<Path, ReplyError> {
        let (start, end) = (lab.finder().end(from)?, lab.finder().end(to)?);
        let address = end.address.ok_or_else(|| FindError::NoAddress(to.to_owned()))?;
        self.learn(lab.handle().call(|engine, _| engine.unusable().collect())?);
        let network = lab.network();
        let mut links = Vec::new();
        let result = self.router.path(network, start.node, end.node, address, 0, &mut links);
        let asked = links.clone();
        let (now, down) =
            lab.handle().call(move |engine, _| (settings(engine, asked), engine.nodes_down()))?;
        let is_down = |node: NodeId| down.binary_search(&node).is_ok();
        let mut path = Path {
            from: from.to_owned(),
            to: to.to_owned(),
            address,
            hops: Vec::new(),
            stopped: None,
            several: matches!(result, Ok(true)) || result.is_err_and(|no_path| no_path.forks),
            delay: Nanos::ZERO,
            rate: None,
            bottleneck: None,
            mtu: None,
            loss: 0.0,
        };
        path.hops.push(PathHop {
            node: lab.name(start.node),
            address: first_address(lab, &start, address),
            delay: Nanos::ZERO,
            link: None,
        });
        if is_down(start.node) {
            path.stopped = Some(format!("node {} is down", lab.name(start.node)));
        }
        for (link, settings) in now {
            if path.stopped.is_some() {
                break;
            }
            let to = network.to(link);
            if !settings.up {
                path.stopped = Some(format!("link {} is down", lab.link_name(link)));
            } else if is_down(to) {
                path.stopped = Some(format!("node {} is down", lab.name(to)));
            } else {
                path.pass(link, &settings, lab, to);
            }
        }
        match result {
            Err(no_path) if path.stopped.is_none() => {
                path.stopped = Some(format!("{} has no route", lab.name(no_path.at)));
            }
            _ => {}
        }
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

/// The address by which the first node answers.
fn first_address(lab: &Context, start: &End, like: IpAddr) -> Option<IpAddr> {
    lab.finder().addresses(start.node).into_iter().find(|own| own.is_ipv4() == like.is_ipv4())
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
