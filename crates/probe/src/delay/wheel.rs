//! A timer wheel: when which session has something to do.
//!
//! Time is cut into ticks, and the wheel has a list for each of the next [`TICKS`] of them; what is due
//! later lies in the same lists and stays there for another turn. Adding is one push, and a turn looks at
//! each list once (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", scheme 6).

/// Lists of the wheel.
const TICKS: usize = 1024;

/// What is due when.
#[derive(Debug)]
pub(super) struct Wheel<T> {
    lists: Vec<Vec<(u64, T)>>,
    tick_ns: u64,
    /// The first tick that was not inspected yet.
    next: u64,
    count: usize,
}

impl<T: Copy> Wheel<T> {
    /// A wheel with ticks of so many nanoseconds, at least one.
    pub(super) fn new(tick_ns: u64) -> Self {
        let lists = (0..TICKS).map(|_| Vec::new()).collect();
        Self { lists, tick_ns: tick_ns.max(1), next: 0, count: 0 }
    }

    /// Adds something; it is due with the tick in which its time lies, never before its time.
    pub(super) fn add(&mut self, due_ns: u64, what: T) {
        let tick = due_ns.div_ceil(self.tick_ns).max(self.next);
        self.lists[(tick % TICKS as u64) as usize].push((tick, what));
        self.count += 1;
    }

    /// Moves what is due by `now_ns` to `out`, earlier ticks first.
    pub(super) fn take(&mut self, now_ns: u64, out: &mut Vec<T>) {
        let now = now_ns / self.tick_ns;
        if now < self.next {
            return;
        }
        // After a long pause each list is checked once.
        let first = self.next.max(now.saturating_sub(TICKS as u64 - 1));
        let before = out.len();
        for tick in first..=now {
            self.lists[(tick % TICKS as u64) as usize].retain(|(due, what)| {
                let stays = *due > now;
                if !stays {
                    out.push(*what);
                }
                stays
            });
        }
        self.count -= out.len() - before;
        self.next = now + 1;
    }

    /// When to look again, at the latest.
    pub(super) fn next_ns(&self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let end = self.next + TICKS as u64;
        let some = |tick: &u64| {
            let list = &self.lists[(*tick % TICKS as u64) as usize];
            list.iter().any(|(due, _)| due <= tick)
        };
        Some((self.next..end).find(some).unwrap_or(end) * self.tick_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_is_given_once_and_as_a_sorted_list_would(
            dues in proptest::collection::vec(0..5_000_000_u64, 0..60),
            steps in proptest::collection::vec(0..2_000_000_u64, 0..12),
        ) {
            let mut wheel = Wheel::new(1000);
            let mut naive = Vec::new();
            for (name, due) in dues.iter().enumerate() {
                wheel.add(*due, name);
                naive.push((due.div_ceil(1000) * 1000, name));
            }
            let mut now = 0;
            for step in steps {
                now += step;
                let mut taken = Vec::new();
                wheel.take(now, &mut taken);
                taken.sort_unstable();
                let (due, rest): (Vec<_>, Vec<_>) = naive.into_iter().partition(|one| one.0 <= now);
                let mut expected: Vec<_> = due.into_iter().map(|one| one.1).collect();
                expected.sort_unstable();
                prop_assert_eq!(taken, expected);
                naive = rest;
                let next = wheel.next_ns();
                prop_assert_eq!(next.is_none(), naive.is_empty());
                if let Some(next) = next {
                    prop_assert!(naive.iter().all(|one| one.0 >= next));
                    prop_assert!(next > now);
                }
            }
        }
    }
}
