//! Places for connections, in all and for each source. When all are taken, a newcomer may get one of another
//! source, whose connection then ends ([`gives_way`]).

use super::progress::Progress;
use crate::alto::counters::{Counters, Refusal};
use permits::{Full, Holding, gives_way};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// The places of one server.
pub(super) struct Places {
    most: usize,
    most_per_source: usize,
    taken: Mutex<Taken>,
    left: Notify,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    connections: HashMap<u64, Arc<Progress>>,
}

impl Places {
    /// At most `most` places, and `most_per_source` for one source.
    pub(super) fn new(most: usize, most_per_source: usize, counters: Arc<Counters>) -> Arc<Places> {
        let (taken, left) = (Mutex::default(), Notify::new());
        Arc::new(Places { most, most_per_source, taken, left, counters })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from `source`, free or of another, whose connection then ends.
    ///
    /// # Errors
    ///
    /// Which limit is reached.
    pub(super) fn take(self: &Arc<Self>, source: IpAddr) -> Result<Place, Full> {
        let mut taken = self.taken();
        let own = taken.of(source);
        if own >= self.most_per_source {
            return Err(Full::Source);
        }
        if taken.connections.len() >= self.most {
            let victim = gives_way(taken.holdings(), source).ok_or(Full::All)?;
            self.evict(&mut taken, victim);
        }
        let progress = Progress::new(source);
        let number = taken.next;
        taken.next += 1;
        taken.connections.insert(number, progress.clone());
        self.counters.open.up();
        Ok(Place { places: self.clone(), number, progress })
    }

    /// Ends the connection of `source` whose client has not taken its answer for longest; if there is none, one
    /// with exchanges that wait for something else, or an idle one. False if the source has none at all.
    pub(super) fn evict_of(&self, source: IpAddr) -> bool {
        let mut taken = self.taken();
        let connections = taken.connections.iter();
        let victim = connections
            .filter(|(_, progress)| progress.source == source)
            .map(|(number, progress)| (progress.stuck(), *number))
            .min()
            .map(|(_, number)| number);
        if let Some(victim) = victim {
            self.evict(&mut taken, victim);
        }
        victim.is_some()
    }

    /// The place is free at once; the connection ends as soon as its task runs.
    fn evict(&self, taken: &mut Taken, victim: u64) {
        if let Some(progress) = taken.connections.remove(&victim) {
            self.counters.refuse(Refusal::Evicted);
            progress.evict();
        }
    }

    /// Whether all are free.
    pub(super) fn are_free(&self) -> bool {
        self.taken().connections.is_empty()
    }

    /// Waits until a connection has left, at most until `end`.
    pub(super) async fn one_left(&self, end: Instant) {
        let _ = timeout_at(end, self.left.notified()).await;
    }
}

impl Taken {
    fn of(&self, source: IpAddr) -> usize {
        self.connections.values().filter(|progress| progress.source == source).count()
    }

    fn holdings(&self) -> Vec<Holding<u64>> {
        let holding = |(key, progress): (&u64, &Arc<Progress>)| {
            let (idle, last) = progress.idle();
            Holding { key: *key, source: progress.source, idle, last: last.into_std() }
        };
        self.connections.iter().map(holding).collect()
    }
}

/// A place that is taken.
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    /// Of the connection in this place.
    pub(super) progress: Arc<Progress>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().connections.remove(&self.number);
        self.places.counters.open.down();
        self.places.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn source(host: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, host])
    }

    fn is_evicted(place: &Place) -> bool {
        place.progress.evicted().now_or_never().is_some()
    }

    #[tokio::test]
    async fn a_newcomer_gets_the_longest_idle_place_of_the_fullest_source() {
        let places = Places::new(5, 4, Arc::default());
        let full: Vec<_> = (0..4).map(|_| places.take(source(1)).unwrap()).collect();
        assert_eq!(places.take(source(1)).err(), Some(Full::Source));
        let asking = full[0].progress.begin();
        let first = places.take(source(2)).unwrap();
        let _second = places.take(source(2)).unwrap();
        assert!(!is_evicted(&full[0]), "it asks something");
        assert!(is_evicted(&full[1]));
        assert!(!is_evicted(&full[2]));
        // The sources have three and two: no more is moved between them.
        assert_eq!(places.take(source(2)).err(), Some(Full::All));
        let _other = places.take(source(3)).unwrap();
        assert!(is_evicted(&full[2]));
        assert!(!is_evicted(&first));
        drop(asking);
        assert_eq!(places.counters.figures().refused["evicted"], 2);
    }

    #[tokio::test]
    async fn memory_is_freed_by_who_has_waited_for_longest() {
        let places = Places::new(5, 4, Arc::default());
        let all: Vec<_> = (0..3).map(|_| places.take(source(1)).unwrap()).collect();
        let _asking = [all[1].progress.begin(), all[2].progress.begin()];
        assert!(!places.evict_of(source(2)));
        assert!(places.evict_of(source(1)));
        assert!(is_evicted(&all[1]), "the others are idle, or have begun later");
        drop(all);
        assert!(places.are_free());
    }
}
