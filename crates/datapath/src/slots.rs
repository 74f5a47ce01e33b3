//! Perfect hash tables: every address has a slot of its own, so the program looks at one only.
//!
//! With n addresses in 256 slots a random function has no collision with probability about
//! exp(-n^2 / 512): one in 3,000 for 64 addresses, so a search takes some thousand tries. The
//! functions are those of `echo_find4` and `echo_find6` in bpf/include/echo.h and of `oracle_serves`
//! in bpf/oracle.bpf.c.

use splitmix::Random;

/// Slots in a table.
pub(crate) const SLOTS: usize = 256;

/// Tries before the search gives up: far beyond need, so that a defect cannot hang a reload.
const TRIES: usize = 10_000_000;

/// The slot of an IPv4 address, given as its four bytes in memory, perhaps with a port above them.
pub(crate) fn slot4(address: u64, hash: u64) -> usize {
    (address.wrapping_mul(hash) >> 56) as usize
}

/// The slot of an IPv6 address, given as its two halves in memory.
pub(crate) fn slot6([high, low]: [u64; 2], hash: [u64; 2]) -> usize {
    let mixed = (high ^ hash[0]).wrapping_mul(hash[1]);
    ((mixed ^ (mixed >> 32) ^ low).wrapping_mul(hash[1]) >> 56) as usize
}

/// A function for which all slots differ, or `None` if there is none to be found.
fn search<K: Copy, H: Copy>(
    keys: &[K],
    seed: u64,
    mut draw: impl FnMut(&mut dyn FnMut() -> u64) -> H,
    slot: impl Fn(K, H) -> usize,
) -> Option<H> {
    let mut random = Random::new(seed);
    (0..TRIES).find_map(|_| {
        let hash = draw(&mut || random.bits());
        let mut used = [false; SLOTS];
        keys.iter().all(|key| !std::mem::replace(&mut used[slot(*key, hash)], true)).then_some(hash)
    })
}

/// The multiplier for these keys of IPv4, which must differ.
pub(crate) fn search4(addresses: &[u64], seed: u64) -> Option<u64> {
    search(addresses, seed, |random| random() | 1, slot4)
}

/// The two parameters for these IPv6 addresses, which must differ.
pub(crate) fn search6(addresses: &[[u64; 2]], seed: u64) -> Option<[u64; 2]> {
    search(addresses, seed, |random| [random(), random() | 1], slot6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_function_for_64_addresses_of_any_shape() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let dense: Vec<u64> =
                (0..64).map(|i| u32::from_ne_bytes([10, 0, 0, i]).into()).collect();
            let sparse: Vec<u64> = (0..64).map(|_| random.bits() >> 32).collect();
            let ports: Vec<u64> = (0..64).map(|port| 10 | port << 40).collect();
            for addresses in [dense, sparse, ports] {
                let hash = search4(&addresses, seed).expect("a function");
                let mut slots: Vec<_> = addresses.iter().map(|a| slot4(*a, hash)).collect();
                slots.sort_unstable();
                slots.dedup();
                assert_eq!(slots.len(), 64);
            }
            let dense: Vec<[u64; 2]> =
                (0..64).map(|i| [0x0120, u64::from_ne_bytes([0, 0, 0, 0, 0, 0, 0, i])]).collect();
            let high: Vec<[u64; 2]> = (0..64).map(|_| [random.bits(), 1]).collect();
            for addresses in [dense, high] {
                let hash = search6(&addresses, seed).expect("a function");
                let mut slots: Vec<_> = addresses.iter().map(|a| slot6(*a, hash)).collect();
                slots.sort_unstable();
                slots.dedup();
                assert_eq!(slots.len(), 64);
            }
        }
    }

    #[test]
    fn gives_up_on_equal_addresses() {
        // Two equal keys never differ; the search must end, not hang.
        let keys = [[1, 1], [1, 1]];
        let tried = std::cell::Cell::new(0);
        let found = search(
            &keys[..],
            1,
            |random| random(),
            |_, _| {
                tried.set(tried.get() + 1);
                7
            },
        );
        assert_eq!(found, None::<u64>);
        assert_eq!(tried.get(), 2 * TRIES);
    }
}
