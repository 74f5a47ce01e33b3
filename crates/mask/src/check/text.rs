//! Addresses as people and programs write them, in runs of the characters that they have.

use std::net::Ipv6Addr;

/// All addresses of IPv4 in a run, also with a port behind them (`192.0.2.1:80`, tcpdump's `192.0.2.1.80`),
/// in a range (`192.0.2.1-192.0.2.9`), and in the order of `in-addr.arpa`.
pub(super) fn ipv4(run: &str) -> impl Iterator<Item = u32> {
    run.split([':', '-']).flat_map(|part| {
        let numbers: Vec<Option<u8>> = part.split('.').map(decimal).collect();
        let windows: Vec<[u8; 4]> = numbers
            .windows(4)
            .filter_map(|window| {
                let [a, b, c, d] = *<&[Option<u8>; 4]>::try_from(window).ok()?;
                Some([a?, b?, c?, d?])
            })
            .collect();
        windows.into_iter().flat_map(|bytes| [u32::from_be_bytes(bytes), u32::from_le_bytes(bytes)])
    })
}

/// A number of one to three digits; zeros before it are none of ours.
fn decimal(text: &str) -> Option<u8> {
    let is_plain = text == "0" || !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// All addresses of IPv6 in a run, also with a port behind a dot, or at the end of a sentence.
pub(super) fn ipv6(run: &str) -> impl Iterator<Item = u128> {
    run.split('-').filter_map(|part| {
        let part = part.trim_matches('.');
        let ends =
            [Some(part), part.strip_suffix(':'), part.rsplit_once('.').map(|(address, _)| address)];
        let mut addresses = ends.into_iter().flatten().map(str::parse::<Ipv6Addr>);
        addresses.find_map(|address| address.ok()).map(Ipv6Addr::to_bits)
    })
}

/// All MAC addresses in a run: six pairs of digits, or three groups of four.
pub(super) fn macs(run: &str) -> impl Iterator<Item = [u8; 6]> {
    let pairs: Vec<&str> = run.split([':', '-', '.']).collect();
    let of = |parts: &[&str], digits: usize| {
        let is_group = parts.iter().all(|part| part.len() == digits);
        let bytes = u64::from_str_radix(&parts.concat(), 16).ok()?.to_be_bytes();
        is_group.then(|| std::array::from_fn(|n| bytes[n + 2]))
    };
    let six = pairs.windows(6).filter_map(|parts| of(parts, 2));
    let three = pairs.windows(3).filter_map(|parts| of(parts, 4));
    six.chain(three).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_ipv6_are_read_with_what_is_around_them() {
        let of = |text: &str| {
            ipv6(text).map(|bits| Ipv6Addr::from_bits(bits).to_string()).collect::<Vec<_>>()
        };
        for text in
            ["2001:db8::1", "2001:db8::1.", "2001:db8::1:", "2001:db8::1.443", ".2001:db8::1"]
        {
            assert_eq!(of(text), ["2001:db8::1"], "{text}");
        }
        assert_eq!(of("2001:db8::1-2001:db8::2"), ["2001:db8::1", "2001:db8::2"]);
        assert!(of("cafe.babe").is_empty());
    }
}
