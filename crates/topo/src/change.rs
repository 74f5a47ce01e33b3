//! What a feed can report of the network, and why a change is refused.

use crate::{
    path::{ExternalPath, LinkKey, LinkProperties},
    value::RouterId,
};
use ipnet::IpNet;

/// One piece of news about the network.
///
/// Feeds speak in any order: a link, a prefix or a route may come before the routers that it names. It
/// waits and counts as soon as they are known. Taking away what is not there is no error. What an
/// operator types ([`Feed::OPERATOR`](crate::Feed::OPERATOR)) is held against what is known instead:
/// see [`Refusal::UnknownRouter`] and [`Refusal::NotThere`].
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// There is a router. Reported again with another name, it is renamed.
    Router {
        /// Its identity.
        id: RouterId,
        /// Its name, for people.
        name: Option<String>,
    },
    /// A router is gone. Its links, prefixes and routes wait for it to come back.
    RemoveRouter(RouterId),
    /// There is a link in one direction, or it has new properties.
    Link {
        /// Its name.
        key: LinkKey,
        /// What it is like.
        properties: LinkProperties,
    },
    /// A link is gone.
    RemoveLink(LinkKey),
    /// Measurements replace properties of all links from one router to another, also after the link's
    /// own feed has sent it again. What is `None` is not measured; a measurement without any value
    /// withdraws the last one.
    Measured {
        /// Where the links begin.
        from: RouterId,
        /// Where they end.
        to: RouterId,
        /// Milliseconds.
        latency: Option<f64>,
        /// Share of packets lost, from 0 to 1.
        loss: Option<f64>,
        /// In the unit of its source.
        congestion: Option<f64>,
    },
    /// A prefix is attached to a router of the network itself.
    Internal {
        /// The prefix.
        prefix: IpNet,
        /// The router.
        router: RouterId,
    },
    /// A prefix is no longer attached to a router.
    RemoveInternal {
        /// The prefix.
        prefix: IpNet,
        /// The router.
        router: RouterId,
    },
    /// An exit router has a route to a prefix in another network.
    Route {
        /// The prefix.
        prefix: IpNet,
        /// The exit router.
        exit: RouterId,
        /// What lies beyond it.
        path: ExternalPath,
    },
    /// An exit router has lost its route to a prefix.
    Withdraw {
        /// The prefix.
        prefix: IpNet,
        /// The exit router.
        exit: RouterId,
    },
    /// Traffic through a router to another takes this link, whatever the weights are.
    NextHop {
        /// The router that forwards.
        at: RouterId,
        /// The router that it is about.
        to: RouterId,
        /// A link that begins at the former.
        via: LinkKey,
    },
    /// A router forwards to another by weight again.
    RemoveNextHop {
        /// The router that forwards.
        at: RouterId,
        /// The router that it is about.
        to: RouterId,
    },
}

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// An operator named a router that is not there.
    #[error("router {0} is not known; create it first")]
    UnknownRouter(RouterId),
    /// An operator named a link that is not there.
    #[error("link {0} is not known; create it first")]
    UnknownLink(LinkKey),
    /// An operator wants to remove what is not there.
    #[error("there is no {0} to remove")]
    NotThere(String),
    /// An operator wants to remove what only a live feed knows, which would report it again.
    #[error("{0} comes from a live feed and cannot be removed by hand")]
    Live(String),
    /// A link joins a router to itself.
    #[error("link {0} begins and ends at the same router")]
    ToItself(LinkKey),
    /// A number is not in its range.
    #[error("{name} {value} is out of range: it must be {range}")]
    Range {
        /// The property.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What is accepted.
        range: &'static str,
    },
    /// The link of a next hop begins at another router.
    #[error("the next hop at router {at} needs a link that begins there, and {via} does not")]
    WrongStart {
        /// The router that forwards.
        at: RouterId,
        /// The link.
        via: LinkKey,
    },
    /// A next hop for the path from a router to itself.
    #[error("router {0} needs no next hop to itself")]
    HopToItself(RouterId),
    /// More than can be numbered.
    #[error("there are already {limit} {what}, which is the limit")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
}

/// A number that may not be NaN, negative or infinite.
fn amount(name: &'static str, value: f64) -> Result<(), Refusal> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(Refusal::Range { name, value, range: "0 or more" })
    }
}

/// A share of a whole.
fn share(name: &'static str, value: f64) -> Result<(), Refusal> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(Refusal::Range { name, value, range: "0 to 1" })
    }
}

impl LinkProperties {
    /// Which property is out of its range.
    pub fn check(&self) -> Result<(), Refusal> {
        amount("bandwidth", self.bandwidth)?;
        amount("latency", self.latency)?;
        amount("congestion", self.congestion)?;
        share("loss", self.loss)
    }
}

impl Change {
    /// What is wrong with the change as such, whatever is known of the network.
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::Link { key, properties } => {
                if key.from == key.to {
                    return Err(Refusal::ToItself(*key));
                }
                properties.check()
            }
            Self::Measured { from, to, latency, loss, congestion } => {
                if from == to {
                    return Err(Refusal::ToItself(LinkKey { from: *from, to: *to, id: 0 }));
                }
                latency.map_or(Ok(()), |value| amount("latency", value))?;
                congestion.map_or(Ok(()), |value| amount("congestion", value))?;
                loss.map_or(Ok(()), |value| share("loss", value))
            }
            Self::NextHop { at, to, via } => {
                if at == to {
                    return Err(Refusal::HopToItself(*at));
                }
                if via.from != *at {
                    return Err(Refusal::WrongStart { at: *at, via: *via });
                }
                if via.from == via.to {
                    return Err(Refusal::ToItself(*via));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
