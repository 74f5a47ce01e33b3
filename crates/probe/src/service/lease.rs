//! What both ends hold while a test runs.

use super::{
    error::RunError,
    shared::{AcceptedAddress, Shared},
    spec::Job,
};
use crate::station::{Answer, Asker, Lease, PeerError, Request, message::Grant};
use std::{net::IpAddr, sync::Arc, time::Duration};

/// A lease of this station for a test of its own; ends when dropped.
pub(super) struct Own {
    pub(super) shared: Arc<Shared>,
    pub(super) lease: Lease,
}

impl Own {
    /// Begins again, for the request has taken its time.
    pub(super) fn prolong(&self, job: &Job) {
        let until_ns = self.shared.host.now_ns().saturating_add(job.takes.as_nanos() as u64);
        self.shared.host.admission().prolong_own(self.lease, until_ns);
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.shared.host.admission().end_own(self.lease);
    }
}

/// A lease of another station; it ends when this is dropped, or by itself when its time is over.
pub(super) struct Theirs {
    asker: Asker,
    lease: u64,
    _address: AcceptedAddress,
}

impl Theirs {
    /// Goes on for so long from now.
    pub(super) async fn renew(&self, duration: Duration) -> Result<(), PeerError> {
        let duration_ms = duration.as_millis() as u64;
        self.asker.ask(Request::Renew { lease: self.lease, duration_ms }).await.map(drop)
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let (asker, lease) = (self.asker.clone(), self.lease);
        tokio::spawn(async move {
            let _ = asker.ask(Request::End { lease }).await;
        });
    }
}

/// Asks another station to take part.
pub(super) async fn request(
    shared: &Arc<Shared>,
    name: &str,
    address: IpAddr,
    request: Request,
) -> Result<(Theirs, Option<Grant>), RunError> {
    let (config, tls) = (shared.config(), shared.host.tls());
    let asker = shared.peers.asker(&config, tls.as_ref(), name)?;
    match asker.ask(request).await? {
        Answer::Accepted { lease, grant, .. } => {
            let _address = shared.accepted(address);
            Ok((Theirs { asker, lease, _address }, grant))
        }
        _ => Err(PeerError::Answer { name: name.to_owned() }.into()),
    }
}
