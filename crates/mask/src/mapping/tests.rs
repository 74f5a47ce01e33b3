use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A key of hexadecimal digits.
fn key<const N: usize>(digits: &str) -> [u8; N] {
    config::hex::array(digits).expect("digits")
}

fn pfx(digits: &str) -> IpcryptPfx {
    IpcryptPfx::new(&key(digits)).expect("a key of two halves")
}

const PFX_KEY: &str = "0123456789abcdeffedcba98765432101032547698badcfeefcdab8967452301";
const OTHER_PFX_KEY: &str = "2b7e151628aed2a6abf7158809cf4f3ca9f5ba40db214c3798f2e1c23456789a";

/// Crypto-PAn 1.0 of its authors (Fan, Xu, Ammar, Moon; cc.gatech.edu/computing/Telecomm/projects/cryptopan)
/// has a `sample.cpp` with this key, a trace (`sample_trace_raw.dat`) and what the key makes of it
/// (`sample_trace_sanitized.dat`). These are ten of its addresses; yacryptopan's tests compare all of them.
#[test]
fn crypto_pan_gives_what_the_sample_of_its_authors_gives() {
    let pan = CryptoPan::new(&[
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131,
        121, 121, 101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ]);
    for (from, to) in [
        ("128.11.68.132", "135.242.180.132"),
        ("129.118.74.4", "134.136.186.123"),
        ("130.132.252.244", "133.68.164.234"),
        ("141.223.7.43", "141.167.8.160"),
        ("141.233.145.108", "141.129.237.235"),
        ("152.163.225.39", "151.140.114.167"),
        ("156.29.3.236", "147.225.12.42"),
        ("165.247.96.84", "162.9.99.234"),
        ("166.107.77.190", "160.132.178.185"),
        ("192.102.249.13", "252.138.62.131"),
    ] {
        assert_eq!(pan.map(address(from)), address(to), "{from}");
    }
}

/// Under the key of the bytes 0 to 31, as it is at the end of `yacryptopan.py`.
#[test]
fn crypto_pan_gives_what_yacryptopan_gives() {
    let pan = CryptoPan::new(&std::array::from_fn(|n| n as u8));
    for (from, to) in
        [("192.0.2.1", "2.90.93.17"), ("2001:db8::1", "dd92:2c44:3fc0:ff1e:7ff9:c7f0:8180:7e00")]
    {
        assert_eq!(pan.map(address(from)), address(to), "{from}");
    }
}

#[test]
fn ipcrypt_deterministic_gives_what_the_draft_gives() {
    for (digits, from, to) in [
        ("0123456789abcdeffedcba9876543210", "0.0.0.0", "bde9:6789:d353:824c:d7c6:f58a:6bd2:26eb"),
        (
            "1032547698badcfeefcdab8967452301",
            "255.255.255.255",
            "aed2:92f6:ea23:58c3:48fd:8b8:74e8:45d8",
        ),
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "192.0.2.1",
            "1dbd:c1b9:fff1:7586:7d0b:67b4:e76e:4777",
        ),
    ] {
        assert_eq!(
            IpcryptDeterministic::new(&key(digits)).map(address(from)),
            address(to),
            "{from}"
        );
    }
}

#[test]
fn ipcrypt_pfx_gives_what_the_draft_gives() {
    for (digits, from, to) in [
        (PFX_KEY, "0.0.0.0", "151.82.155.134"),
        (PFX_KEY, "255.255.255.255", "94.185.169.89"),
        (PFX_KEY, "192.0.2.1", "100.115.72.131"),
        (PFX_KEY, "2001:db8::1", "c180:5dd4:2587:3524:30ab:fa65:6ab6:f88"),
        (OTHER_PFX_KEY, "10.0.0.47", "19.214.210.244"),
        (OTHER_PFX_KEY, "10.0.0.129", "19.214.210.80"),
        (OTHER_PFX_KEY, "172.16.5.193", "210.78.229.136"),
        (OTHER_PFX_KEY, "2001:db8::a5c9:4e2f:bb91:5a7d", "7cec:702c:1243:f70:1956:125:b9bd:1aba"),
    ] {
        assert_eq!(pfx(digits).map(address(from)), address(to), "{from}");
    }
}

#[test]
fn a_key_of_equal_halves_is_refused() {
    assert_eq!(IpcryptPfx::new(&[7; 32]).map(|_| ()), Err(EqualHalves));
}

#[test]
fn debug_shows_nothing_of_a_key() {
    let shown = |bytes| {
        let pfx = IpcryptPfx::new(&std::array::from_fn(|n| bytes + (n / 16) as u8));
        let one = IpcryptDeterministic::new(&[bytes; 16]);
        format!("{:?} {one:?} {pfx:?}", CryptoPan::new(&[bytes; 32]))
    };
    assert_eq!(shown(1), shown(2));
}

fn shared(a: u128, b: u128) -> u32 {
    (a ^ b).leading_zeros()
}

proptest! {
    #[test]
    fn prefixes_of_ipv4_are_kept(a: u32, mask: u32, n in 0u32..=32, bytes: [u8; 32]) {
        let b = a ^ mask.checked_shr(n).unwrap_or(0);
        let [a, b] = [a, b].map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)));
        let pan = CryptoPan::new(&bytes);
        let pfx = pfx(PFX_KEY);
        prop_assert_eq!(shared(as_v6(pan.map(a)), as_v6(pan.map(b))), shared(as_v6(a), as_v6(b)));
        prop_assert_eq!(shared(as_v6(pfx.map(a)), as_v6(pfx.map(b))), shared(as_v6(a), as_v6(b)));
    }

    #[test]
    fn prefixes_of_ipv6_are_kept(a: u128, mask: u128, n in 0u32..=128, bytes: [u8; 32]) {
        let b = a ^ mask.checked_shr(n).unwrap_or(0);
        let [a, b] = [a, b].map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)));
        let pan = CryptoPan::new(&bytes);
        let pfx = pfx(PFX_KEY);
        prop_assert_eq!(shared(as_v6(pan.map(a)), as_v6(pan.map(b))), shared(as_v6(a), as_v6(b)));
        prop_assert_eq!(shared(as_v6(pfx.map(a)), as_v6(pfx.map(b))), shared(as_v6(a), as_v6(b)));
    }

    #[test]
    fn ipcrypt_can_be_undone(bits: u128, v4: u32, bytes: [u8; 16]) {
        let one = IpcryptDeterministic::new(&bytes);
        let pfx = pfx(OTHER_PFX_KEY);
        for a in [IpAddr::V6(Ipv6Addr::from_bits(bits)), IpAddr::V4(Ipv4Addr::from_bits(v4))] {
            prop_assert_eq!(one.unmap(one.map(a)), a);
            prop_assert_eq!(pfx.unmap(pfx.map(a)), a);
        }
    }
}
