//! Names in messages of DNS (RFC 1035, section 4.1.4).

/// Most pointers in one name.
const POINTERS: usize = 16;

/// Shows each label of the name at an offset, and says where what follows the name begins; nothing where
/// the message does not hold it all, or `label` wants no more. Each pointer must lead backwards, so no
/// message is read in circles.
pub fn name(
    message: &[u8],
    mut at: usize,
    mut label: impl FnMut(&[u8]) -> Option<()>,
) -> Option<usize> {
    let (mut end, mut pointers) = (None, 0);
    loop {
        let length = usize::from(*message.get(at)?);
        match length >> 6 {
            0 if length == 0 => return Some(end.unwrap_or(at + 1)),
            0 => {
                label(message.get(at + 1..at + 1 + length)?)?;
                at += 1 + length;
            }
            3 => {
                let pointer = u16::from_be_bytes(*message.get(at..)?.first_chunk()?);
                let target = usize::from(pointer & 0x3fff);
                end = end.or(Some(at + 2));
                pointers += 1;
                if target >= at || pointers > POINTERS {
                    return None;
                }
                at = target;
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
        let end = name(message, at, |label| {
            labels.push(label.to_vec());
            Some(())
        })?;
        Some((labels, end))
    }

    #[test]
    fn labels_and_pointers_are_followed_to_the_end() {
        let message = b"\x01a\x02bc\x00\x01d\xc0\x02\xc0\x0a\xc0\x0c\x41";
        assert_eq!(read(message, 0), Some((vec![b"a".to_vec(), b"bc".to_vec()], 6)));
        assert_eq!(read(message, 6), Some((vec![b"d".to_vec(), b"bc".to_vec()], 10)));
        // A pointer to itself, one forward, a label of no kind, and what is not there.
        for at in [10, 12, 14, 15, 99] {
            assert_eq!(read(message, at), None, "{at}");
        }
        assert_eq!(read(&message[..4], 0), None);
        assert_eq!(name(message, 0, |_| None), None);
    }
}
