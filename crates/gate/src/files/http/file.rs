//! The files in bodies, and what heads say of them.

use super::{
    head::{self, Body, Head},
    multipart,
};
use crate::{
    event::{FileHash, FileNamed, TransferId},
    file_name,
    files::transfers::Transfers,
};
use classify::flow::Side;

/// Bytes of a request's body in which a form's first file name is looked for.
const FORM: usize = 1024;

/// What of a request its response needs.
#[derive(Debug)]
pub(super) struct Request {
    /// Who sent it.
    pub(super) from: Side,
    pub(super) head_only: bool,
    pub(super) connect: bool,
    /// Whether it asks for another protocol.
    pub(super) upgrade: bool,
    pub(super) target: Vec<u8>,
    pub(super) host: Option<String>,
}

impl Request {
    pub(super) fn new(from: Side, method: &[u8], target: &[u8], head: &Head<'_>) -> Self {
        Self {
            from,
            head_only: method == b"HEAD",
            connect: method == b"CONNECT",
            upgrade: head.value(b"upgrade").is_some(),
            target: target.to_vec(),
            host: head.value(b"host").map(file_name::text),
        }
    }
}

/// A body: a form whose file's name is still looked for, or a file.
#[derive(Debug)]
pub(super) enum File {
    Form { named: Box<FileNamed>, begins: Vec<u8>, at: u64, last: Option<u64> },
    Known(TransferId),
}

impl File {
    /// A file whose content begins at an offset.
    pub(super) fn begin(
        file: FileNamed,
        form: bool,
        at: u64,
        last: Option<u64>,
        transfers: &mut Transfers,
    ) -> Self {
        if form && file.name.is_none() {
            Self::Form { named: Box::new(file), begins: Vec::new(), at, last }
        } else {
            Self::Known(transfers.begin(file, at, last))
        }
    }

    pub(super) fn content(&mut self, at: u64, bytes: &[u8], transfers: &mut Transfers) {
        match self {
            Self::Known(id) => transfers.content(*id, at, bytes),
            Self::Form { named, begins, .. } => {
                begins.extend_from_slice(bytes);
                if let Some(name) = multipart::file_name(begins) {
                    named.name = Some(name);
                } else if begins.len() < FORM {
                    return;
                }
                self.known(transfers);
            }
        }
    }

    pub(super) fn lost(&mut self, at: u64, length: u64, transfers: &mut Transfers) {
        let id = self.known(transfers);
        transfers.lost(id, at, length);
    }

    pub(super) fn end(mut self, complete: bool, transfers: &mut Transfers) {
        let id = self.known(transfers);
        transfers.end(id, complete);
    }

    /// A form becomes a file with the name that was found, if any.
    fn known(&mut self, transfers: &mut Transfers) -> TransferId {
        let id = match self {
            Self::Known(id) => return *id,
            Self::Form { named, begins, at, last } => {
                let id = transfers.begin((**named).clone(), *at, *last);
                transfers.content(id, *at, begins);
                id
            }
        };
        *self = Self::Known(id);
        id
    }
}

impl Head<'_> {
    /// The file that a request carries.
    pub(super) fn uploaded(&self, from: Side, target: &[u8]) -> FileNamed {
        let form = self.form();
        FileNamed {
            name: self
                .value(b"content-disposition")
                .and_then(file_name::of_disposition)
                .or_else(|| if form { None } else { file_name::of_target(target) }),
            location: Some(file_name::without_query(target)),
            host: self.value(b"host").map(file_name::text),
            ..self.file(from)
        }
    }

    /// The file that a response carries.
    pub(super) fn downloaded(
        &self,
        from: Side,
        status: u16,
        request: Option<&Request>,
    ) -> FileNamed {
        let mut ranges = self.values(b"content-range").filter(|_| (200..300).contains(&status));
        let said = ranges.next().map(head::content_range);
        let (range, total) =
            said.flatten().map_or((None, None), |(range, total)| (Some(range), total));
        // A part without saying which, or with two answers: curl goes by the field alone.
        let unclear =
            ranges.next().is_some() || (range.is_none() && (status == 206 || said.is_some()));
        let file = self.file(from);
        FileNamed {
            name: self
                .value(b"content-disposition")
                .and_then(file_name::of_disposition)
                .or_else(|| file_name::of_target(&request?.target)),
            location: request.map(|request| file_name::without_query(&request.target)),
            host: request.and_then(|request| request.host.clone()),
            size: if range.is_some() { total } else { file.size },
            range,
            hash: self
                .value(b"x-gnutella-content-urn")
                .and_then(head::sha1_urn)
                .or_else(|| head::sha1_urn(&request?.target))
                .map(FileHash::Sha1),
            ambiguous: file.ambiguous || unclear,
            ..file
        }
    }

    fn file(&self, from: Side) -> FileNamed {
        let codings = self.members(b"content-encoding");
        let codings = codings.filter(|it| !it.is_empty() && !it.eq_ignore_ascii_case(b"identity"));
        let codings: Vec<String> = codings.map(file_name::text).collect();
        let size = match self.length() {
            Body::Counted(length) => Some(length),
            Body::Chunked | Body::UntilClose => None,
        };
        FileNamed {
            size,
            media: self.value(b"content-type").map(file_name::text),
            coding: Some(codings.join(", ")).filter(|codings| !codings.is_empty()),
            ambiguous: self.ambiguous,
            ..FileNamed::new(from)
        }
    }
}
