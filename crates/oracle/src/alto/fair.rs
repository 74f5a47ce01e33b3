//! Who gives way when all of something is taken: places for connections, streams, views. A newcomer gets what a
//! source holds that has the most, so that whoever has few cannot be kept out by who has many:
//!
//! - of a source with at least two more than the newcomer's, whatever is done with it;
//! - else, if the newcomer's source has none yet, one with which nothing is done.
//!
//! Of a source's, idle ones go first, and of these the one that has been so for longest. Two more, and not one,
//! because sources with equal shares would else displace each other for ever.

use std::{cmp::Reverse, collections::HashMap, net::IpAddr, time::Instant};

/// Something that a source holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holding<K> {
    /// What it is.
    pub(super) key: K,
    /// Whose it is.
    pub(super) source: IpAddr,
    /// Whether nothing is done with it.
    pub(super) idle: bool,
    /// When something was last done with it.
    pub(super) last: Instant,
}

/// What gives way to one more of `source`, if anything does.
pub(super) fn gives_way<K>(all: Vec<Holding<K>>, source: IpAddr) -> Option<K> {
    let mut counts: HashMap<IpAddr, usize> = HashMap::new();
    for holding in &all {
        *counts.entry(holding.source).or_default() += 1;
    }
    let count = |source: IpAddr| counts.get(&source).copied().unwrap_or(0);
    let own = count(source);
    all.into_iter()
        .filter(|held| count(held.source) > own + 1 || (own == 0 && held.idle))
        .max_by_key(|held| (count(held.source), held.idle, Reverse(held.last)))
        .map(|held| held.key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_fullest_source_gives_way_with_what_is_idle_for_longest() {
        let begin = Instant::now();
        let holding = |key: u64, host: u8, idle| Holding {
            key,
            source: IpAddr::from([192, 0, 2, host]),
            idle,
            last: begin + Duration::from_secs(key),
        };
        let newcomer = |host: u8| IpAddr::from([192, 0, 2, host]);
        let busy = [holding(1, 1, false), holding(2, 1, true), holding(3, 1, true)];
        let with = |more: &[Holding<u64>]| busy.iter().chain(more).copied().collect::<Vec<_>>();
        assert_eq!(gives_way(with(&[holding(0, 2, true)]), newcomer(2)), Some(2));
        // Shares of three and two: nothing is moved between them.
        assert_eq!(gives_way(with(&[holding(4, 2, true), holding(5, 2, true)]), newcomer(2)), None);
        assert_eq!(gives_way(with(&[]), newcomer(1)), None);
        // Among equals only the idle give way, and only to sources that have none.
        let equals = vec![holding(1, 1, false), holding(3, 2, true), holding(2, 3, true)];
        assert_eq!(gives_way(equals.clone(), newcomer(4)), Some(2));
        assert_eq!(gives_way(equals, newcomer(1)), None);
        assert_eq!(gives_way(vec![holding(1, 1, false)], newcomer(2)), None);
    }
}
