//! Dumps of routing tables in MRT (RFC 6396, and RFC 8050 for several paths to a prefix).
//!
//! Of TABLE_DUMP_V2 the tables of IPv4 and IPv6 unicast are read, plain or compressed with gzip or bzip2.
//! Each entry is a route that a peer of the collector has; the exit router of each peer must be given: one
//! for the whole file, or one for each peer. Where several peers are one exit the shortest AS path
//! counts. A record that is broken, or of another kind, is counted and skipped.
//!
//! Limits: records of 16 MiB, and 100 million of them.

use super::{About, LoadError, Notices, Out, Progress};
use crate::{change::Change, path::ExternalPath, value::RouterId};
use bgpkit_parser::{
    models::{
        AsPath, AsPathSegment, Asn, EntryType, MrtMessage, RibAfiEntries, RibEntry,
        TableDumpV2Message, TableDumpV2Type,
    },
    parse_mrt_record,
};
use bzip2::bufread::MultiBzDecoder;
use config::file::open_regular;
use flate2::bufread::MultiGzDecoder;
use serde::Serialize;
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashMap},
    io::{self, BufRead, BufReader, Read},
    net::IpAddr,
    path::Path,
    rc::Rc,
};

/// Longest record, in bytes: peer tables and prefixes that thousands of peers have are far below.
const RECORD: u32 = 16 << 20;
/// Most records.
const RECORDS: u64 = 100_000_000;
/// The common header (RFC 6396 section 2).
const HEADER: usize = 12;

/// Which exit router has the routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exits {
    /// One for the whole file.
    One(RouterId),
    /// The peers of the collector are, or stand for, exit routers; routes of other peers are skipped.
    Peers(BTreeMap<IpAddr, RouterId>),
}

/// What was in a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Records of any kind.
    pub records: u64,
    /// Broken records and ones that end too early; what of them could be read was taken.
    pub broken: u64,
    /// Records that are not about unicast routes.
    pub other: u64,
    /// Prefixes.
    pub prefixes: u64,
    /// Routes that were handed on.
    pub routes: u64,
    /// Entries of peers that stand for no exit.
    pub unmapped: u64,
    /// What is odd.
    pub notices: Notices,
}

/// Loads a file.
pub fn load(
    path: &Path,
    exits: &Exits,
    each: &mut dyn FnMut(Change),
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary, LoadError> {
    let file =
        open_regular(path).map_err(|error| LoadError::Read { path: path.to_owned(), error })?;
    let of = file.metadata().ok().map(|metadata| metadata.len());
    read(file, of, path, exits, each, progress)
}

/// Reads a dump from anywhere.
pub fn read(
    reader: impl Read,
    of: Option<u64>,
    name: &Path,
    exits: &Exits,
    each: &mut dyn FnMut(Change),
    progress: &mut dyn FnMut(Progress),
) -> Result<Summary, LoadError> {
    let unread = |error| LoadError::Read { path: name.to_owned(), error };
    let count = Rc::new(Cell::new(0));
    let counted = Counted { inner: reader, count: Rc::clone(&count) };
    let mut plain = BufReader::with_capacity(1 << 16, counted);
    let magic = plain.fill_buf().map_err(unread)?;
    let mut input: Box<dyn Read + '_> = if magic.starts_with(&[0x1f, 0x8b]) {
        Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(plain)))
    } else if magic.starts_with(b"BZh") {
        Box::new(BufReader::with_capacity(1 << 16, MultiBzDecoder::new(plain)))
    } else {
        Box::new(plain)
    };
    let mut out = Out { each, progress, so_far: Progress { of, ..Progress::default() } };
    let mut dump = Dump { exits, peers: HashMap::new(), summary: Summary::default() };
    let mut notices = Notices::default();
    let mut about = About { file: name, notices: &mut notices };
    let mut record = Vec::new();
    loop {
        match next(&mut input, &mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if dump.summary.prefixes > 0 || !dump.peers.is_empty() => {
                // What came before is good.
                dump.summary.broken += 1;
                about.warn(
                    0,
                    "",
                    format!("record {}: {error}; the file ends here", dump.summary.records + 1),
                );
                break;
            }
            Err(error) => {
                about.error(0, "", format!("{error}; is this an MRT dump?"));
                return Err(LoadError::Bad(notices));
            }
        }
        out.so_far.read = count.get();
        if dump.summary.records == RECORDS {
            about.warn(0, "", format!("more than {RECORDS} records; the others are not read"));
            break;
        }
        dump.record(&record, &mut out);
    }
    let Summary { broken, unmapped, prefixes, .. } = dump.summary;
    if broken > 0 {
        about.warn(0, "", format!("{broken} broken records were skipped"));
    }
    if prefixes == 0 {
        about.warn(0, "", "it has no unicast routes in TABLE_DUMP_V2");
    }
    if unmapped > 0 {
        let unknown: BTreeSet<_> = match exits {
            Exits::One(_) => BTreeSet::new(),
            Exits::Peers(map) => {
                dump.peers.values().filter(|peer| !map.contains_key(peer)).collect()
            }
        };
        let names: Vec<_> = unknown.iter().take(8).map(ToString::to_string).collect();
        about.warn(
            0,
            "",
            format!(
                "{unmapped} routes of peers that are not mapped to an exit were skipped: {}{}",
                names.join(", "),
                if unknown.len() > names.len() { ", ..." } else { "" }
            ),
        );
    }
    (out.progress)(out.so_far);
    dump.summary.notices = notices;
    Ok(dump.summary)
}

