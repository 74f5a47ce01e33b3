//! The first file's name in a form (RFC 7578): the head of the part that has one.

use crate::file_name;

/// The first file name in the beginning of a form, once the line it stands on is whole.
pub(super) fn file_name(begins: &[u8]) -> Option<String> {
    const FIELD: &[u8] = b"content-disposition:";
    let whole = begins.iter().rposition(|byte| *byte == b'\n')?;
    begins.get(..whole)?.split(|byte| *byte == b'\n').find_map(|line| {
        let field = line.get(..FIELD.len())?;
        field.eq_ignore_ascii_case(FIELD).then_some(())?;
        file_name::of_disposition(line.get(FIELD.len()..)?.trim_ascii())
    })
}
