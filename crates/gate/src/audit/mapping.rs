//! Addresses under other names: an audit log is personal data.

use std::{
    borrow::Cow,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

/// Gives addresses other names, the same address always the same one.
pub trait Mapping: Send + Sync + fmt::Debug {
    /// The name of an address, an address of the same version.
    fn map(&self, address: IpAddr) -> IpAddr;
}

/// The least number that is a host's address: 1.0.0.0. Below are ports and sizes.
const LEAST: u32 = 1 << 24;

/// What all outputs ask before they write an address.
#[derive(Clone, Debug, Default)]
pub(super) struct Mask(Option<Arc<dyn Mapping>>);

impl Mask {
    pub(super) fn new(mapping: Option<Arc<dyn Mapping>>) -> Self {
        Self(mapping)
    }

    pub(super) fn address(&self, address: IpAddr) -> IpAddr {
        let address = address.to_canonical();
        self.0.as_ref().map_or(address, |mapping| mapping.map(address))
    }

    pub(super) fn socket(&self, socket: SocketAddr) -> SocketAddr {
        SocketAddr::new(self.address(socket.ip()), socket.port())
    }

    /// Text in which every address that stands by itself has its other name.
    pub(super) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.0.is_none() {
            return Cow::Borrowed(text);
        }
        // A DCC offer of IRC has its address as a number.
        let offers = text.contains("DCC ");
        let part_of_one = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(part_of_one) {
            let (before, from) = rest.split_at(start);
            let end = from.find(|c| !part_of_one(c)).unwrap_or(from.len());
            let (word, after) = from.split_at(end);
            out.push_str(before);
            match word.parse() {
                Ok(number) if offers && number >= LEAST => {
                    let address = self.address(Ipv4Addr::from_bits(number).into());
                    match address {
                        IpAddr::V4(it) => out.push_str(&it.to_bits().to_string()),
                        IpAddr::V6(it) => out.push_str(&it.to_string()),
                    }
                }
                _ => self.word(word, &mut out),
            }
            rest = after;
        }
        out.push_str(rest);
        Cow::Owned(out)
    }

    /// One run of hexadecimal digits, points and colons.
    fn word(&self, word: &str, out: &mut String) {
        // What is around an address may be of the sentence.
        let bare = word.trim_start_matches('.').trim_end_matches('.');
        for candidate in [bare, bare.trim_end_matches(':'), bare.trim_matches(':')] {
            if let Ok(address) = candidate.parse::<Ipv6Addr>() {
                let start = word.find(candidate).unwrap_or_default();
                out.push_str(word.get(..start).unwrap_or_default());
                out.push_str(&self.address(address.into()).to_string());
                out.push_str(word.get(start + candidate.len()..).unwrap_or_default());
                return;
            }
        }
        for (i, part) in word.split(':').enumerate() {
            if i > 0 {
                out.push(':');
            }
            self.quads(part, out);
        }
    }

    /// Addresses of version 4 among numbers and points; a host's name may hold one.
    fn quads(&self, part: &str, out: &mut String) {
        let numbers: Vec<&str> = part.split('.').collect();
        let mut rest = numbers.as_slice();
        while let Some((first, more)) = rest.split_first() {
            if rest.len() < numbers.len() {
                out.push('.');
            }
            let address = rest.get(..4).map(|four| four.join("."));
            if let Some(Ok(address)) = address.map(|it| it.parse::<Ipv4Addr>()) {
                out.push_str(&self.address(address.into()).to_string());
                rest = rest.get(4..).unwrap_or_default();
            } else {
                out.push_str(first);
                rest = more;
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Puts every address into a documentation prefix, by its last byte.
    #[derive(Debug)]
    pub(crate) struct LastByte;

    impl Mapping for LastByte {
        fn map(&self, address: IpAddr) -> IpAddr {
            match address {
                IpAddr::V4(it) => Ipv4Addr::new(198, 51, 100, it.octets()[3]).into(),
                IpAddr::V6(it) => {
                    Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, it.octets()[15].into()).into()
                }
            }
        }
    }

    #[test]
    fn addresses_within_text_get_their_other_names_and_nothing_else_changes() {
        let mask = Mask::new(Some(Arc::new(LastByte)));
        for (text, expected) in [
            ("peer of tracker 192.0.2.1:6969", "peer of tracker 198.51.100.1:6969"),
            ("it is 10.0.0.9.", "it is 198.51.100.9."),
            ("dead beef at 12:30, v1.2.3", "dead beef at 12:30, v1.2.3"),
            ("nick!user@10.0.0.7", "nick!user@198.51.100.7"),
            ("[2001:db8::7]:6881 and fe80::1", "[2001:db8:ffff::7]:6881 and 2001:db8:ffff::1"),
            ("10.0.0.1: no", "198.51.100.1: no"),
            ("face:10.0.0.1", "face:198.51.100.1"),
            ("tracker:2001:db8::9", "tracker:2001:db8:ffff::9"),
            ("via 10.0.0.1.example.net", "via 198.51.100.1.example.net"),
            ("at 2001:db8::5:", "at 2001:db8:ffff::5:"),
            ("1.2.3.4.5", "198.51.100.4.5"),
            ("\u{1}DCC SEND f 167772169 4000 30\u{1}", "\u{1}DCC SEND f 3325256713 4000 30\u{1}"),
            ("call 167772169", "call 167772169"),
            ("...", "..."),
            ("::", "2001:db8:ffff::"),
            ("", ""),
            ("\u{e9}10.0.0.1\u{e9}", "\u{e9}198.51.100.1\u{e9}"),
        ] {
            assert_eq!(mask.text(text), expected);
        }
        assert_eq!(Mask::default().text("10.0.0.1"), "10.0.0.1");
    }

    #[test]
    fn a_mapped_address_of_version_4_is_one_of_version_4() {
        let mask = Mask::new(Some(Arc::new(LastByte)));
        let socket = "[::ffff:10.0.0.3]:80".parse().unwrap();
        assert_eq!(mask.socket(socket).to_string(), "198.51.100.3:80");
        assert_eq!(Mask::default().socket(socket).to_string(), "10.0.0.3:80");
    }
}
