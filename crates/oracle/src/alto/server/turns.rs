//! Turns for work: a few at once in all. A source waits for its own turns first and so has at most as many requests
//! in the queue that all share: who asks much does not delay who asks little.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns of one server.
pub(super) struct Turns {
    most: usize,
    all: Arc<Semaphore>,
    by_source: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
}

/// A turn, until it is dropped.
pub(super) struct Turn {
    _all: Option<OwnedSemaphorePermit>,
    _own: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// At most `most` turns at once.
    pub(super) fn new(most: usize) -> Turns {
        Turns { most, all: Arc::new(Semaphore::new(most)), by_source: Mutex::default() }
    }

    fn of(&self, source: IpAddr) -> Arc<Semaphore> {
        let mut by_source = self.by_source.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = by_source.get(&source).and_then(Weak::upgrade) {
            return own;
        }
        by_source.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(self.most));
        by_source.insert(source, Arc::downgrade(&own));
        own
    }

    /// Waits for a turn.
    pub(super) async fn take(&self, source: IpAddr) -> Turn {
        // Semaphores that are never closed give a permit for sure.
        let own = self.of(source).acquire_owned().await.ok();
        let all = self.all.clone().acquire_owned().await.ok();
        Turn { _all: all, _own: own }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_source_with_many_requests_does_not_delay_another() {
        let turns = Turns::new(2);
        let (one, two) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let mut working = vec![turns.take(one).await, turns.take(one).await];
        let mut many: Vec<_> = (0..20).map(|_| turns.take(one).boxed()).collect();
        for waiting in &mut many {
            assert!(waiting.now_or_never().is_none());
        }
        let mut other = turns.take(two).boxed();
        assert!((&mut other).now_or_never().is_none());
        working.clear();
        for waiting in &mut many {
            let _ = waiting.now_or_never();
        }
        assert!(other.now_or_never().is_some());
    }
}
