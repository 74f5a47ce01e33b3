//! Nonces of the server: made without memory, and each count taken once.
//!
//! A nonce is its age and number with a keyed hash of both, so one that is ours is known again without having been
//! kept. Which counts of it are used is kept from its first good use on, for the newest nonces alone: whoever has
//! an older one is given a new one. So nothing is taken twice, and memory is bounded.

use config::hex;
use ring::hmac;
use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long a nonce may be used. An update stream that is open goes on.
pub(super) const LIFETIME: Duration = Duration::from_secs(600);
/// Of so many nonces at most it is kept which counts are used.
pub(super) const MOST: usize = 4096;
/// Counts may arrive so much later than higher ones: requests on one HTTP/2 connection overtake each other.
const WINDOW: u32 = u64::BITS;
/// Bytes of the keyed hash in a nonce.
const TAG: usize = 32;

/// The result of checking a nonce with its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It is taken, for the first and only time.
    First,
    /// The nonce is not ours, too old, or so is the count.
    Stale,
    /// It was taken before.
    Again,
}

/// Makes and takes nonces.
pub(super) struct Nonces {
    key: hmac::Key,
    start: Instant,
    next: AtomicU64,
    used: Mutex<Used>,
}

/// The nonces that were used, by their numbers.
#[derive(Default)]
struct Used {
    counts: BTreeMap<u64, Counts>,
    /// Of nonces with smaller numbers than this those that are not in `counts` are forgotten.
    known: u64,
}

/// Which counts of a nonce were used.
#[derive(Clone, Copy, Default)]
struct Counts {
    highest: u32,
    /// The lowest bit stands for the highest count.
    seen: u64,
}

impl Counts {
    fn take(&mut self, count: u32) -> Use {
        if count > self.highest {
            let shift = count - self.highest;
            self.seen = self.seen.checked_shl(shift).unwrap_or(0) | 1;
            self.highest = count;
            return Use::First;
        }
        let behind = self.highest - count;
        if behind >= WINDOW {
            return Use::Stale;
        }
        let bit = 1 << behind;
        if self.seen & bit != 0 {
            return Use::Again;
        }
        self.seen |= bit;
        Use::First
    }
}

impl Nonces {
    pub(super) fn new() -> Nonces {
        Nonces {
            key: hmac::Key::new(hmac::HMAC_SHA256, &rand::random::<[u8; 32]>()),
            start: Instant::now(),
            next: AtomicU64::new(0),
            used: Mutex::default(),
        }
    }

    /// A new nonce.
    pub(super) fn make(&self, now: Instant) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut message = [0; 16];
        message[..8].copy_from_slice(&self.clock(now).to_be_bytes());
        message[8..].copy_from_slice(&number.to_be_bytes());
        let tag = hmac::sign(&self.key, &message);
        hex::encode(&message) + &hex::encode(tag.as_ref())
    }

    /// Takes a nonce with a count.
    pub(super) fn take(&self, nonce: &str, count: u32, now: Instant) -> Use {
        let Some((made, number)) = self.read(nonce) else { return Use::Stale };
        if self.clock(now).saturating_sub(made) > LIFETIME.as_millis() as u64 {
            return Use::Stale;
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if number < used.known && !used.counts.contains_key(&number) {
            return Use::Stale;
        }
        let taken = used.counts.entry(number).or_default().take(count);
        if used.counts.len() > MOST
            && let Some((oldest, _)) = used.counts.pop_first()
        {
            used.known = used.known.max(oldest + 1);
        }
        taken
    }

    /// When a nonce of ours was made, and its number.
    fn read(&self, nonce: &str) -> Option<(u64, u64)> {
        let bytes: [u8; 16 + TAG] = hex::array(nonce)?;
        let (message, tag) = bytes.split_at(16);
        hmac::verify(&self.key, message, tag).ok()?;
        let (made, number) = message.split_at(8);
        Some((
            u64::from_be_bytes(made.try_into().ok()?),
            u64::from_be_bytes(number.try_into().ok()?),
        ))
    }

    /// Milliseconds since the start.
    fn clock(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_taken_once_in_any_order() {
        let (nonces, now) = (Nonces::new(), Instant::now());
        let nonce = nonces.make(now);
        for (count, taken) in [
            (1, Use::First),
            (1, Use::Again),
            (3, Use::First),
            (2, Use::First),
            (2, Use::Again),
            (66, Use::First),
            (3, Use::Again),
            (2, Use::Stale),
            (u32::MAX, Use::First),
            (66, Use::Stale),
            (u32::MAX, Use::Again),
        ] {
            assert_eq!(nonces.take(&nonce, count, now), taken, "{count}");
        }
    }

    #[test]
    fn a_nonce_is_ours_and_young() {
        let (nonces, now) = (Nonces::new(), Instant::now());
        let nonce = nonces.make(now);
        assert_eq!(nonce.len(), 96);
        assert_eq!(Nonces::new().take(&nonce, 1, now), Use::Stale, "another server's");
        for index in 0..nonce.len() {
            let mut other: Vec<char> = nonce.chars().collect();
            other[index] = if other[index] == '0' { '1' } else { '0' };
            let other: String = other.into_iter().collect();
            assert_eq!(nonces.take(&other, 1, now), Use::Stale, "{other}");
        }
        for other in ["", "0", &nonce[1..], &format!("{nonce}0"), &"é".repeat(48)] {
            assert_eq!(nonces.take(other, 1, now), Use::Stale, "{other}");
        }
        assert_eq!(nonces.take(&nonce, 1, now + LIFETIME), Use::First);
        assert_eq!(nonces.take(&nonce, 2, now + LIFETIME + Duration::from_secs(1)), Use::Stale);
    }

    /// The oldest are forgotten, and what is forgotten is stale, not taken again.
    #[test]
    fn memory_is_bounded() {
        let (nonces, now) = (Nonces::new(), Instant::now());
        let unused = nonces.make(now);
        let made: Vec<_> = (0..MOST + 2).map(|_| nonces.make(now)).collect();
        for nonce in &made {
            assert_eq!(nonces.take(nonce, 1, now), Use::First);
        }
        assert_eq!(nonces.used.lock().expect("not poisoned").counts.len(), MOST);
        for nonce in [&unused, &made[0], &made[1]] {
            assert_eq!(nonces.take(nonce, 1, now), Use::Stale);
            assert_eq!(nonces.take(nonce, 2, now), Use::Stale);
        }
        assert_eq!(nonces.take(&made[2], 1, now), Use::Again);
        assert_eq!(nonces.take(&made[2], 2, now), Use::First);
    }
}
