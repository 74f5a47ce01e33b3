//! Names in messages of DNS (RFC 1035, section 4.1.4).

/// Bytes of a message's header, in which no name is.
const HEADER: usize = 12;
/// Most pointers in one name.
const POINTERS: usize = 16;

/// Shows each label of the name at an offset with where its text begins, and says where what follows the
/// name begins; nothing where the message does not hold it all, or `label` wants no more. Each pointer must
/// lead to before the labels that it is behind, so no message is read in circles.
pub fn name(
    message: &[u8],
    mut at: usize,
    mut label: impl FnMut(usize, &[u8]) -> Option<()>,
) -> Option<usize> {
    let (mut begin, mut end, mut pointers) = (at, None, 0);
    loop {
        let length = usize::from(*message.get(at)?);
        match length >> 6 {
            0 if length == 0 => return Some(end.unwrap_or(at + 1)),
            0 => {
                label(at + 1, message.get(at + 1..at + 1 + length)?)?;
                at += 1 + length;
            }
            3 => {
                let pointer = u16::from_be_bytes(*message.get(at..)?.first_chunk()?);
                let target = usize::from(pointer & 0x3fff);
                end = end.or(Some(at + 2));
                pointers += 1;
                if !(HEADER..begin).contains(&target) || pointers > POINTERS {
                    return None;
                }
                (at, begin) = (target, target);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: &[u8], at: usize) -> Option<(Vec<Vec<u8>>, usize)> {
        let mut labels = Vec::new();
        let end = name(message, at, |at, label| {
            assert_eq!(message[at..at + label.len()], *label);
            labels.push(label.to_vec());
            Some(())
        })?;
        Some((labels, end))
    }

    #[test]
    fn labels_and_pointers_are_followed_to_the_end() {
        let header = [0; HEADER];
        let names = b"\x01a\x02bc\x00\x01d\xc0\x0e\xc0\x16\xc0\x1a\x41\x01e\xc0\x1b\xc0\x05";
        let message = [&header[..], names].concat();
        assert_eq!(read(&message, 12), Some((vec![b"a".to_vec(), b"bc".to_vec()], 18)));
        assert_eq!(read(&message, 18), Some((vec![b"d".to_vec(), b"bc".to_vec()], 22)));
        // A pointer to itself, one forward, a label of no kind, a pointer to the label before it, one into
        // the header, and what is not there.
        for at in [22, 24, 26, 27, 31, 99] {
            assert_eq!(read(&message, at), None, "{at}");
        }
        assert_eq!(read(&message[..16], 12), None);
        assert_eq!(name(&message, 12, |_, _| None), None);
    }
}
