//! Whether libpcap would look a name up. It does for every word that is not its own and no address, by
//! getaddrinfo(3), and this cannot be switched off: so such words are refused before it sees them. Names of
//! ports and of protocols are local (/etc/services, /etc/protocols) and are behind a word that says so.

use super::Why;
use std::net::Ipv6Addr;

/// Words behind which a name is one of a port or a protocol.
const LOCAL: [&str; 4] = ["port", "portrange", "proto", "protochain"];

/// Words of pcap-filter(7) that mean something on Ethernet and on IP (scanner.l of libpcap 1.10).
pub(super) const WORDS: &str = "
    src dst host net mask port portrange proto protochain less greater broadcast multicast and or not len length
    link ether fddi tr wlan ppp slip inbound outbound ifindex
    ip ip6 arp rarp tcp udp sctp icmp icmp6 igmp igrp pim vrrp carp ah esp
    atalk aarp decnet lat sca moprc mopdl iso esis es-is isis is-is l1 l2 iih lsp snp csnp psnp clnp stp ipx netbeui
    vlan mpls pppoed pppoes geneve llc
    icmptype icmpcode icmp-echoreply icmp-unreach icmp-sourcequench icmp-redirect icmp-echo icmp-routeradvert
    icmp-routersolicit icmp-timxceed icmp-paramprob icmp-tstamp icmp-tstampreply icmp-ireq icmp-ireqreply
    icmp-maskreq icmp-maskreply
    icmp6type icmp6code icmp6-destinationunreach icmp6-packettoobig icmp6-timeexceeded icmp6-parameterproblem
    icmp6-echo icmp6-echoreply icmp6-multicastlistenerquery icmp6-multicastlistenerreportv1
    icmp6-multicastlistenerdone icmp6-routersolicit icmp6-routeradvert icmp6-neighborsolicit icmp6-neighboradvert
    icmp6-redirect icmp6-routerrenum icmp6-nodeinformationquery icmp6-nodeinformationresponse
    icmp6-ineighbordiscoverysolicit icmp6-ineighbordiscoveryadvert icmp6-multicastlistenerreportv2
    icmp6-homeagentdiscoveryrequest icmp6-homeagentdiscoveryreply icmp6-mobileprefixsolicit
    icmp6-mobileprefixadvert icmp6-certpathsolicit icmp6-certpathadvert icmp6-multicastrouteradvert
    icmp6-multicastroutersolicit icmp6-multicastrouterterm
    tcpflags tcp-fin tcp-syn tcp-rst tcp-push tcp-ack tcp-urg tcp-ece tcp-cwr";

/// Refuses what libpcap would ask name servers about, and `ip broadcast`: it is compiled as if the network's
/// mask were zero.
pub(super) fn check(text: &str) -> Result<(), Why> {
    let mut before = "";
    for run in text.split(|c: char| !(c.is_ascii_alphanumeric() || "_.:-\\".contains(c))) {
        if run.parse::<Ipv6Addr>().is_ok() || is_mac(run) {
            before = "";
            continue;
        }
        for word in run.split(':').map(|word| word.trim_matches('-')).filter(|it| !it.is_empty()) {
            if !(LOCAL.contains(&before) || is_number(word) || is_known(word)) {
                return Err(Why::Name(word.to_owned()));
            }
            if (before, word) == ("ip", "broadcast") {
                return Err(Why::Broadcast);
            }
            before = word;
        }
    }
    Ok(())
}

fn is_known(word: &str) -> bool {
    WORDS.split_ascii_whitespace().any(|known| known == word)
}

/// A number, or up to four with dots between: an IPv4 address or the beginning of one.
fn is_number(word: &str) -> bool {
    let is_number = |part: &str| match part.strip_prefix("0x").or(part.strip_prefix("0X")) {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_hexdigit()),
        None => !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit()),
    };
    word.split('.').count() <= 4 && word.split('.').all(is_number)
}

/// An Ethernet address: six numbers of up to two hexadecimal digits, or three of four.
fn is_mac(run: &str) -> bool {
    let groups = |by: char, count: usize, digits: &[usize]| {
        run.split(by).count() == count
            && run.split(by).all(|group| {
                digits.contains(&group.len()) && group.bytes().all(|it| it.is_ascii_hexdigit())
            })
    };
    [':', '-', '.'].into_iter().any(|by| groups(by, 6, &[1, 2]))
        || groups('.', 3, &[4])
        || groups('.', 1, &[12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_numbers_and_words_are_let_through() {
        for text in [
            "",
            "host 192.0.2.1 and not (net 10.1 or net 172.16.0.0/12 or 10.0.0.0 mask 255.0.0.0)",
            "ip6 host 2001:db8::1 or net fe80::/10 or ::ffff:192.0.2.1 or ::",
            "ether host 02:00:00:00:00:01 or ether src 2-0-0-0-0-a or ether dst 0200.0000.00ff",
            "ether host 0200000000ff",
            "tcp port https or udp portrange ftp-data-1024 or port 53 or ip proto \\icmp or ether proto \\ip6",
            "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and tcp[2:2]-1 > 0x1F && len<=-5+100",
            "icmp6[icmp6type]=icmp6-echo",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_could_be_the_name_of_a_host_is_refused() {
        for (text, name) in [
            ("host example.org", "example.org"),
            ("example", "example"),
            ("net campus", "campus"),
            ("gateway 192.0.2.1", "gateway"),
            ("host \\tcp", "\\tcp"),
            ("host TCP", "TCP"),
            ("src 1.2.3.4.5", "1.2.3.4.5"),
            ("port domain or ntp", "ntp"),
            ("port domain and src ntp", "ntp"),
            ("host 3com.example", "3com.example"),
            ("host fe80::1::2:x", "fe80"),
            ("tcp[name:2] = 0", "name"),
            ("host a-b", "a-b"),
            ("host münchen.example", "m"),
            ("host 10.0.0.1-x", "10.0.0.1-x"),
            ("ether host ab", "ab"),
            ("host 0200000000fg", "0200000000fg"),
            ("ip host localhost", "localhost"),
        ] {
            assert_eq!(check(text), Err(Why::Name(name.to_owned())), "{text}");
        }
        assert_eq!(check("not ip  broadcast"), Err(Why::Broadcast));
        assert_eq!(check("ether broadcast or broadcast"), Ok(()));
    }
}
