//! DNS (RFC 1035, section 4; RFC 6891; RFC 2782): names, addresses, texts.
//!
//! A name becomes another one, label by label, each as long as before and under the labels above it, so that
//! two names of one domain stay in one domain. Where a name goes on elsewhere (compression) it does so in the
//! result. What is in records of other types is zero.

use super::message::Message;
use wire::IpProtocol;

const ID: usize = 0;
const NAME: usize = 1;
const ADDRESS: usize = 2;
const TTL: usize = 3;
const TEXT: usize = 4;

const HEADER: usize = 12;
/// Types of records (RFC 1035, section 3.2.2; RFC 3596; RFC 2782; RFC 6672; RFC 6891).
const A: u16 = 1;
const NS: u16 = 2;
const CNAME: u16 = 5;
const SOA: u16 = 6;
const PTR: u16 = 12;
const MX: u16 = 15;
const TXT: u16 = 16;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const DNAME: u16 = 39;
const OPT: u16 = 41;
/// Labels that are followed to the end of a name: a name has 255 bytes at most.
const LABELS: usize = 128;

/// Masks a message, over TCP with its length before it (RFC 1035, section 4.2.2); nothing when it is not
/// wholly there or not wholly understood.
pub(super) fn mask(message: &mut Message<'_>, transport: IpProtocol) -> Option<()> {
    if transport == IpProtocol::UDP {
        return message.dns();
    }
    message.keep(0..2)?;
    let Message { program, secrets, from, to } = message;
    let (length, from) = from.split_first_chunk()?;
    if usize::from(u16::from_be_bytes(*length)) != from.len() {
        return None;
    }
    Message { program, secrets, from, to: &mut to[2..] }.dns()
}

impl Message<'_> {
    fn dns(&mut self) -> Option<()> {
        self.keep(2..HEADER)?;
        self.bytes(ID, 0..2)?;
        let counts = [4, 6, 8, 10].map(|at| self.u16_at(at));
        let mut at = HEADER;
        for _ in 0..counts[0]? {
            at = self.name(at)?;
            self.keep(at..at + 4)?;
            at += 4;
        }
        for count in &counts[1..] {
            for _ in 0..(*count)? {
                at = self.record(at)?;
            }
        }
        // What is behind the last record is nothing that is known.
        (at == self.from.len()).then_some(())
    }

    /// A resource record; where it ends.
    fn record(&mut self, at: usize) -> Option<usize> {
        let at = self.name(at)?;
        let kind = self.u16_at(at)?;
        self.keep(at..at + 4)?;
        if kind == OPT {
            // Its flags; options are padded away (RFC 7830).
            self.keep(at + 4..at + 8)?;
        } else {
            self.bytes(TTL, at + 4..at + 8)?;
        }
        self.keep(at + 8..at + 10)?;
        let data = at + 10;
        let end = data + usize::from(self.u16_at(at + 8)?);
        if end > self.from.len() {
            return None;
        }
        self.data(kind, data, end)?;
        Some(end)
    }

    /// What a record says.
    fn data(&mut self, kind: u16, at: usize, end: usize) -> Option<()> {
        match (kind, end - at) {
            (A, 4) | (AAAA, 16) => self.address(ADDRESS, at..end)?,
            (NS | CNAME | PTR | DNAME, _) => self.ends(at, end)?,
            (MX, _) => {
                self.keep(at..at + 2)?;
                self.ends(at + 2, end)?;
            }
            (SRV, _) => {
                self.keep(at..at + 6)?;
                self.ends(at + 6, end)?;
            }
            (SOA, _) => {
                let second = self.name(at)?;
                let numbers = self.name(second)?;
                // Serial number and times.
                if numbers + 20 != end {
                    return None;
                }
            }
            (TXT, _) => self.texts(at, end)?,
            // An option of zeros (RFC 7830): its length stays.
            (OPT, 4..) => {
                let length = (end - at - 4) as u16;
                self.to[at..at + 2].copy_from_slice(&PADDING.to_be_bytes());
                self.to[at + 2..at + 4].copy_from_slice(&length.to_be_bytes());
            }
            _ => {}
        }
        Some(())
    }

    fn ends(&mut self, at: usize, end: usize) -> Option<()> {
        (self.name(at)? == end).then_some(())
    }

    fn texts(&mut self, mut at: usize, end: usize) -> Option<()> {
        while at < end {
            let length = self.u8_at(at)?;
            self.keep(at..at + 1)?;
            let text = at + 1..at + 1 + length;
            if text.end > end {
                return None;
            }
            self.text(TEXT, text.clone())?;
            at = text.end;
        }
        Some(())
    }

    /// A name; where it ends here.
    fn name(&mut self, begin: usize) -> Option<usize> {
        let mut labels = Vec::new();
        // Where the next label stands unless a pointer leads away, after which labels are those of others.
        let mut here = begin;
        let end = wire::dns::name(self.from, begin, |at, label| {
            let is_here = at == here + 1;
            if is_here {
                here = at + label.len();
            }
            labels.push((at..at + label.len(), is_here));
            (labels.len() <= LABELS).then_some(())
        })?;
        // The root, or a pointer.
        self.keep(here..end)?;
        // From the top down, as each label is under those above it.
        let mut above = Vec::new();
        for (range, is_here) in labels.into_iter().rev() {
            above.extend(self.from.get(range.clone())?.to_ascii_lowercase());
            above.push(b'.');
            if is_here {
                self.keep(range.start - 1..range.start)?;
                self.text_as(NAME, range, &above)?;
            }
        }
        Some(end)
    }
}

const PADDING: u16 = 12;

#[cfg(test)]
mod tests;
