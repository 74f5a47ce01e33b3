//! Offers of files within MSN Messenger's binary packets (MSNP2P with MSNSLP).
//!
//! A packet has a header of 48 bytes, all numbers little-endian: session, identifier, offset (8 bytes),
//! total size (8), length of this packet, flags and what acknowledges. What goes through the session 0
//! is text in the form of SIP. An INVITE with the identifier of file transfer has a `Context` in
//! BASE64: length, version, size of the file (8 bytes), type, and from byte 20 on the name in UTF-16.

use super::{
    super::message::MAX_TEXT,
    mime::{BASE64, Mime},
};
use base64::Engine as _;

const HEADER: usize = 48;
/// Where the name stands in a context, and its most bytes.
const NAME: usize = 20;
const LONGEST_NAME: usize = 520;
/// Longest text that is put together of packets.
const LONGEST: usize = 16 << 10;
/// The identifier of file transfer.
const FILE_TRANSFER: &[u8] = b"{5D3E02AB-6190-11D3-BBBB-00C04F795683}";

/// A file that was offered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Offered {
    pub(super) name: String,
    pub(super) size: u64,
}

/// Puts the text of a side's packets together.
#[derive(Debug, Default)]
pub(super) struct Packets {
    identifier: u32,
    text: Vec<u8>,
}

impl Packets {
    /// Takes a packet; gives the offer that is whole with it.
    pub(super) fn push(&mut self, packet: &[u8]) -> Option<Offered> {
        let (header, rest) = packet.split_at_checked(HEADER)?;
        let (session, identifier) = (u32_at(header, 0)?, u32_at(header, 4)?);
        let (offset, total) = (u64_at(header, 8)?, u64_at(header, 16)?);
        let length = usize::try_from(u32_at(header, 24)?).ok()?;
        // The content itself has a session; an acknowledgement has no content.
        let text = rest.get(..length).filter(|it| session == 0 && !it.is_empty())?;
        if offset == 0 {
            self.identifier = identifier;
            self.text.clear();
        }
        if identifier != self.identifier
            || offset != self.text.len() as u64
            || self.text.len() + text.len() > LONGEST
        {
            self.text.clear();
            return None;
        }
        self.text.extend_from_slice(text);
        if (self.text.len() as u64) < total {
            return None;
        }
        invitation(&std::mem::take(&mut self.text))
    }
}

/// The offer in an INVITE.
fn invitation(text: &[u8]) -> Option<Offered> {
    if !text.starts_with(b"INVITE ") {
        return None;
    }
    let mime = Mime::read(text);
    let body = mime.body();
    let body = Mime::read(&body);
    let guid = body.value("euf-guid")?;
    let context = BASE64.decode(body.value("context")?).ok()?;
    let size = u64_at(&context, 8)?;
    let name = context.get(NAME..)?;
    let units = name.get(..LONGEST_NAME).unwrap_or(name).chunks_exact(2);
    let units =
        units.map(|it| it.try_into().map_or(0, u16::from_le_bytes)).take_while(|it| *it != 0);
    let name: String = char::decode_utf16(units).map(|it| it.unwrap_or('\u{fffd}')).collect();
    debug_assert!(name.len() <= MAX_TEXT);
    guid.eq_ignore_ascii_case(FILE_TRANSFER).then_some(Offered { name, size })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The text that offers a file.
    pub(crate) fn invite(guid: &str, name: &str, size: u64) -> Vec<u8> {
        let mut context = Vec::new();
        context.extend(574_u32.to_le_bytes());
        context.extend(2_u32.to_le_bytes());
        context.extend(size.to_le_bytes());
        context.extend(1_u32.to_le_bytes());
        context.extend(name.encode_utf16().flat_map(u16::to_le_bytes));
        context.resize(574, 0);
        let context = BASE64.encode(context);
        let body =
            format!("EUF-GUID: {guid}\r\nSessionID: 1\r\nAppID: 2\r\nContext: {context}\r\n\r\n\0");
        let text = format!(
            "INVITE MSNMSGR:bob@example.net MSNSLP/1.0\r\nTo: <msnmsgr:bob@example.net>\r\n\
             From: <msnmsgr:ann@example.net>\r\nContent-Type: application/x-msnmsgr-sessionreqbody\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        text.into_bytes()
    }

    /// The packets of a text, each with at most `most` bytes of it.
    pub(crate) fn packets(identifier: u32, text: &[u8], most: usize) -> Vec<Vec<u8>> {
        let mut offset = 0;
        let mut out = Vec::new();
        for part in text.chunks(most) {
            let mut packet = 0_u32.to_le_bytes().to_vec();
            packet.extend(identifier.to_le_bytes());
            packet.extend((offset as u64).to_le_bytes());
            packet.extend((text.len() as u64).to_le_bytes());
            packet.extend((part.len() as u32).to_le_bytes());
            packet.resize(HEADER, 0);
            packet.extend(part);
            // The number of the application, big-endian.
            packet.extend(0_u32.to_be_bytes());
            out.push(packet);
            offset += part.len();
        }
        out
    }

    const GUID: &str = "{5D3E02AB-6190-11D3-BBBB-00C04F795683}";

    #[test]
    fn an_offer_is_read_from_one_packet_or_several() {
        let text = invite(GUID, "caf\u{e9} \u{1f600}.iso", 700);
        for most in [10_000, 700, 33] {
            let mut state = Packets::default();
            let found: Vec<_> =
                packets(9, &text, most).iter().filter_map(|it| state.push(it)).collect();
            assert_eq!(found, [Offered { name: "caf\u{e9} \u{1f600}.iso".into(), size: 700 }]);
        }
    }

    #[test]
    fn other_invitations_and_parts_that_do_not_fit_are_no_offers() {
        let camera = invite("{1C9AA97E-9C05-4583-A3BD-908A196F1E92}", "x", 1);
        let mut state = Packets::default();
        assert_eq!(packets(1, &camera, 9000).iter().find_map(|it| state.push(it)), None);
        let mut parts = packets(2, &invite(GUID, "x", 1), 300);
        parts.remove(1);
        assert_eq!(parts.iter().find_map(|it| state.push(it)), None);
        assert_eq!(state.push(b"short"), None);
    }
}