/// Counts the bytes that are read.
struct Counted<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// Reads the next record with its header; `false` at the end.
fn next(input: &mut impl Read, record: &mut Vec<u8>) -> io::Result<bool> {
    record.clear();
    input.by_ref().take(HEADER as u64).read_to_end(record)?;
    let Some(&[.., a, b, c, d]) = record.first_chunk::<HEADER>() else {
        return if record.is_empty() {
            Ok(false)
        } else {
            Err(io::Error::other("the header is truncated"))
        };
    };
    let length = u32::from_be_bytes([a, b, c, d]);
    if length > RECORD {
        return Err(io::Error::other(format!("a record of {length} bytes is too long")));
    }
    // Memory grows with what really comes.
    input.by_ref().take(u64::from(length)).read_to_end(record)?;
    if record.len() != HEADER + length as usize {
        return Err(io::Error::other("the record is truncated"));
    }
    Ok(true)
}

struct Dump<'e> {
    exits: &'e Exits,
    /// Addresses of the collector's peers (RFC 6396 section 4.3.1).
    peers: HashMap<u16, IpAddr>,
    summary: Summary,
}

impl Dump<'_> {
    fn record(&mut self, record: &[u8], out: &mut Out<'_>) {
        self.summary.records += 1;
        let Ok(parsed) = parse_mrt_record(&mut &*record) else {
            if is_table(record) {
                self.summary.broken += 1;
            } else {
                self.summary.other += 1;
            }
            return;
        };
        match parsed.message {
            MrtMessage::TableDumpV2Message(TableDumpV2Message::PeerIndexTable(table)) => {
                self.peers =
                    table.id_peer_map.into_iter().map(|(id, peer)| (id, peer.peer_ip)).collect();
            }
            MrtMessage::TableDumpV2Message(TableDumpV2Message::RibAfi(table))
                if matches!(
                    table.rib_type,
                    TableDumpV2Type::RibIpv4Unicast
                        | TableDumpV2Type::RibIpv4UnicastAddPath
                        | TableDumpV2Type::RibIpv6Unicast
                        | TableDumpV2Type::RibIpv6UnicastAddPath
                ) =>
            {
                if entries(record) != Some(table.rib_entries.len()) {
                    self.summary.broken += 1;
                }
                self.table(&table, out);
            }
            _ => self.summary.other += 1,
        }
    }

    /// The routes to one prefix.
    fn table(&mut self, table: &RibAfiEntries, out: &mut Out<'_>) {
        self.summary.prefixes += 1;
        let mut best: BTreeMap<RouterId, ExternalPath> = BTreeMap::new();
        for entry in &table.rib_entries {
            let exit = match self.exits {
                Exits::One(exit) => Some(exit),
                Exits::Peers(map) => {
                    self.peers.get(&entry.peer_index).and_then(|peer| map.get(peer))
                }
            };
            let Some(exit) = exit else {
                self.summary.unmapped += 1;
                continue;
            };
            let Some(path) = path(entry) else { continue };
            best.entry(*exit).and_modify(|known| *known = path.min(*known)).or_insert(path);
        }
        for (exit, path) in best {
            self.summary.routes += 1;
            out.change(Change::Route { prefix: table.prefix.prefix.trunc(), exit, path });
        }
    }
}

/// Whether a record's type is TABLE_DUMP_V2.
fn is_table(record: &[u8]) -> bool {
    matches!(record, [_, _, _, _, a, b, ..]
        if u16::from_be_bytes([*a, *b]) == EntryType::TABLE_DUMP_V2 as u16)
}

/// How many entries the record of one prefix should have (RFC 6396 section 4.3.2): the number stands
/// behind header, sequence number and prefix.
fn entries(record: &[u8]) -> Option<usize> {
    let bits = usize::from(*record.get(HEADER + 4)?);
    let at = HEADER + 5 + bits.div_ceil(8);
    let count = record.get(at..at + 2)?.try_into().ok()?;
    Some(usize::from(u16::from_be_bytes(count)))
}

/// The path of an entry beyond the exit; `None` if it has no AS path, which a route must
/// have (RFC 4271 section 5.1.2).
fn path(entry: &RibEntry) -> Option<ExternalPath> {
    Some(external(&entry.attributes.effective_as_path()?))
}

/// The number of ASes, where a set counts as one (RFC 4271 section 9.1.2.2 a) and a confederation's
/// inner ones as none (RFC 5065 section 5.3 c), and the origin, which is 0 where it is a set of several.
fn external(path: &AsPath) -> ExternalPath {
    let origin =
        path.iter_segments().rfind(|segment| !segment.is_confed()).and_then(
            |segment| match segment {
                AsPathSegment::AsSequence(ases) => ases.last(),
                AsPathSegment::AsSet(ases) if ases.len() == 1 => ases.first(),
                _ => None,
            },
        );
    ExternalPath {
        as_distance: u16::try_from(path.route_len()).unwrap_or(u16::MAX),
        as_number: origin.map_or(0, Asn::to_u32),
    }
}
