//! What kind of address space an address is in: the special-purpose registry of RFC 6890.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is loopback, private, link-local or for documentation: space in which a load
/// test can meet nobody who did not ask for it.
///
/// RFC 1122 (127.0.0.0/8), RFC 1918, RFC 3927, RFC 5737; RFC 4291 (::1, fe80::/10), RFC 4193
/// (fc00::/7), RFC 3849 and RFC 9637 (documentation).
pub fn is_test_space(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_documentation()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || is_documentation_v6(v6)
        }
    }
}

/// RFC 3849 (2001:db8::/32) and RFC 9637 (3fff::/20).
fn is_documentation_v6(v6: Ipv6Addr) -> bool {
    let segments = v6.segments();
    segments[..2] == [0x2001, 0x0db8] || segments[0] == 0x3fff && segments[1] < 0x1000
}

/// Whether an address is one that no honest packet has as its source: unspecified, loopback,
/// multicast, broadcast, "this network" and the reserved class E; for IPv6 also what begins with 32
/// zero bits (IPv4-compatible and IPv4-mapped addresses: RFC 4291, section 2.5.5).
///
/// A directed broadcast cannot be distinguished from the address alone.
pub fn is_bogon_source(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            // RFC 1122, section 3.2.1.3: 0/8 and 127/8; 224/4 and 240/4 up to the broadcast.
            v4.octets()[0] == 0 || v4.is_loopback() || v4 >= Ipv4Addr::new(224, 0, 0, 0)
        }
        IpAddr::V6(v6) => v6.is_multicast() || v6.segments()[..2] == [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_space_at_its_edges() {
        let inside = "127.0.0.1 127.255.255.255 10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 \
             192.168.0.0 192.168.255.255 169.254.1.1 192.0.2.0 192.0.2.255 198.51.100.7 \
             203.0.113.255 ::1 fe80::1 febf::1 fc00:: fdff::1 2001:db8:: 2001:db8:ffff::1 3fff:: \
             3fff:fff:ffff::1";
        let outside = "9.255.255.255 11.0.0.0 172.15.255.255 172.32.0.0 192.167.255.255 \
             192.0.1.255 192.0.3.0 50.50.50.50 8.8.8.8 0.0.0.0 224.0.0.1 255.255.255.255 \
             198.18.0.1 :: 2001:db7:ffff::1 2001:db9:: 3fff:1000:: 3ffe:ffff:: fec0::1 fe00::1 \
             ff02::1 2606:4700::1111";
        for text in inside.split_whitespace() {
            assert!(is_test_space(text.parse().unwrap()), "{text}");
        }
        for text in outside.split_whitespace() {
            assert!(!is_test_space(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn bogon_sources_at_their_edges() {
        let bogons = "0.0.0.0 0.255.255.255 127.0.0.0 127.255.255.255 224.0.0.0 239.255.255.255 \
             240.0.0.0 255.255.255.255 :: ::1 ff00:: ff02::1 ::ffff:10.0.0.1 ::192.0.2.1 \
             0:0:ffff::1";
        let honest = "1.0.0.0 126.255.255.255 128.0.0.0 223.255.255.255 10.0.0.1 192.0.2.1 \
             2001:db8::1 fe80::1 fd00::1 feff::1 0:1:: \
             64:ff9b::c000:201";
        for text in bogons.split_whitespace() {
            assert!(is_bogon_source(text.parse().unwrap()), "{text}");
        }
        for text in honest.split_whitespace() {
            assert!(!is_bogon_source(text.parse().unwrap()), "{text}");
        }
    }
}
