//! One announcer for each upstream.
//!
//! The caller sets a [`Desired`] state; the announcer works towards it on its own task, through
//! whatever losses of the session, and keeps an [`Observed`] state that can be read or waited on. Both
//! kinds of upstream, the embedded session and BIRD, look the same from outside.

use crate::{
    bfd, bird,
    config::{BgpUpstream, PasswordError, Upstream},
    observed::{Desired, Observed, Order},
    session,
};
use ipnet::IpNet;
use std::{io, sync::Arc, time::Duration};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
};

/// How long a clean stop may take.
const STOP: Duration = Duration::from_secs(2);

/// The prefixes without host bits.
fn networks(prefixes: Vec<IpNet>) -> Arc<[IpNet]> {
    prefixes.iter().map(IpNet::trunc).collect()
}

/// An announcer could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no usable password for the session.
    #[error("upstream {name}: {error}")]
    Password {
        /// The upstream's name.
        name: String,
        /// Why.
        error: PasswordError,
    },
    /// There can be no BFD session.
    #[error("upstream {name}: BFD: {error}")]
    Bfd {
        /// The upstream's name.
        name: String,
        /// Why.
        error: io::Error,
    },
}

/// A running announcer.
///
/// Dropping it ends its task at once: the embedded session's connection closes and the neighbour
/// withdraws; BIRD is left as it is, unless a panic drops it: then its task withdraws and ends.
/// [`Announcer::stop`] ends it cleanly.
#[derive(Debug)]
pub struct Announcer {
    upstream: Upstream,
    order: watch::Sender<Order>,
    observed: watch::Receiver<Observed>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Announcer {
    /// Starts to work for an upstream: nothing is announced until [`Announcer::set`] asks for it. Must be
    /// called on a tokio runtime.
    ///
    /// # Errors
    /// The file with the session's password is not usable, or the port of BFD not free. An upstream that cannot be
    /// reached is no error: connecting is retried for ever.
    pub fn start(
        upstream: &Upstream,
        prefixes: Vec<IpNet>,
        listener: &bfd::Listener,
    ) -> Result<Self, StartError> {
        let order = Order {
            desired: Desired::Withdrawn,
            prefixes: networks(prefixes),
            attributes: upstream.attributes(),
        };
        let (order, orders) = watch::channel(order);
        let (publish, observed) = watch::channel(Observed::default());
        let (stop, stopped) = oneshot::channel();
        let task = match upstream {
            Upstream::Bgp(config) => {
                let password = config
                    .password()
                    .map_err(|error| StartError::Password { name: config.name.clone(), error })?;
                let bfd = config.bfd.map(|bfd| {
                    let BgpUpstream { name, peer, local_address, .. } = config;
                    bfd::Session::open(name, *peer, *local_address, bfd, listener)
                });
                let bfd = bfd
                    .transpose()
                    .map_err(|error| StartError::Bfd { name: config.name.clone(), error })?;
                let session = session::Session::new(config, password, bfd);
                panics::spawn(session.run(orders, publish, stopped))
            }
            Upstream::Bird(config) => {
                panics::spawn(bird::Announcer::new(config).run(orders, publish, stopped))
            }
        };
        Ok(Self { upstream: upstream.clone(), order, observed, stop: Some(stop), task })
    }

    /// The upstream as configured.
    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The upstream's name.
    pub fn name(&self) -> &str {
        self.upstream.name()
    }

    /// Sets what is to be advertised to the upstream, and returns at once.
    pub fn set(&self, desired: Desired) {
        self.order.send_if_modified(|order| {
            let changed = order.desired != desired;
            order.desired = desired;
            changed
        });
    }

    /// Sets the prefixes; the session stays up and only the difference is sent.
    pub fn set_prefixes(&self, prefixes: Vec<IpNet>) {
        let prefixes = networks(prefixes);
        self.order.send_if_modified(|order| {
            let changed = order.prefixes != prefixes;
            order.prefixes = prefixes;
            changed
        });
    }

    /// Changes to another form of the upstream, for which [`Upstream::same_session`] holds: the session
    /// stays up, and routes whose attributes have changed are advertised again (RFC 4271 section 3.1:
    /// a route replaces the one with the same prefix). Returns whether it could.
    pub fn adopt(&mut self, upstream: &Upstream) -> bool {
        if !self.upstream.same_session(upstream) {
            return false;
        }
        self.upstream = upstream.clone();
        let attributes = upstream.attributes();
        self.order.send_if_modified(|order| {
            let changed = order.attributes != attributes;
            order.attributes = attributes;
            changed
        });
        true
    }

    /// What is to be advertised to the upstream.
    pub fn desired(&self) -> Desired {
        self.order.borrow().desired
    }

    /// What was observed last.
    pub fn observed(&self) -> Observed {
        self.observed.borrow().clone()
    }

    /// Withdraws, sends Cease / Administrative Shutdown (RFC 4486) and ends, within two seconds
    /// whatever the upstream does.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // A task that does not end in time is ended by the drop of `self`.
        let _ = tokio::time::timeout(STOP, &mut self.task).await;
    }
}

impl Drop for Announcer {
    fn drop(&mut self) {
        // The drop of `stop` ends the task, which withdraws.
        if !(std::thread::panicking() && matches!(self.upstream, Upstream::Bird(_))) {
            self.task.abort();
        }
    }
}
