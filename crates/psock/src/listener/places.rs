//! Places for connections whose handshake has not ended. When all are taken, a newcomer gets one of a source
//! that has more, whose oldest handshake then ends.

use permits::{Full, Holding, gives_way};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::Notify;

/// The places of a listener.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    most_per_source: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    handshakes: HashMap<u64, Handshake>,
}

#[derive(Debug)]
struct Handshake {
    source: IpAddr,
    since: Instant,
    ends: Arc<Notify>,
}

impl Places {
    /// At most `most` places, and `most_per_source` for one source.
    pub(super) fn new(most: usize, most_per_source: usize) -> Arc<Self> {
        Arc::new(Self { most, most_per_source, taken: Mutex::default() })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from `source`.
    ///
    /// # Errors
    ///
    /// Which limit is reached.
    pub(super) fn take(self: &Arc<Self>, source: IpAddr) -> Result<Place, Full> {
        let mut taken = self.taken();
        let handshakes = taken.handshakes.values();
        if handshakes.filter(|one| one.source == source).count() >= self.most_per_source {
            return Err(Full::Source);
        }
        if taken.handshakes.len() >= self.most {
            let holding = |(key, one): (&u64, &Handshake)| Holding {
                key: *key,
                source: one.source,
                idle: false,
                last: one.since,
            };
            let all = taken.handshakes.iter().map(holding).collect();
            let victim = gives_way(all, source).and_then(|key| taken.handshakes.remove(&key));
            victim.ok_or(Full::All)?.ends.notify_one();
        }
        let (number, ends) = (taken.next, Arc::<Notify>::default());
        taken.next += 1;
        let one = Handshake { source, since: Instant::now(), ends: Arc::clone(&ends) };
        taken.handshakes.insert(number, one);
        Ok(Place { places: Arc::clone(self), number, ends })
    }
}

/// A place that is taken; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    ends: Arc<Notify>,
}

impl Place {
    /// Waits until another has got it.
    pub(super) async fn is_lost(&self) {
        self.ends.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().handshakes.remove(&self.number);
    }
}
